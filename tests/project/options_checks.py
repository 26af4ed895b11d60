"""Checks the table of options against headers, stubs, a help text and a page, each read as text.

Every wrong_in_… takes the table, as `rapt options --json` prints it, and one such text, and returns the errors.
tests/project/options_test.py runs them.
"""

import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import options_page  # in the folder that the line above adds

# The C++ header of each struct of the table.
HEADERS = {
    "AttentionOptions": "attention.h",
    "Mask": "attention.h",
    "Alignment": "attention.h",
    "Window": "attention.h",
    "PackedSequences": "attention.h",
    "Pages": "attention.h",
    "Dropout": "attention.h",
    "MultiHeadAttentionConfig": "multi_head_attention.h",
    "HeadSlice": "multi_head_attention.h",
    "LayerOptions": "multi_head_attention.h",
    "RotaryOptions": "rotary.h",
    "RotaryScaling": "rotary.h",
    "RotaryScaling::Yarn": "rotary.h",
    "LoadOptions": "layer_names.h",
    "SaveOptions": "layer_names.h",
    "KvCacheConfig": "kv_cache.h",
}

# The C struct with the fields of a C++ struct, and the prefix of their names in it.
C_STRUCTS = {
    "AttentionOptions": ("rapt_attention_options", ""),
    "Mask": ("rapt_mask", ""),
    "Alignment": ("rapt_attention_options", "alignment_"),
    "Window": ("rapt_attention_options", "window_"),
    "PackedSequences": ("rapt_attention_options", "packed_"),
    "Pages": ("rapt_attention_options", "pages_"),
    "Dropout": ("rapt_attention_options", "dropout_"),
    "MultiHeadAttentionConfig": ("rapt_layer_config", ""),
    "HeadSlice": ("rapt_layer_config", "slice_"),
    "RotaryOptions": ("rapt_rotary_options", ""),
    "RotaryScaling": ("rapt_rotary_options", "scaling_"),
    "RotaryScaling::Yarn": ("rapt_rotary_options", "scaling_ramp_"),
    "LayerOptions": ("rapt_layer_options", ""),
    "LoadOptions": ("rapt_load_options", ""),
    "SaveOptions": ("rapt_save_options", ""),
    "KvCacheConfig": ("rapt_kv_cache_config", ""),
}

# What replaces a C++ struct in Python: functions with keywords, classes with fields.
PYTHON = {
    "AttentionOptions": ["attention", "attention_backward", "Options"],
    "Mask": ["Mask"],
    "Alignment": ["attention"],
    "Window": ["attention"],
    "PackedSequences": ["attention"],
    "Pages": ["Pages"],
    "Dropout": ["Dropout"],
    "MultiHeadAttentionConfig": ["MultiheadAttention.__init__"],
    "HeadSlice": ["MultiheadAttention.__init__"],
    "RotaryOptions": ["RotaryOptions"],
    "RotaryScaling": ["RotaryScaling"],
    "RotaryScaling::Yarn": ["RotaryScaling"],
    "LayerOptions": ["MultiheadAttention.forward"],
    "LoadOptions": ["MultiheadAttention.load"],
    "SaveOptions": ["MultiheadAttention.save", "MultiheadAttention.state_dict"],
    "KvCacheConfig": ["KvCache.__init__"],
}
# Classes whose fields are those of the C++ struct.
SAME_IN_PYTHON = {
    "Window": "Window",
    "PackedSequences": "PackedSequences",
    "HeadSlice": "HeadSlice",
    "MultiHeadAttentionConfig": "LayerConfig",
}

# The interfaces of rapt.d.ts that replace a C++ struct, and the fields that they lack.
JAVASCRIPT = {
    "AttentionOptions": {"packed", "pages", "key_scales", "value_scales", "threads", "parallel_for", "workspace",
                         "stream"},
    "Window": set(),
}

# Arguments that are not options: inputs, outputs and others.
ARGUMENTS = {
    "attention": {"query", "key", "value", "cache", "out", "return_lse", "return_weights", "captures"},
    "attention_backward": {"query", "key", "value", "dout", "dlse", "dweights", "out", "lse", "gradients"},
    "MultiheadAttention.__init__": {"device", "seed"},
    "MultiheadAttention.forward": {
        "query",
        "key",
        "value",
        "key_padding_mask",
        "attn_mask",
        "is_causal",
        "out",
        "return_lse",
        "captures",
    },
    "MultiheadAttention.load": {"source"},
    "MultiheadAttention.save": {"path"},
    "MultiheadAttention.state_dict": {"library"},
}
# Options of attention that a layer's call does not have: they belong to a cache.
NOT_OF_LAYERS = {"pages", "key_scales", "value_scales"}

