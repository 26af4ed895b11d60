#!/usr/bin/env python3
"""Compiles and runs every cpp or every c block of the guide.

    compiled_test.py ROOT cpp|c COMPILER [FLAG …] -- [LINK FLAG …]

To save compile time, the fragments of all pages form one program with a function for each page. A block with main() is
a separate program, compiled unchanged.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

import blocks

MARK = "\x1e"  # printed before each block, to separate the outputs
INCLUDE = re.compile(r"^#\s*include\b.*$", re.M)
# A C++ compiler's driver compiles C as well, and links what the library needs.
STANDARDS = {"cpp": ["-x", "c++", "-std=c++20"], "c": ["-x", "c", "-std=c99"]}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# A fragment may define variables for the reader that nothing uses.
IN_FRAGMENTS = ["-Wno-unused-variable", "-Wno-unused-but-set-variable"]


def lines_of(block, number):
    """A fragment, with a marker before it and line directives, so that errors name the lines of the page."""
    bare = INCLUDE.sub("", block.text)
    return f'  printf("{MARK}{number}\\n"); fflush(stdout);\n#line {block.line} "{block.page}"\n{bare}'


def function_of(page, fragments, numbers):
    """A page's fragments in one function. Each section is a scope that sees the fragments before the first section."""
    name = re.sub(r"\W", "_", page)
    text, section = f"static void {name}(void) {{\n", 0
    for block in fragments:
        if block.section != section:
            text += ("}\n" if section else "") + "{\n"
            section = block.section
        text += lines_of(block, numbers[id(block)])
    return name, text + ("}\n" if section else "") + "}\n"


def fragments_program(pages, language):
    """One source file with all fragments; main's first argument selects the page to run."""
    every = [block for page in pages.values() for block in page]
    numbers = {id(block): number for number, block in enumerate(every)}
    includes = sorted(
        {line for block in every for line in INCLUDE.findall(block.text)}
        | {"#include <stdio.h>", "#include <string.h>"}
    )
    functions = [function_of(page, fragments, numbers) for page, fragments in pages.items() if fragments]
    calls = "".join(f'  if (strcmp(argv[1], "{name}") == 0) {name}();\n' for name, _ in functions)
    source = "\n".join(includes) + "\n" + "".join(text for _, text in functions)
    source += f"int main(int argc, char** argv) {{\n  if (argc != 2) return 2;\n{calls}  return 0;\n}}\n"
    return source, every, [name for name, _ in functions]


class Compiler:
    def __init__(self, root, language, arguments):
        split = arguments.index("--")
        self.command, *self.flags = arguments[:split]
        self.link_flags = arguments[split + 1 :]
        self.language, self.include = language, os.path.join(root, "include")

    def build(self, folder, name, source, more=()):
        """Compiles `source` to a program; raises an error with the compiler's output."""
        path = os.path.join(folder, f"{name}.{'cc' if self.language == 'cpp' else 'c'}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        program = os.path.join(folder, name)
        compiled = [
            self.command,
            *STANDARDS[self.language],
            *WARNINGS,
            *more,
            *self.flags,
            "-I",
            self.include,
            "-c",
            path,
            "-o",
            program + ".o",
        ]
        linked = [self.command, program + ".o", *self.link_flags, "-o", program]
        for command in (compiled, linked):
            result = subprocess.run(command, capture_output=True, encoding="utf-8")
            if result.returncode != 0:
                raise blocks.BadPage(f"{name} does not compile:\n{result.stderr}")
        return program


def run(program, *arguments):
    """The output of a program; raises an error if it fails. Each program runs in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([program, *arguments], cwd=folder, capture_output=True, encoding="utf-8")
    if result.returncode != 0:
        raise blocks.BadPage(f"{arguments or program} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def complaints(pages, compiler):
    """The errors in the blocks of one language, and the number of blocks that ran."""
    wrong, count = [], 0
    fragments = collections.OrderedDict()
    with tempfile.TemporaryDirectory() as folder:
        for page, every in pages.items():
            mine = [b for b in every if b.language == compiler.language and not b.why_not_run]
            fragments[page] = [block for block in mine if not block.is_program]
            for block in mine:
                if not block.is_program:
                    continue
                count += 1
                try:
                    name = re.sub(r"\W", "_", block.place)
                    wrong.append(blocks.complaint(block, run(compiler.build(folder, name, block.text))))
                except blocks.BadPage as error:
                    wrong.append(f"{block.place}: {error}")
        source, every, functions = fragments_program(fragments, compiler.language)
        if every:
            try:
                program = compiler.build(folder, "fragments", source, IN_FRAGMENTS)
                printed = "".join(run(program, function) for function in functions)
            except blocks.BadPage as error:
                return [*filter(None, wrong), str(error)], count
            parts = printed.split(MARK)[1:]
            for part in parts:
                number, _, output = part.partition("\n")
                wrong.append(blocks.complaint(every[int(number)], output))
            if len(parts) < len(every):
                wrong.append("a page ended before its last block")
            count += len(parts)
    return [*filter(None, wrong)], count


def proves_itself(compiler):
    """On made-up pages: names are visible within a section and not beyond it, and wrong code and wrong output are
    detected."""
    if compiler.language == "cpp":
        good = (
            '```cpp\nconst int a = 1;\n```\n## A\n```cpp\nconst int b = a + 1;\nstd::printf("%d\\n", b);\n```\n'
            "```text\n2\n```\n## B\n<!-- cpp\n#include <cstdio>\n-->\n```cpp\nconst int b = a;\n```\n"
        )
        program = '```cpp\n#include <cstdio>\nint main() { std::printf("hi\\n"); }\n```\n```text\nhi\n```\n'
    else:
        good = (
            '```c\nconst int a = 1;\n```\n## A\n```c\nconst int b = a + 1;\nprintf("%d\\n", b);\n```\n'
            "```text\n2\n```\n## B\n```c\nconst int b = a;\n```\n"
        )
        program = '```c\n#include <stdio.h>\nint main(void) { printf("hi\\n"); return 0; }\n```\n```text\nhi\n```\n'

    def wrong(text):
        return complaints({"page.md": blocks.read_page("page.md", text)}, compiler)[0]

    assert wrong(good) == [], wrong(good)
    assert wrong(program) == [], wrong(program)
    for text, was, becomes in (
        (good, "```text\n2", "```text\n3"),
        (good, "b = a + 1", "b = c + 1"),
        (program, "```text\nhi", "```text\nho"),
        (program, '"hi', '1 + "hi'),
    ):
        assert was in text and wrong(text.replace(was, becomes)), (was, becomes)


def main():
    root, language = sys.argv[1], sys.argv[2]
    compiler = Compiler(root, language, sys.argv[3:])
    proves_itself(compiler)
    wrong, count = complaints(blocks.read_pages(root), compiler)
    for each in wrong:
        print(each)
    print(f"{count} blocks of {language}, {len(wrong)} of them wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
