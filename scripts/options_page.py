#!/usr/bin/env python3
"""Generates docs/guide/options.md from the table of options that the command prints.

options_page.py COMMAND [PAGE]     writes PAGE (docs/guide/options.md)
"""

import itertools
import json
import pathlib
import subprocess
import sys

HEAD = """# Options

All options, and their names in C++, C, Python and on the command line. `scripts/options_page.py` generates this page
from [`src/nn/option_table.cc`](../../src/nn/option_table.cc); tests check the C++ structs, the C structs, the Python
package, the command and this page against that table. `rapt options window` prints a part of it in a terminal.
[`attention.h`](../../include/rapt/attention.h) describes how the options of attention are applied, in order.

If an interface lacks an option, its column gives the reason.
"""

# The description of each struct, in the order of the page.
SECTIONS = {
    "AttentionOptions": "Options of `attention` and `attention_backward`.",
    "Mask": "A mask. [Masks](masks.md) compares the conventions of other libraries.",
    "Alignment": "Position of query 0 for causal, window and ALiBi. Required when Lq ≠ Lk.",
    "Window": "",
    "PackedSequences": "",
    "Pages": "",
    "Dropout": "",
    "MultiHeadAttentionConfig": (
        "Constructor arguments of a layer. `rapt run --model FILE` reads some of them from the shapes in the file, as\n"
        "marked; most others have a flag."
    ),
    "HeadSlice": "",
    "RotaryOptions": "",
    "RotaryScaling": "",
    "RotaryScaling::Yarn": "",
    "LayerOptions": "Options of one call of a layer.",
    "LoadOptions": "Options for loading a layer from a file.",
    "SaveOptions": "Options for saving a layer to a file.",
    "KvCacheConfig": "Constructor arguments of a KV cache.",
}


def table_of(command):
    """The rows of the table, as the command prints them."""
    result = subprocess.run([command, "options", "--json"], capture_output=True, check=True, encoding="utf-8")
    return json.loads(result.stdout)["options"]


def cell(surface):
    if "names" in surface:
        return " ".join(f"`{name}`" for name in surface["names"])
    return f"*{surface['why_not']}*"


def section(of, rows):
    lines = [f"## {of}", ""]
    if SECTIONS[of]:
        lines += [SECTIONS[of], ""]
    lines += ["| option | default | meaning | C | Python | `rapt run` |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [
            f"`{row['name']}`",
            row["default"],
            row["meaning"],
            *(cell(row[s]) for s in ("c", "python", "command")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_of(table):
    sections = [section(of, rows) for of, rows in itertools.groupby(table, key=lambda row: row["of"])]
    return "\n".join([HEAD, *sections])


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    root = pathlib.Path(__file__).resolve().parent.parent
    page = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else root / "docs" / "guide" / "options.md"
    page.write_text(page_of(table_of(sys.argv[1])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
