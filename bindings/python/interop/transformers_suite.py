"""Runs transformers' own model tests with rapt instead of PyTorch's attention.

    python transformers_suite.py FOLDER [--tests EXPRESSION] [--keep FOLDER] [--jobs N] [--seconds S]

FOLDER is a checkout of transformers, of about the version that is installed; none of it is part of this project. The
tests of MODELS run twice, unchanged and with rapt. In the second run the default implementation is "rapt", and "sdpa"
in the tests is replaced by "rapt". The script lists the tests whose outcomes differ, and fails if a test passes
unchanged and fails with rapt. Nothing is downloaded: tests that need a download have the same outcome in both runs.
"""

import ast
import collections
import importlib.abc
import importlib.machinery
import os
import pathlib
import sys

import suite_support

MODELS = ["llama", "mistral", "bert", "t5", "gemma2", "whisper", "gpt2", "bloom"]
EXPECTED = {}  # tests that pass with sdpa and may fail with rapt: a pattern of the name, and why
_ON_RAPT = "RAPT_SUITE_ON_RAPT"


# ---------------------------------------------------------------- inside pytest, as a plugin


class _Adapted(ast.NodeTransformer):
    """Loads a test module with "sdpa" replaced by "rapt".

    Names that this version of transformers does not have, and libraries that are not installed, are replaced by stubs:
    transformers skips the tests that need them, but some files import them first.
    """

    def visit_Constant(self, node):
        on_rapt = os.environ[_ON_RAPT] == "1" and node.value == "sdpa"
        return ast.copy_location(ast.Constant("rapt"), node) if on_rapt else node

    def visit_ImportFrom(self, node):
        if node.level or node.module.partition(".")[0] in ("__future__", "tests"):
            return node
        return self._names_or_none((f"from {node.module} import {x.name}", x.asname or x.name) for x in node.names)

    def visit_Import(self, node):
        names = ((x, x.asname or x.name.partition(".")[0]) for x in node.names)
        return self._names_or_none((f"import {x.name}" + f" as {x.asname}" * bool(x.asname), name) for x, name in names)

    @staticmethod
    def _names_or_none(imports):
        lines = (
            f"try: {x}{'' if ' as ' in x or x.startswith('import') else f' as {name}'}\n"
            f"except ImportError: {name} = None\n"
            for x, name in imports
        )
        return ast.parse("".join(lines)).body


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

    import rapt.torch
    import rapt.transformers  # noqa: F401
    from rapt.bridges.transformers.models import why_not

    check = PreTrainedModel.get_correct_attn_implementation
    models = collections.Counter()

    def with_default(self, requested_attention, *args, **kwargs):
        asked, why = requested_attention, why_not(type(self))
        if asked is None:
            requested_attention = "eager" if why else "rapt"
        used = check(self, requested_attention, *args, **kwargs)
        if used != "rapt":
            models[f"models on {used}: {f'asked for {asked}' if asked else why}"] += 1
        return used

    PreTrainedModel.get_correct_attn_implementation = with_default
    suite_support.counts = lambda: (rapt.torch.calls().rapt, models)


if _ON_RAPT in os.environ:
    sys.meta_path.insert(0, _Finder())
    if os.environ[_ON_RAPT] == "1":
        _make_rapt_the_default()


# ---------------------------------------------------------------- around it


def main():
    given = suite_support.arguments(__doc__.split("\n")[0], "a checkout of transformers")
    files = [f"tests/models/{name}/test_modeling_{name}.py" for name in MODELS]

    def once(with_rapt, name, tests, seconds):
        environment = {_ON_RAPT: str(int(with_rapt)), "HF_HUB_OFFLINE": "1"}
        return suite_support.run(name, given, tests or files, [pathlib.Path(__file__).stem], environment, seconds)

    # The names of parametrised tests contain the implementation.
    return suite_support.compare(given, once, EXPECTED, lambda test: test.replace("sdpa", "rapt"))


if __name__ == "__main__":
    sys.exit(main())
