#!/usr/bin/env python3
"""docs/guide/options.md, out of the table of options that the command prints.

options_page.py COMMAND [PAGE]     writes PAGE (docs/guide/options.md)
"""

import itertools
import json
import pathlib
import subprocess
import sys

HEAD = """# Options

Every option there is, and what it is called where you are. The table is
[`src/nn/option_table.cc`](../../src/nn/option_table.cc); this page is written from it (`scripts/options_page.py`), and
tests hold the C++ structs, the C structs, the Python package, the command and this page to it. `rapt options window`
shows a part of it in a terminal. What the options of attention do, in order, is in
[`attention.h`](../../include/rapt/attention.h).

Where a column has no name, it says why.
"""

# What each struct is, and where it goes.
SECTIONS = {
    "AttentionOptions": "Options of `attention` and `attention_backward`.",
    "Mask": "One of the masks. [Masks](masks.md) has the conventions of other libraries beside it.",
    "Alignment": "Where query 0 stands, for causal, window and ALiBi. Must be named when Lq ≠ Lk.",
    "Window": "",
    "PackedSequences": "",
    "Pages": "",
    "Dropout": "",
    "MultiHeadAttentionConfig": "What a layer is made of: its constructor's arguments. `rapt run` has a file for it.",
    "HeadSlice": "",
    "RotaryOptions": "",
    "RotaryScaling": "",
    "RotaryScaling::Yarn": "",
    "LayerOptions": "Options of one call of a layer.",
    "LoadOptions": "How a layer is read from a file.",
    "SaveOptions": "How a layer is written to one.",
    "KvCacheConfig": "What a cache is made of.",
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
    lines += ["| option | unless given | meaning | C | Python | `rapt run` |", "|---|---|---|---|---|---|"]
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
