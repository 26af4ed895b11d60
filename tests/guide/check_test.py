#!/usr/bin/env python3
"""Checks the structure of the pages, and tests the reader of their blocks on made-up pages.

check_test.py ROOT [unittest arguments]
"""

import pathlib
import re
import sys
import unittest

import blocks

ROOT = pathlib.Path(".")
NOT_RUN = 1  # blocks of all pages that are not run


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = blocks.read_pages(ROOT)

    def test_few_blocks_are_not_run_and_each_says_why(self):
        left_out = [block for page in self.pages.values() for block in page if block.why_not_run]
        for block in left_out:
            self.assertGreaterEqual(len(block.why_not_run.split()), 4, block.place)
        self.assertEqual(len(left_out), NOT_RUN, [block.place for block in left_out])

    def test_links_lead_somewhere(self):
        for page in self.pages:
            text = (ROOT / page).read_text(encoding="utf-8")
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
                if target.startswith(("http://", "https://")):
                    continue
                file, _, heading = target.partition("#")
                path = (ROOT / page).parent / file if file else ROOT / page
                self.assertTrue(path.exists(), f"{page}: {target}")
                if heading:
                    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
                    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
                    self.assertIn(heading, anchors, f"{page}: {target}")

    def test_names_in_the_text_are_names_of_the_library(self):
        headers = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include" / "rapt").glob("*.h"))
        known = set(re.findall(r"\w+", headers))
        for page in self.pages:
            text = re.sub(r"```.*?```|<!--.*?-->", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
            for code in re.findall(r"`([^`]+)`", text):
                for name in re.findall(r"(?:rapt|Mask|Alignment|Tensor|Engine|DType)::(\w+)|\b(rapt_\w+)", code):
                    self.assertIn(name[0] or name[1], known, f"{page}: {code}")

    def test_every_page_is_in_the_index(self):
        index = (ROOT / "docs" / "guide" / "README.md").read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "guide").glob("*.md"):
            if path.name != "README.md":
                self.assertIn(f"]({path.name})", index)

    def test_lines_are_no_longer_than_the_projects(self):
        for page in self.pages:
            text = (ROOT / page).read_text(encoding="utf-8")
            shown = re.sub(r"^```text$.*?^```$", "", text, flags=re.M | re.S)  # program output may have longer lines
            long = [line for line in shown.splitlines() if len(line) > 120 and not line.startswith("|")]
            self.assertEqual(long, [], page)


class Reader(unittest.TestCase):
    def read(self, text):
        return blocks.read_page("page.md", text)

    def test_blocks_come_with_their_place_and_output(self):
        first, hidden, second = self.read(
            "# Page\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n<!-- sh\ntouch a\n-->\n## Part\n\n"
            "<!-- file a.c -->\n"
            "```c\nint main(void) {}\n```\n"
        )
        self.assertEqual((first.line, first.text, first.expected, first.section), (4, "print(1)\n", "1\n", 0))
        self.assertEqual((hidden.language, hidden.hidden, hidden.text), ("sh", True, "touch a\n"))
        self.assertEqual((second.file, second.is_program, second.section), ("a.c", True, 1))

    def test_nothing_is_left_out_silently(self):
        for text in (
            "```rust\nfn main() {}\n```\n",
            "```\nx\n```\n",
            "```text\nx\n```\n",
            "```python\nx\n",
            "```cmake\nx\n```\n",
            "  ```sh\nls\n  ```\n",
            "<!-- pyhton\nx\n-->\n",
            "```sh\nls\n```\n\nIt prints:\n\n```text\nx\n```\n",
        ):
            with self.subTest(text=text), self.assertRaises(blocks.BadPage):
                self.read(text)

    def test_a_block_that_is_not_run_says_why(self):
        (block,) = self.read("*Not run by the tests: it needs a fresh machine.*\n\n```sh\nreboot\n```\n")
        self.assertEqual(block.why_not_run, "it needs a fresh machine.")

    def test_output_is_compared(self):
        self.assertTrue(blocks.matches("a  \nb\n", "a\nb\n\n"))
        self.assertTrue(blocks.matches("a\n…\nz\n", "a\nb\nc\nz\n"))
        self.assertTrue(blocks.matches("…\nz\n", "z\n"))
        self.assertTrue(blocks.matches("took … s\n", "took 0.25 s\n"))
        self.assertFalse(blocks.matches("took … s\n", "took 0.25 m\n"))
        self.assertFalse(blocks.matches("a\n", "a\nb\n"))
        self.assertFalse(blocks.matches("0.333\n", "0.334\n"))
        self.assertFalse(blocks.matches("a.c\n", "abc\n"))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