# Flags of `rapt run` that are not options: inputs and outputs.
FILES = {
    "--help",
    "--input",
    "--query",
    "--key",
    "--value",
    "--model",
    "--prefix",
    "--mask-of",
    "--out",
    "--html",
    "--lse",
    "--scores",
    "--json",
}

# The beginnings of defaults in the table for fields that are empty in C++.
EMPTY = (
    "none",
    "no limit",
    "unnamed",
    "undefined",
    "as ",
    "all ",
    "the ",
    "allocated",
    "1/sqrt(D)",
    "0.1 · ln",
    "rate 0",
    "sequence b",
    "empty",
)


def body_of(text, kind, name):
    """The text between the braces of `struct name {`, without comments."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    start = re.search(rf"\b{kind} {name}\s*\{{", text)
    if start is None:
        return None
    depth, at = 1, start.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start.end() : at - 1]


def declarations_of(body):
    """The declarations in a struct's body: up to the semicolon, or to the end of a function's braces."""
    found, begin, depth = [], 0, 0
    for at, letter in enumerate(body):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        ends_function = letter == "}" and depth == 0 and body[begin:at].lstrip().startswith("static")
        if depth == 0 and (letter == ";" or ends_function):
            found.append(" ".join(body[begin:at].split()))
            begin = at + 1
    return found


def cpp_fields(text, name):
    """The fields of a C++ struct, in order: {name: default}."""
    outer, _, inner = name.partition("::")
    body = body_of(text, "struct", outer)
    if body is not None and inner:
        body = body_of(body, "struct", inner)
    if body is None:
        return None
    fields = {}
    for declaration in declarations_of(body):
        if declaration.startswith(("static ", "enum ", "struct ")):
            continue
        for part in re.split(r",(?![^<]*>)", declaration):  # `double a{}, b{}`
            found = re.search(r"(\w+)\s*(?:\{(.*)\}|=\s*(.*))?$", part)
            if found:
                fields[found[1]] = (found[3] or found[2] or "").strip()
    return fields


def same_default(said, written):
    """Whether the table's text for a default matches the default in C++."""
    if not written or written == "nullptr":
        return said.startswith(EMPTY)
    value = written.split("::")[-1]
    try:
        return float(re.split(r"[:\s]", said)[0]) == float(value)
    except ValueError:
        return said.split(":")[0] == value


def wrong_in_cpp(table, headers):
    wrong = []
    for of, header in HEADERS.items():
        rows = {row["name"]: row for row in table if row["of"] == of}
        fields = cpp_fields(headers[header], of)
        if fields is None:
            wrong.append(f"{header} has no struct {of}")
            continue
        if list(rows) != list(fields):
            wrong.append(f"{of}: the table has {list(rows)}, {header} has {list(fields)}")
            continue
        wrong += [
            f"{of}::{name} is {written or 'empty'} in {header}, and {rows[name]['default']} in the table"
            for name, written in fields.items()
            if not same_default(rows[name]["default"], written)
        ]
    wrong += [f"no header is known for {of}" for of in {row["of"] for row in table} - set(HEADERS)]
    return wrong


def c_fields(text, name):
    """The fields of a C struct that are options: not its size, and not parts of another field."""
    body = body_of(text, "typedef struct", name)
    fields = [] if body is None else [declaration.split()[-1].lstrip("*") for declaration in declarations_of(body)]
    of_another = [
        name for field in fields for name in (f"has_{field}", f"{field}_count", f"{field}_context", f"{field}_bytes")
    ]
    return set(fields) - {"struct_size", "reserved"} - set(of_another)


def wrong_in_c(table, header):
    wrong, named = [], {struct: set() for struct, _ in C_STRUCTS.values()}
    for row in table:
        struct, prefix = C_STRUCTS[row["of"]]
        fields, names = c_fields(header, struct), row["c"].get("names", [])
        named[struct].update(names)
        wrong += [
            f"{row['of']}::{row['name']} is {name} in the table, and {struct} has no such field"
            for name in names
            if name not in fields
        ]
        # `window.left` is `window_left`, and a field that is a struct becomes that struct's fields.
        plain = prefix + row["name"]
        wrong += [
            f"{row['of']}::{row['name']} should be {plain} in C, not {name}"
            for name in names
            if name != plain and not name.startswith(plain + "_")
        ]
    wrong += [
        f"{struct}.{field} is in no row of the table"
        for struct, names in named.items()
        for field in sorted(c_fields(header, struct) - names)
    ]
    return wrong


