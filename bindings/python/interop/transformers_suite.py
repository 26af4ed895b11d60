"""transformers' own tests of its models, with rapt in the place of PyTorch's attention.

    python transformers_suite.py FOLDER [PYTEST ARGUMENTS]

FOLDER is a checkout of transformers, of which only tests/ is read; its version should be that which is installed. The
tests of MODELS run twice, as they are and on rapt: there, the default implementation is "rapt", and so is what tests ask
for as "sdpa" and expect to find afterwards. It ends with the tests whose outcomes differ; it fails where a test passes as
it is and not on rapt. Nothing is downloaded: tests that need to are the same both times.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import subprocess
import sys

MODELS = ["llama", "mistral", "bert", "t5", "gemma2", "whisper", "gpt2", "bloom"]
# Tests that pass with sdpa and may fail with rapt: a part of the name, and why.
EXPECTED = {"fullgraph": "compiles the whole model as one graph; attention on rapt is a break in the graph"}
_ON_RAPT, _OUTCOMES = "RAPT_SUITE_ON_RAPT", "RAPT_SUITE_OUTCOMES"


# ---------------------------------------------------------------- inside pytest, as a plugin


class _Adapted(ast.NodeTransformer):
    """A test module that says "rapt" where it said "sdpa", and does without names that this transformers does not have."""

    def visit_Constant(self, node):
        on_rapt = os.environ[_ON_RAPT] == "1" and node.value == "sdpa"
        return ast.copy_location(ast.Constant("rapt"), node) if on_rapt else node

    def visit_ImportFrom(self, node):
        if node.level or node.module.partition(".")[0] != "transformers":
            return node
        lines = "".join(
            f"try: from {node.module} import {x.name} as {x.asname or x.name}\nexcept ImportError: {x.asname or x.name} = None\n"
            for x in node.names
        )
        return ast.parse(lines).body


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        tree = ast.parse(self.get_data(self.path), self.path)
        return compile(ast.fix_missing_locations(_Adapted().visit(tree)), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "tests":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _make_rapt_the_default():
    from transformers import PreTrainedModel

    import rapt.transformers  # noqa: F401
    from rapt.bridges.transformers.models import why_not

    check = PreTrainedModel.get_correct_attn_implementation

    def with_default(self, requested_attention, *args, **kwargs):
        if requested_attention is None:
            requested_attention = "eager" if why_not(type(self)) else "rapt"
        return check(self, requested_attention, *args, **kwargs)

    PreTrainedModel.get_correct_attn_implementation = with_default


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        text = report.longrepr.reprcrash.message if hasattr(report.longrepr, "reprcrash") else str(report.longrepr or "")
        with open(os.environ[_OUTCOMES], "a") as file:
            print(json.dumps([report.nodeid, report.outcome, text.strip()[:300]]), file=file)


if _ON_RAPT in os.environ:
    sys.meta_path.insert(0, _Finder())
    if os.environ[_ON_RAPT] == "1":
        _make_rapt_the_default()


# ---------------------------------------------------------------- around it


def outcomes(folder, on_rapt, arguments):
    """{test: (outcome, what it says)}"""
    file = pathlib.Path(folder) / f"outcomes-{'rapt' if on_rapt else 'sdpa'}.jsonl"
    file.unlink(missing_ok=True)
    here = pathlib.Path(__file__).resolve()
    environment = os.environ | {
        _ON_RAPT: str(int(on_rapt)), _OUTCOMES: str(file.resolve()), "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    tests = [f"tests/models/{name}/test_modeling_{name}.py" for name in MODELS]
    # Asserts are not rewritten, since pytest would read the files itself.
    command = [sys.executable, "-m", "pytest", "-q", "--assert=plain", "-p", here.stem, "-p", "no:cacheprovider"]
    subprocess.run([*command, *tests, *arguments], cwd=folder, env=environment, check=False)
    found = {}
    for test, outcome, text in map(json.loads, file.read_text().splitlines()):  # several where a test has subtests
        if test not in found or outcome == "failed":
            found[test] = outcome, text
    return found


def main(folder, *arguments):
    theirs, ours = (outcomes(folder, on_rapt, arguments) for on_rapt in (False, True))
    for name, found in (("sdpa", theirs), ("rapt", ours)):
        kinds = [outcome for outcome, _ in found.values()]
        print(f"{name}: {len(kinds)} tests, " + ", ".join(f"{kinds.count(x)} {x}" for x in sorted(set(kinds))))
    # The names of parametrised tests say the implementation.
    theirs = {test.replace("sdpa", "rapt"): each for test, each in theirs.items()}
    ours = {test.replace("sdpa", "rapt"): each for test, each in ours.items()}
    worse = 0
    for test in sorted(theirs.keys() | ours.keys()):
        one, other = theirs.get(test, ("missing", "")), ours.get(test, ("missing", ""))
        if one[0] != other[0]:
            expected = next((why for part, why in EXPECTED.items() if part in test), None)
            worse += one[0] == "passed" and expected is None
            print(f"{test}{'' if expected is None else ' (expected: ' + expected + ')'}")
            print(f"  sdpa: {one[0]} {one[1]}\n  rapt: {other[0]} {other[1]}")
    print(f"{worse} tests pass with sdpa and fail with rapt, besides those that are expected to")
    if not any(outcome == "passed" for outcome, _ in ours.values()):
        print("no test passed with rapt: nothing was compared")
        return True
    return worse > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
