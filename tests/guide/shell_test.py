#!/usr/bin/env python3
"""Runs every sh block of the guide as a reader would type it.

    shell_test.py ROOT BUILD COMMAND

The blocks of a page run one after the other in one shell, in a temporary folder that is also HOME; a line that fails
ends the shell. Blocks with a name for their file (<!-- file first.cc -->) are stored there. The built command is on
PATH; build/release is the build under test, so that a page can install it and use the result. `make` is a dry run: it
only checks that a target exists. A page that would install a system package fails, also if it does so through make. The
output shown below a block must be everything that it prints to stdout and stderr.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import blocks

MARK = "\x1e"  # printed before each block, to separate the outputs
DRY_MAKE = """#!/bin/sh
exec {make} --no-print-directory --dry-run --directory {root} "$@" >/dev/null
"""
INSTALLERS = ("apt-get", "apt", "sudo")
NO_INSTALLER = """#!/bin/sh
echo "$(basename "$0"): a test must not install anything" >&2
exit 1
"""


class Shell:
    def __init__(self, root, build, command):
        self.root, self.build, self.command = (pathlib.Path(path).resolve() for path in (root, build, command))

    def environment(self, home, tools):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("RAPT_", "CMAKE_", "PKG_CONFIG"))}
        return {
            **keep,
            "HOME": str(home),
            "PATH": f"{tools}:{self.command.parent}:{keep['PATH']}",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "RAPT_SOURCE": str(self.root),
        }

    def prepare(self, folder, page):
        """Creates the folder that the page runs in, with its files, and the folder with the tools."""
        home, tools = pathlib.Path(folder, "home"), pathlib.Path(folder, "tools")
        (home / "build").mkdir(parents=True)
        (home / "build" / "release").symlink_to(self.build)
        for block in page:
            if block.file:
                (home / block.file).write_text(block.text, encoding="utf-8")
        tools.mkdir()
        programs = {"make": DRY_MAKE.format(make=shutil.which("make"), root=self.root)}
        for name, text in {**programs, **dict.fromkeys(INSTALLERS, NO_INSTALLER)}.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        return home, tools

    def complaints(self, page):
        """The errors in the blocks of one page, and the number of blocks that ran."""
        mine = [block for block in page if block.language == "sh" and not block.why_not_run]
        script = "".join(f"printf '{MARK}%s\\n' {number}\n{block.text}" for number, block in enumerate(mine))
        with tempfile.TemporaryDirectory() as folder:
            home, tools = self.prepare(folder, page)
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=home,
                env=self.environment(home, tools),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
        parts = [part.partition("\n")[2] for part in result.stdout.split(MARK)[1:]]
        wrong = [blocks.complaint(block, printed) for block, printed in zip(mine, parts)]
        if result.returncode != 0 or len(parts) != len(mine):
            wrong[-1] = f"{mine[len(parts) - 1].place}: ended with {result.returncode}:\n{parts[-1]}"
        return [*filter(None, wrong)], len(parts)


def proves_itself(shell):
    """On made-up pages: files persist between blocks; failures, wrong output, missing make targets and package
    installations are detected."""

    def wrong(text):
        return shell.complaints(blocks.read_page("page.md", text))[0]

    good = (
        "```sh\necho 1 > a\nexport A=a\n```\n```sh\ncat $A\nrapt --version\nmake test\n```\n```text\n1\nrapt …\n```\n"
    )
    assert wrong(good) == [], wrong(good)
    for was, becomes in (
        ("cat $A", "cat b"),
        ("text\n1", "text\n2"),
        ("make test", "make tset"),
        ("make test", "apt-get install hello"),
        ("cat $A", "false; cat a"),
    ):
        assert was in good and wrong(good.replace(was, becomes)), (was, becomes)


def main():
    shell = Shell(*sys.argv[1:4])
    proves_itself(shell)
    wrong, count = [], 0
    for page in blocks.read_pages(shell.root).values():
        more, ran = shell.complaints(page)
        wrong += more
        count += ran
    for each in wrong:
        print(each)
    print(f"{count} blocks of shell, {len(wrong)} of them wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
