"""Reads the public names of the Python package, with signatures and docstrings, without importing it.

Names are those of __all__. Declarations in a stub (.pyi) are shown as in the stub; docstrings may be in the stub or in
the module beside it.
"""

import ast
import dataclasses
import inspect


@dataclasses.dataclass
class Function:
    name: str
    signature: str  # "def attention(query, key, …)"
    doc: str


@dataclasses.dataclass
class Class:
    name: str
    bases: list
    doc: str
    fields: list  # "left: int | None = None"
    methods: list


def documented(node):
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def signature_of(node, width=100):
    """A function's signature, with one argument per line if it is long."""
    head = f"def {node.name}("
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    one = head + ast.unparse(node.args) + ")" + returns
    decorators = [f"@{ast.unparse(each)}\n" for each in node.decorator_list if "overload" not in ast.unparse(each)]
    if len(one) > width:
        given, parts = node.args, []
        positional = [*given.posonlyargs, *given.args]
        defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
        for number, (argument, default) in enumerate(zip(positional, defaults)):
            parts.append(written(argument, default))
            if number + 1 == len(given.posonlyargs):
                parts.append("/")
        if given.vararg:
            parts.append("*" + written(given.vararg, None))
        elif given.kwonlyargs:
            parts.append("*")
        parts += [written(argument, default) for argument, default in zip(given.kwonlyargs, given.kw_defaults)]
        if given.kwarg:
            parts.append("**" + written(given.kwarg, None))
        one = head + "\n" + "".join(f"    {part},\n" for part in parts) + ")" + returns
    return "".join(decorators) + one


def written(argument, default):
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def public(name):
    return not name.startswith("_") or name in ("__init__", "__call__")


def read_class(node, documented_node):
    methods, fields = [], []
    docs = {
        each.name: documented(each)
        for each in getattr(documented_node, "body", [])
        if isinstance(each, ast.FunctionDef)
    }
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and public(each.name):
            methods.append(Function(each.name, signature_of(each), documented(each) or docs.get(each.name, "")))
        elif isinstance(each, (ast.AnnAssign, ast.Assign)):
            target = each.target if isinstance(each, ast.AnnAssign) else each.targets[0]
            if isinstance(target, ast.Name) and public(target.id):
                fields.append(ast.unparse(each))
    doc = documented(node) or (documented(documented_node) if documented_node else "")
    return Class(node.name, [ast.unparse(base) for base in node.bases], doc, fields, methods)


def read_package(folder):
    """The functions and classes of __all__, in the order of the files that have them."""
    found = {}
    for path in [*sorted(folder.glob("**/*.pyi")), *sorted(folder.glob("**/*.py"))]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(node.name, []).append(node)
    offered = []
    for node in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            offered = ast.literal_eval(node.value)
    functions, classes = [], []
    for name in offered:
        if name not in found:
            continue
        nodes = found[name]
        with_doc = next((node for node in nodes if documented(node)), nodes[0])
        if isinstance(nodes[0], ast.ClassDef):
            classes.append(read_class(nodes[0], with_doc))
        else:
            functions.append(Function(name, signature_of(nodes[0]), documented(with_doc)))
    return functions, classes
