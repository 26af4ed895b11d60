"""The guide's pages on the bridges, with everything they need installed; and the bridges' type stubs."""

import ast
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_every_block_of_the_pages_runs():
    """Each page is one test of test_guide.py, which skips what is not installed; here nothing may be skipped."""
    tests = ROOT / "bindings" / "python" / "tests" / "test_guide.py"
    pages = [path.name for path in (ROOT / "docs" / "guide").glob("bridges*.md")]
    run = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", tests, "-k", "bridges"],
                         capture_output=True, text=True, timeout=1200, cwd=ROOT)  # fmt: skip
    assert f" {len(pages)} passed" in run.stdout and "skipped" not in run.stdout, run.stdout + run.stderr


def parameters_of_stub(node):
    """(name, default as source text or None) of every parameter."""
    given = node.args
    defaults = [None] * (len(given.args) - len(given.defaults)) + [ast.unparse(x) for x in given.defaults]
    found = [(x.arg, default) for x, default in zip(given.args, defaults)]
    return [*found, (f"**{given.kwarg.arg}", None)] if given.kwarg else found


def parameters_of(function):
    def default(x):
        return None if x.default is x.empty else "..." if callable(x.default) else ast.unparse(ast.Constant(x.default))

    return [(f"**{x.name}" if x.kind == x.VAR_KEYWORD else x.name, default(x))
            for x in inspect.signature(function).parameters.values()]  # fmt: skip


@pytest.mark.parametrize("name", ["onnx", "transformers"])
def test_stubs_agree_with_the_module(name):
    module = importlib.import_module(f"rapt.{name}")
    tree = ast.parse(pathlib.Path(module.__file__).with_suffix(".pyi").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(functions) | set(classes) == set(module.__all__)
    for function, node in functions.items():
        assert parameters_of_stub(node) == parameters_of(getattr(module, function)), function
    for class_name, node in classes.items():
        for method in (x for x in node.body if isinstance(x, ast.FunctionDef) and x.name != "__init__"):
            found = parameters_of(getattr(getattr(module, class_name), method.name))
            stubbed = parameters_of_stub(method)[1:]  # without cls or self
            assert stubbed == [x for x in found if x[0] != "self"], f"{class_name}.{method.name}"


@pytest.mark.parametrize("name", ["onnx", "transformers"])
def test_everything_public_is_documented(name):
    module = importlib.import_module(f"rapt.{name}")
    assert inspect.getdoc(module)
    for public in module.__all__:
        assert inspect.getdoc(getattr(module, public)), public
