#!/usr/bin/env python3
"""Runs PyTorch's own tests of attention twice, without rapt and inside rapt.torch.enable, and compares.

    bindings/python/interop/run_torch_suite.py FOLDER [--tests EXPRESSION] [--keep FOLDER]

FOLDER is `test` of PyTorch's sources, of about the version that is installed; none of it is part of this project. The
files are test_transformers.py and nn/test_multihead_attention.py, and their classes for the CPU. EXPRESSION chooses
among them, as pytest's -k does.

It fails where a test passes without rapt and not with it, unless EXPECTED names the test and the reason. At the end it
says how many calls went through rapt, and why others did not.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

FILES = ("nn/test_multihead_attention.py", "test_transformers.py")

# Tests that pass without rapt and may fail with it: a pattern of the name, and why.
_NAN = "demands NaN for a query that sees no key; rapt gives 0"
_MOCK = "puts a mock in the place of PyTorch's fast path and demands that it is called"
_SEED = "demands the dropout that a scripted copy of the model draws from the same seed; rapt draws another"
EXPECTED = {
    "TestMultiheadAttentionNN.test_multihead_attention_average_attn_weights_*": _NAN,
    "TestMultiheadAttentionNNDeviceTypeCPU.test_multihead_self_attn_two_masks_fast_path_mock_cpu": _MOCK,
    "TestTransformersCPU.test_disable_fastpath_cpu": _MOCK,
    "TestTransformersCPU.test_mask_check_fastpath_cpu": _MOCK,
    "TestTransformersCPU.test_transformerencoderlayer_subclass_cpu": _SEED,
    "TestTransformersCPU.test_transformerencoderlayer_subclass_model_cpu": _SEED,
}


# ---------------------------------------------------------------- pytest's plugin, for the run with rapt


def pytest_configure(config):
    """Before PyTorch's tests are imported: some import the functions by name."""
    import rapt.torch

    config.rapt_routing = rapt.torch.enable(all_threads=True)


def pytest_unconfigure(config):
    import rapt.torch

    config.rapt_routing.undo()
    found = rapt.torch.calls()
    pathlib.Path(os.environ["RAPT_SUITE_CALLS"]).write_text(json.dumps([found.rapt, found.pytorch]))


# ---------------------------------------------------------------- outside


def run(folder, file, keep, with_rapt, arguments):
    """({test: outcome}, [calls through rapt, {reason: others}])."""
    name = pathlib.Path(file).stem + ("-rapt" if with_rapt else "-plain")
    report, counts = keep / f"{name}.xml", keep / f"{name}.json"
    here = pathlib.Path(__file__).resolve()
    environment = os.environ | {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", "RAPT_SUITE_CALLS": str(counts)}
    environment["PYTHONPATH"] = os.pathsep.join([str(here.parent), str(folder)])
    plugin = ["-p", here.stem] if with_rapt else []
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *plugin, *arguments]
    with open(keep / f"{name}.log", "w") as log:
        subprocess.run([*command, f"--junitxml={report}", file], cwd=folder, env=environment, stdout=log, stderr=log)
    if not report.exists():
        sys.exit(f"{file}: pytest did not finish; see {keep / name}.log")
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcomes[f"{case.get('classname').split('.')[-1]}.{case.get('name')}"] = kinds.pop() if kinds else "passed"
    return outcomes, json.loads(counts.read_text()) if with_rapt else [0, {}]


def count(outcomes):
    kinds = sorted(set(outcomes.values()))
    return ", ".join(f"{sum(x == kind for x in outcomes.values())} {kind}" for kind in kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="`test` of PyTorch's sources")
    parser.add_argument("--tests", default="", help="an expression, as pytest's -k takes it")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for logs and reports")
    given = parser.parse_args()
    keep = given.keep or pathlib.Path(tempfile.mkdtemp(prefix="torch-suite-"))
    keep.mkdir(parents=True, exist_ok=True)
    arguments = ["-k", given.tests] if given.tests else []
    worse, through, passed, past = [], 0, 0, {}
    for file in FILES:
        plain, _ = run(given.folder.resolve(), file, keep, False, arguments)
        print(f"{file} without rapt: {count(plain)}", flush=True)
        routed, (ours, others) = run(given.folder.resolve(), file, keep, True, arguments)
        print(f"{file} with rapt:    {count(routed)}; {ours} calls through rapt, others {others}", flush=True)
        worse += [name for name, kind in plain.items() if kind == "passed" and routed.get(name) != "passed"]
        through += ours
        passed += sum(kind == "passed" for kind in plain.values())
        past = {reason: past.get(reason, 0) + others.get(reason, 0) for reason in past | others}
    unexpected = 0
    for name in worse:
        reason = next((why for pattern, why in EXPECTED.items() if fnmatch.fnmatchcase(name, pattern)), None)
        unexpected += reason is None
        print(f"  {name}: {reason or 'FAILS WITH RAPT'}")
    print(f"{unexpected} tests fail because of rapt, {len(worse) - unexpected} as expected; {through} calls through "
          f"rapt, others: {past}; logs in {keep}")
    if passed == 0 or through == 0:
        sys.exit("no test passed without rapt, or no call went through it: nothing was compared")
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    main()