def signatures_of(files):
    """The arguments of functions and the fields of classes: {"attention": [[…], …], "KvCache.__init__": …}.

    There is one list for each definition: in a stub, for each overload, and in the module. Inherited functions are
    included.
    """
    found, bases = {}, {}

    def function(name, node):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        found.setdefault(name, []).append([each.arg for each in arguments if each.arg not in ("self", "cls")])

    for name, text in sorted(files.items()):
        if pathlib.PurePath(name).name == "_rapt.pyi":  # functions in it are not public
            nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
        else:
            nodes = ast.parse(text).body
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                function(node.name, node)
            elif isinstance(node, ast.ClassDef):
                fields = [each.target.id for each in node.body if isinstance(each, ast.AnnAssign)]
                if fields:
                    found.setdefault(node.name, []).append(fields)
                bases.setdefault(node.name, set()).update(ast.unparse(base) for base in node.bases)
                for each in node.body:
                    if isinstance(each, ast.FunctionDef):
                        function(f"{node.name}.{each.name}", each)
    for name, above in bases.items():
        for base in above:
            inherited = {key: value for key, value in found.items() if key.startswith(f"{base}.")}
            for key, value in inherited.items():
                found.setdefault(f"{name}.{key.partition('.')[2]}", value)
    return found


def wrong_in_python(table, files):
    wrong, named = [], {}
    signatures = signatures_of(files)
    for row in table:
        names = row["python"].get("names", [])
        for place in PYTHON[row["of"]]:
            named.setdefault(place, set()).update(names)
    of_attention = {name for row in table if row["of"] == "AttentionOptions" for name in row["python"].get("names", [])}
    named["MultiheadAttention.forward"] |= of_attention - NOT_OF_LAYERS
    for place, names in named.items():
        if place not in signatures:
            wrong.append(f"there is no {place}")
        for arguments in signatures.get(place, []):
            wrong += [f"the table has {name}, {place} has not" for name in sorted(names - set(arguments))]
            wrong += [
                f"{place} has {name}, the table has not"
                for name in sorted(set(arguments) - names - ARGUMENTS.get(place, set()))
            ]
    for of, name in SAME_IN_PYTHON.items():
        wanted = [row["name"] for row in table if row["of"] == of]
        wrong += [
            f"{name} has {fields}, {of} has {wanted}"
            for fields in signatures.get(name, [[]])
            if set(fields) != set(wanted)
        ]
    return wrong


def javascript_fields(text, name):
    """The fields of an interface, without comments."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    start = re.search(rf"\binterface {name} \{{(.*?)\n\}}", text, re.S)
    return re.findall(r"^  (\w+)\??:", start[1], re.M) if start else []


def wrong_in_javascript(table, text):
    """JavaScript has the C++ names in camelCase: `keyLengths` for `key_lengths`."""
    wrong = []
    for of, missing in JAVASCRIPT.items():
        wanted = [row["name"] for row in table if row["of"] == of and row["name"] not in missing]
        wanted = {re.sub(r"_(\w)", lambda found: found[1].upper(), name) for name in wanted}
        fields = set(javascript_fields(text, of))
        wrong += [f"the table has {of}::{name}, {of} of rapt.d.ts has not" for name in sorted(wanted - fields)]
        wrong += [f"{of} of rapt.d.ts has {name}, the table has not" for name in sorted(fields - wanted)]
    return wrong


def wrong_in_command(table, help_text):
    flags = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", help_text, re.M))
    named = {name for row in table for name in row["command"].get("names", [])}
    return (
        [f"the table has {flag}, rapt run has not" for flag in sorted(named - flags)]
        + [f"rapt run has {flag}, the table has not" for flag in sorted(flags - named - FILES)]
        + [f"{flag} is no flag of rapt run any more" for flag in sorted(FILES - flags)]
    )


def wrong_in_page(table, page):
    wanted = options_page.page_of(table)
    if page == wanted:
        return []
    differ = set(page.splitlines()) ^ set(wanted.splitlines())
    return [f"scripts/options_page.py would write another page; they differ in {sorted(differ)[:4]}"]
