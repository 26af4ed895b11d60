"""The stubs of the layer and of pictures match the package."""

import ast
import importlib
import inspect
import pathlib

import pytest

import rapt

FOLDER = pathlib.Path(rapt.__file__).parent


def parameters(function):
    """name -> default as source text, None if there is none; names after "*" are keyword-only."""
    arguments = function.args
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    found = {a.arg: d for a, d in zip(arguments.args, defaults, strict=True)}
    found |= {f"*{a.arg}": d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    return {name: default and ast.literal_eval(default) for name, default in found.items()}


def actual(function):
    def name(parameter):
        return f"*{parameter.name}" if parameter.kind is parameter.KEYWORD_ONLY else parameter.name

    found = inspect.signature(function).parameters.values()
    return {name(p): None if p.default is p.empty else p.default for p in found}


def compare(stub, there):
    """Every name of the stub exists, and every public name is in the stub, with the same arguments."""
    named = {}
    for node in stub.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            named[node.name] = node
    for name, node in named.items():
        if isinstance(node, ast.ClassDef):
            compare(node, getattr(there, name))
            continue
        found = inspect.getattr_static(there, name)
        if isinstance(found, property):
            assert any(ast.unparse(d) in ("property", f"{name}.setter") for d in node.decorator_list), name
            continue
        function = getattr(found, "__func__", found)
        assert actual(function) == parameters(node), name
        assert function.__doc__ or name.startswith("_"), f"{name} says nothing about itself"
    if inspect.isclass(there):
        public = {name for name in vars(there) if not name.startswith("_")}
        assert public == {name for name in named if not name.startswith("_")}


@pytest.mark.parametrize("stub, module", [
    ("_layer.pyi", "rapt._layer"),
    ("_layer_parameters.pyi", "rapt._layer_parameters"),
    ("_picture/__init__.pyi", "rapt._picture"),
])
def test_stubs_agree_with_the_package(stub, module):
    compare(ast.parse((FOLDER / stub).read_text()), importlib.import_module(module))


def test_all_that_is_public_says_what_it_is():
    for name in ("MultiheadAttention", "find_attention_layers", "show", "Picture", "LayerConfig", "LayerActivations",
                 "RotaryOptions", "RotaryScaling", "FoundLayer", "LayerResult", "LayerGradients", "ParameterGradients",
                 "HeadSlice", "IncompatibleKeys", "StateDictError"):
        assert name in rapt.__all__
        assert len(getattr(rapt, name).__doc__) > 40, name
