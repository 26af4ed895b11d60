"""The package as it is installed: version, command, documentation, and stubs that agree with it."""

import ast
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
import rapt
from rapt import _rapt

FOLDER = pathlib.Path(rapt.__file__).parent


def test_the_version_is_that_of_cmakelists(root):
    version = re.search(r"project\(rapt VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    assert rapt.__version__ == version


def test_the_command_is_installed_with_it():
    command = shutil.which("rapt", path=sysconfig.get_path("scripts"))
    if command is None and not os.environ.get("RAPT_TEST_INSTALLED"):
        pytest.skip("the package is used without being installed")
    run = subprocess.run([command, "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert rapt.__version__ in run.stdout


def test_everything_public_is_documented():
    for name in rapt.__all__:
        if name == "__version__":
            continue
        thing = getattr(rapt, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, (property, staticmethod))):
                    assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


def test_help_says_what_every_option_means():
    doc = inspect.getdoc(rapt.attention)
    for parameter in inspect.signature(rapt.attention).parameters:
        assert re.search(rf"^(\w+, )?{parameter}(:|, \w+:)|\b{parameter} is \(", doc, re.M), parameter


def test_no_other_library_is_imported_with_it():
    code = "import sys, rapt; print(*{'torch', 'transformers', 'onnx', 'onnxruntime', 'jax'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == []


def test_all_names_are_there_and_no_others():
    public = {name for name in vars(rapt) if not name.startswith("_") and not inspect.ismodule(getattr(rapt, name))}
    assert public | {"__version__"} == set(rapt.__all__)


# ---------------------------------------------------------------- stubs

# mypy's errors for every nanobind module: its functions and classes have nanobind's own types.
NANOBIND = re.compile(
    r"is not a function|metaclass differs|is a disjoint base|__init__ is inconsistent, stub does not have \*args"
    r"|__buffer__ is not present"
)


# Modules that connect rapt with another library can be checked only if that library is installed. (rapt.torch has its
# types in the code itself, and rapt.bridges is covered by the stubs of the other two.)
PEERS = ("torch", "transformers", "onnx")
PEER_MISSING = re.compile(rf"failed to import\..* No module named '({'|'.join(PEERS)})'")
BRIDGES = f"""
[mypy-{','.join(f'{name}.*' for name in PEERS)}]
ignore_missing_imports = True
[mypy-rapt.bridges.*]
ignore_errors = True
"""


def test_stubs_agree_with_the_modules(tmp_path):
    pytest.importorskip("mypy")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n" + BRIDGES)
    run = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "--mypy-config-file", config, "rapt"],
                         capture_output=True, text=True, timeout=300, cwd=tmp_path)
    lines = run.stdout.splitlines()
    assert any(line.startswith("rapt._rapt.attention ") for line in lines), run.stdout + run.stderr  # it did run
    assert [line for line in lines if not NANOBIND.search(line) and not PEER_MISSING.search(line)] == []


TYPED = """
import numpy as np
import rapt

q = np.zeros((1, 1, 2, 4), np.float32)
out = rapt.attention(q, q, q, causal=True, mask=[rapt.Mask.keep(q > 0), q[0, 0]], window=(1, None), alignment="top_left")
shape: tuple[int, ...] = out.shape
result = rapt.attention(q, q, q, return_weights="mean", captures=rapt.Capture("raw", heads=[0]))
mean = result.weights
cache = rapt.KvCache(head_size=4, length=8)
cache.append([cache.add()], q, q)
view = rapt.attention(memoryview(b""), cache=cache.view([0]), out=q)
gradients = rapt.attention_backward(q, q, q, q, gradients=["dquery"])
rapt.save("x.safetensors", {"q": q})
"""
WRONG = {
    "rapt.attention(q, q, q, sofcap=1.0)": 'did you mean "softcap"',
    'rapt.attention(q, q, q, engine="gpu")': "No overload variant",
    "rapt.attention([1.0], q, q)": "No overload variant",
    "rapt.attention(q, q, q).lse": 'no attribute "lse"',
    "rapt.KvCache(heads=2, head_size=4)": 'Unexpected keyword argument "heads"',
}


def test_a_typed_program_is_right_and_wrong_calls_are_found(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(TYPED + "\n".join(WRONG))
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", program.name],
                         capture_output=True, text=True, timeout=300, cwd=tmp_path)
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    first = TYPED.count("\n") + 1
    for n, text in enumerate(WRONG.values()):
        assert any(line.startswith(f"program.py:{first + n}:") and text in line for line in errors), (text, errors)
    assert all(int(line.split(":")[1]) >= first for line in errors), errors


def stub_functions():
    """Functions and methods of _rapt.pyi, by name."""
    tree = ast.parse((FOLDER / "_rapt.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, getattr(_rapt, node.name), node
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                # __buffer__ is a slot of the type, which has a name only since Python 3.12.
                if isinstance(method, ast.FunctionDef) and not method.decorator_list and method.name != "__buffer__":
                    yield f"{node.name}.{method.name}", getattr(getattr(_rapt, node.name), method.name), method


def parameters(signature):
    arguments = signature.args
    defaults = [ast.unparse(x) for x in arguments.defaults]
    named = [x for x in arguments.args if x.arg != "self"]
    positional = [(x.arg, y) for x, y in zip(reversed(named), reversed([None] * len(named) + defaults))][::-1]
    keywords = [(x.arg, y and ast.unparse(y)) for x, y in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return positional, keywords


@pytest.mark.parametrize(("function", "node"), [pytest.param(f, n, id=name) for name, f, n in stub_functions()])
def test_stubs_have_the_extensions_parameters(function, node):
    if node.name.startswith("__") and node.name not in ("__init__", "__dlpack__"):
        return  # Python itself gives these their parameters
    (text, _, defaults), *others = function.__nb_signature__
    assert not others
    for n, default in enumerate(defaults or ()):
        text = text.replace(f"\\{n}", repr(default))
    theirs = ast.parse(f"{text}: ...").body[0]
    assert parameters(node) == parameters(theirs)
