"""Reads the code blocks of README.md and docs/guide for the tests that run them.

A page is Markdown with these elements:

    ```cpp …```             A block in cpp, c, python or sh is run. Later blocks of the same language on the page can
                            use the names of earlier ones. A cmake block is a file for the shell.
    ```text …```            Directly below a block: the expected output. A line of only … stands for any number of
                            lines, and … within a line for any text.
    <!-- cpp                At the beginning of a line: a block that is run but not shown, such as definitions that the
    …                       reader already has.
    -->
    <!-- file first.cc -->  Above a block: the block is also stored as a file of this name, in the folder where the
                            page's shell runs.
    <!-- ratios, by make bench -->   and <!-- end of ratios -->: bench/peers/face.py writes the text between them.
    *Not run by the tests: why.*   Above a block: the block is not run. check_test.py fixes the number of such blocks.

A block that contains main() is a separate program. The other cpp or c blocks of a page form the body of one function;
each heading of the second level opens a new scope, which sees the names from before the first such heading.
"""

import dataclasses
import pathlib
import re

LANGUAGES = ("cpp", "c", "python", "sh", "cmake")
KNOWN_COMMENT = r"<!-- (file [\w.]+|ratios, by make bench|end of ratios) -->"
NOT_RUN = "*Not run by the tests: "


class BadPage(Exception):
    """An error in a page: a block that would otherwise be skipped silently."""


@dataclasses.dataclass
class Block:
    page: str  # "docs/guide/masks.md"
    line: int  # of the first line of code
    language: str
    text: str
    hidden: bool = False
    section: int = 0  # headings of the second level above it
    file: str = ""
    expected: str | None = None
    why_not_run: str = ""

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        return self.language in ("cpp", "c") and re.search(r"^int main\(", self.text, re.M) is not None


class Reader:
    """Reads one page, line by line."""

    def __init__(self, page, text):
        self.page, self.lines, self.at = page, text.splitlines(), 0
        self.blocks = []
        self.above = ""  # the last line that was not empty
        self.section = 0

    def refuse(self, what):
        raise BadPage(f"{self.page}:{self.at}: {what}")

    def until(self, end):
        """The lines up to `end`, which is skipped."""
        begin = self.at
        while self.at < len(self.lines) and self.lines[self.at].rstrip() != end:
            self.at += 1
        if self.at == len(self.lines):
            self.refuse(f"no {end} to the end of the page")
        self.at += 1
        return "".join(line + "\n" for line in self.lines[begin : self.at - 1])

    def take_fence(self, language):
        line = self.at + 1
        text = self.until("```")
        if language == "text":
            if not self.blocks or self.above != "```" or self.blocks[-1].expected is not None:
                self.refuse("a block of text is what the block directly above it prints; indent other text by four")
            self.blocks[-1].expected = text
            return
        if language not in LANGUAGES:
            self.refuse(f"a block of {language or 'no language'}; the tests run {', '.join(LANGUAGES)}")
        block = Block(self.page, line, language, text, section=self.section)
        if self.above.startswith("<!-- file "):
            block.file = self.above.removeprefix("<!-- file ").removesuffix(" -->")
        elif language == "cmake":
            self.refuse("a block of cmake needs the name of its file above it, so that a block of sh can use it")
        if self.above.startswith(NOT_RUN):
            block.why_not_run = self.above.removeprefix(NOT_RUN).rstrip("*")
        self.blocks.append(block)

    def read(self):
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            self.at += 1
            if line.startswith("```"):
                self.take_fence(line[3:])
                line = "```"
            elif line.startswith("<!-- ") and line[5:] in LANGUAGES:
                first = self.at + 1
                self.blocks.append(
                    Block(self.page, first, line[5:], self.until("-->"), hidden=True, section=self.section)
                )
                line = "-->"
            elif line.startswith("<!--") and not re.fullmatch(KNOWN_COMMENT, line):
                self.refuse(f"{line}: no comment that the tests know")
            elif "```" in line:
                self.refuse("a fence that does not begin its line")
            elif line.startswith("## "):
                self.section += 1
            if line:
                self.above = line
        return self.blocks


def read_page(page, text):
    return Reader(page, text).read()


def read_pages(root):
    """{page: blocks} of all pages."""
    root = pathlib.Path(root)
    paths = [root / "README.md", *sorted((root / "docs" / "guide").glob("*.md"))]
    pages = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}
    return {page: read_page(page, text) for page, text in pages.items()}


def matches(expected, printed):
    """Whether a block printed what its page shows."""
    pattern = ""
    for line in expected.strip("\n").splitlines():
        anything = "…".join(re.escape(part) for part in line.rstrip().split("…")).replace("…", "[^\n]*")
        pattern += r"(?:[^\n]*\n)*" if line.strip() == "…" else anything + r"\n"
    text = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


def complaint(block, printed):
    """The error message if a block printed something else; None if the output is as expected."""
    if block.expected is None or matches(block.expected, printed):
        return None
    return f"{block.place}: the page shows\n{block.expected}\nand what it prints is\n{printed}"
