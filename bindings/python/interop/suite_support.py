"""Runs a test suite of another project twice, without rapt and with it, and compares the outcome of every test.

It is also the pytest plugin of both runs. Outcomes are recorded test by test, so that a run that hits its time limit,
or a worker that crashes, loses only unfinished tests. With pytest-xdist the tests run in several processes.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

_RECORD = "RAPT_SUITE_RECORD"
MOST_RUN_AGAIN, SECONDS_AGAIN = 60, 60

Outcome = collections.namedtuple("Outcome", "kind text")
MISSING = Outcome("missing", "it did not run")
Run = collections.namedtuple("Run", "outcomes through others finished")


# ---------------------------------------------------------------- inside pytest, as a plugin

# A suite sets it to a function that returns (calls computed by rapt, {reason: other calls}).
counts = None


def pytest_runtest_logreport(report):
    """Records an outcome, in the main process only: it receives the reports of pytest-xdist's workers too."""
    if "PYTEST_XDIST_WORKER" in os.environ or (report.when != "call" and report.outcome == "passed"):
        return
    text = getattr(getattr(report.longrepr, "reprcrash", None), "message", None) or str(report.longrepr or "")
    with open(os.environ[_RECORD] + ".outcomes", "a") as file:
        print(json.dumps([report.nodeid, report.outcome, text.strip()[:1000]]), file=file)


def pytest_collectreport(report):
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ[_RECORD] + ".outcomes", "a") as file:
            print(json.dumps([report.nodeid, "not collected", str(report.longrepr)[-1000:]]), file=file)


def pytest_runtest_logfinish():
    if counts is not None:
        pathlib.Path(f"{os.environ[_RECORD]}.{os.getpid()}.calls").write_text(json.dumps(counts()))


# ---------------------------------------------------------------- around it


def arguments(description, folder):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=lambda x: pathlib.Path(x).resolve(), help=folder)
    parser.add_argument("--tests", default="", help="an expression, as pytest's -k takes it")
    parser.add_argument("--keep", type=lambda x: pathlib.Path(x).resolve(), help="a folder for logs and reports")
    parser.add_argument("--jobs", type=int, default=1, help="processes for each of the two runs; wants pytest-xdist")
    parser.add_argument("--seconds", type=float, help="a run that takes longer is stopped: its other tests are missing")
    given = parser.parse_args()
    given.keep = given.keep or pathlib.Path(tempfile.mkdtemp(prefix="suite-"))
    given.keep.mkdir(parents=True, exist_ok=True)
    return given


def run(name, given, files, plugins, environment, seconds=None):
    """Runs pytest in given.folder, with NAME.log as the log."""
    record = given.keep / name
    for old in given.keep.glob(f"{name}.*"):
        old.unlink()
    here = str(pathlib.Path(__file__).resolve().parent)
    environment = os.environ | {
        _RECORD: str(record), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([here, str(given.folder), os.environ.get("PYTHONPATH", "")]),
    } | environment  # fmt: skip
    # Asserts are not rewritten: a suite may have its own importer for the tests.
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--assert=plain", f"--rootdir={given.folder}"]
    command += [x for plugin in ("no:cacheprovider", "suite_support", *plugins) for x in ("-p", plugin)]
    command += ["-p", "xdist"] * bool(importlib.util.find_spec("xdist")) + ["-n", str(given.jobs)] * (given.jobs > 1)
    command += ["-k", given.tests] * bool(given.tests)
    with open(f"{record}.log", "w") as log:
        process = subprocess.Popen(
            [*command, *files], cwd=given.folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            finished = process.wait(timeout=seconds) in (0, 1, 5)  # passed, failed, none chosen
        except subprocess.TimeoutExpired:
            finished = False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    found, through, others = {}, 0, collections.Counter()
    written = pathlib.Path(f"{record}.outcomes")
    for test, kind, text in map(json.loads, written.read_text().splitlines() if written.exists() else []):
        if test not in found or kind == "failed":  # several if a test has subtests
            found[test] = Outcome(kind, text)
    for file in given.keep.glob(f"{name}.*.calls"):
        ours, theirs = json.loads(file.read_text())
        through += ours
        others.update(theirs)
        file.unlink()
    return Run(found, through, dict(others), finished)


def kinds(outcomes):
    found = collections.Counter(x.kind for x in outcomes.values())
    return f"{len(outcomes)} tests, " + ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()))


def shortened(text):
    """The beginning of a message, on one line, because its first line alone is often a bare "AssertionError:"."""
    return re.sub(r"\s+", " ", text).strip()[:300]


def worse(plain, routed):
    """The tests that pass without rapt and fail with it."""
    return [x for x, outcome in plain.items() if outcome.kind == "passed" and routed.get(x, MISSING).kind != "passed"]


def compare(given, once, expected, same_name=lambda test: test):
    """Runs the suite with and without rapt, prints the comparison, and returns whether something is wrong.

    once(with_rapt, name, tests or None, seconds) is one run of the suite. same_name maps the names of a test in the two
    runs to one name.
    """

    def both(label, tests, seconds):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            names = f"plain{label}", f"rapt{label}"
            made = [pool.submit(once, i, names[i], tests[i], seconds) for i in (0, 1)]
            return [x.result() for x in made]

    plain, routed = both("", (None, None), given.seconds)
    for name, found in (("without rapt", plain), ("with rapt", routed)):
        print(f"{name}: {kinds(found.outcomes)}{'' if found.finished else ' (NOT FINISHED, see the log)'}")
    if not plain.outcomes or not routed.outcomes:
        print(f"nothing was compared: pytest ran no test; see the logs in {given.keep}")
        return True
    print(f"{routed.through} calls through rapt; others:")
    for reason, number in sorted(routed.others.items(), key=lambda x: -x[1]):
        print(f"  {number} {reason}")
    theirs, ours = ({same_name(x): outcome for x, outcome in each.outcomes.items()} for each in (plain, routed))
    failing = worse(theirs, ours)
    again = ({}, {})
    if failing and len(failing) <= MOST_RUN_AGAIN:  # alone, because load on the machine makes some tests fail
        chosen = [[x for x in each.outcomes if same_name(x) in failing] for each in (plain, routed)]
        runs = both("-again", chosen, given.seconds and SECONDS_AGAIN)
        again = [{same_name(x): outcome for x, outcome in each.outcomes.items()} for each in runs]
    unexpected = 0
    for test in failing:
        why = next((why for pattern, why in expected.items() if fnmatch.fnmatchcase(test, pattern)), None)
        unexpected += why is None
        print(f"  {test}: {'as expected: ' + why if why else 'FAILS WITH RAPT'}")
        print(f"    {ours.get(test, MISSING).kind}: {shortened(ours.get(test, MISSING).text)}")
        if again[0]:
            one, other = (each.get(test, MISSING).kind for each in again)
            print(f"    run again: {one} without rapt, {other} with it")
    better = worse(ours, theirs)
    print(f"{len(better)} tests pass only with rapt" + "".join(f"\n  {x}" for x in better))
    print(f"{unexpected} tests fail because of rapt, {len(failing) - unexpected} as expected; logs in {given.keep}")
    passed = sum(x.kind == "passed" for x in ours.values())
    if not passed or not routed.through:
        print("no test passed with rapt, or no call went through it: nothing was compared")
    return bool(unexpected or not passed or not routed.through or not plain.finished or not routed.finished)
