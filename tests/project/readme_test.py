#!/usr/bin/env python3
"""README.md and README.zh-CN.md have the same content: the same headings, code, links, pictures, lists and numbers.

    readme_test.py ROOT
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
COMMENT = re.compile(r"\s*#.*$", re.M)


def fenced(text):
    """(language, code) of every block; shell comments are prose, which is translated."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
    return [(language, COMMENT.sub("", code) if language == "sh" else code) for language, code in blocks]


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def links(text):
    """The targets of links and pictures; a picture in the other language counts as equal."""
    found = re.findall(r"\]\(([^)]+)\)", without_code(text))
    return [each.replace("-zh.png", ".png") for each in found if not each.startswith("README")]


def shape(text):
    """The kind of each structural line: headings by level, list items, table rows."""
    return [match[1] for match in re.finditer(r"^(#+|-|\||!\[)(?= |\[)", without_code(text), re.M)]


def numbers_of_tables(text):
    # Sorted: languages order their words differently.
    return [sorted(re.findall(r"\d+(?:\.\d+)?", row)) for row in re.findall(r"^\|.*\|$", text, re.M)]


def inline_code(text):
    return sorted(re.findall(r"`([^`\n]+)`", without_code(text)))


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.english = (ROOT / "README.md").read_text(encoding="utf-8")
        cls.chinese = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")

    def test_code_is_the_same(self):
        self.assertEqual(fenced(self.english), fenced(self.chinese))

    def test_links_and_pictures_are_the_same(self):
        self.assertEqual(links(self.english), links(self.chinese))

    def test_headings_lists_and_tables_follow_in_the_same_order(self):
        self.assertEqual(shape(self.english), shape(self.chinese))

    def test_tables_have_the_same_numbers(self):
        self.assertEqual(numbers_of_tables(self.english), numbers_of_tables(self.chinese))

    def test_names_of_commands_and_types_are_the_same(self):
        self.assertEqual(inline_code(self.english), inline_code(self.chinese))

    def test_each_leads_to_the_other(self):
        self.assertIn("(README.zh-CN.md)", self.english)
        self.assertIn("(README.md)", self.chinese)

    def test_what_they_lead_to_is_there(self):
        for text in (self.english, self.chinese):
            for link in re.findall(r"\]\(([^)#]+)\)", without_code(text)):
                if not link.startswith("https://"):
                    self.assertTrue((ROOT / link).exists(), link)

    def test_the_ratios_were_measured(self):
        for text in (self.english, self.chinese):
            table = re.search(r"<!-- ratios, by make bench -->\n(.*?)<!-- end of ratios -->", text, re.S)
            self.assertGreaterEqual(len(re.findall(r"\d\.\d\d", table[1])), 10)


if __name__ == "__main__":
    unittest.main()
