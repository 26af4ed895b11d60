#!/usr/bin/env python3
"""Every C++ block of README.md must stand, line for line, in a file that the tests compile and run."""

import pathlib
import re
import sys
import textwrap


def main():
    root = pathlib.Path(sys.argv[1])
    compiled = [path for folder in ("examples", "tests/consumer") for path in sorted((root / folder).glob("*.cc"))]
    sources = {path: [line.strip() for line in path.read_text(encoding="utf-8").splitlines()] for path in compiled}
    blocks = re.findall(r"^```cpp\n(.*?)^```", (root / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        wanted = [line.strip() for line in block.splitlines()]
        found = any(lines[at:at + len(wanted)] == wanted for lines in sources.values() for at in range(len(lines)))
        if not found:
            print("this block of README.md is in no example:\n" + textwrap.indent(block, "    "))
            return 1
    print(f"{len(blocks)} blocks")
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main())
