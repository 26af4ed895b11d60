#!/usr/bin/env python3
"""Checks every interface that has options against the table of options (include/rapt/option_table.h).

    options_test.py COMMAND ROOT [unittest arguments]

Each check of tests/project/options_checks.py runs twice: on the actual text, which must have no errors, and on the same
text with an option added, removed or renamed, which must be detected.
"""

import pathlib
import subprocess
import sys
import unittest

from options_checks import (
    HEADERS,
    options_page,
    wrong_in_c,
    wrong_in_command,
    wrong_in_cpp,
    wrong_in_javascript,
    wrong_in_page,
    wrong_in_python,
)

COMMAND = "rapt"
ROOT = pathlib.Path(".")


def python_files():
    """Each Python file's text, by name. The bridges are left out: their functions have other libraries' arguments."""
    package = ROOT / "bindings" / "python" / "rapt"
    paths = [*package.glob("*.pyi"), *package.glob("*.py")]
    bridges = ("onnx", "torch", "transformers")
    return {path.name: path.read_text(encoding="utf-8") for path in paths if path.stem not in bridges}


def run(*arguments):
    result = subprocess.run([COMMAND, *arguments], capture_output=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    return result.stdout


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = options_page.table_of(COMMAND)

    def notices(self, check, text, changes):
        """Checks that `check` finds no error in `text`, and finds one after each of the changes (old part, new
        part)."""
        self.assertEqual(check(self.table, text), [])
        for was, becomes in changes:
            with self.subTest(was=was, becomes=becomes):
                self.assertIn(was, text)
                self.assertNotEqual(check(self.table, text.replace(was, becomes, 1)), [])

    def test_the_structs_have_the_fields_and_defaults_of_the_table(self):
        texts = {name: (ROOT / "include" / "rapt" / name).read_text(encoding="utf-8") for name in set(HEADERS.values())}
        self.assertEqual(wrong_in_cpp(self.table, texts), [])

        def check(header):
            return lambda table, text: wrong_in_cpp(table, {**texts, header: text})

        self.notices(
            check("attention.h"),
            texts["attention.h"],
            [
                ("double softcap = 0.0;", "double softcap = 0.0; double sharpness = 0.0;"),
                ("double softcap = 0.0;", ""),
                ("double softcap = 0.0;", "double softcap = 1.0;"),
                ("double softcap = 0.0;", "double cap = 0.0;"),
                (
                    "ConstTensorView key_scales{}, value_scales{};",
                    "ConstTensorView key_scales{}, value_scales{}, more{};",
                ),
                ("ParallelFor parallel_for{};", "ParallelFor parallel_for{}; std::function<void(int)> after{};"),
                ("std::int64_t query_start = 0;", "std::int64_t query_start = 0; bool of_rows = false;"),
                ("struct Window {", "struct Window { bool wraps = false;"),
                ("Kind kind = Kind::unnamed;", "Kind kind = Kind::top_left;"),
            ],
        )
        self.notices(
            check("multi_head_attention.h"),
            texts["multi_head_attention.h"],
            [
                ("bool bias = true;", "bool bias = false;"),
                ("KvCache* cache = nullptr;", "KvCache* cache = nullptr; KvCache* other_cache = nullptr;"),
                (
                    "std::optional<RotaryOptions> rotary{};",
                    "std::optional<RotaryOptions> rotary{}; double temperature = 1.0;",
                ),
            ],
        )
        self.notices(
            check("rotary.h"),
            texts["rotary.h"],
            [
                ("double beta_slow = 1.0;", "double beta_slow = 2.0;"),
                ("double factor = 1.0;", "double factor = 1.0; int more = 0;"),
            ],
        )
        self.notices(
            check("kv_cache.h"),
            texts["kv_cache.h"],
            [("std::int64_t pages = 0;", "std::int64_t pages = 0; bool evicts = false;")],
        )

    def test_the_c_structs_have_the_fields_of_the_table(self):
        header = (ROOT / "include" / "rapt" / "rapt.h").read_text(encoding="utf-8")
        self.notices(
            wrong_in_c,
            header,
            [
                ("  double softcap;\n", "  double softcap;\n  double sharpness;\n"),
                ("  double softcap;\n", ""),
                ("  double softcap;\n", "  double soft_cap;\n"),
                ("  int64_t window_left;\n", "  int64_t left;\n"),
                ("  int64_t slice_count;\n", "  int64_t slice_count;\n  const char* name;\n"),
                ("  rapt_kv_cache* cache;\n", ""),
                ("typedef struct rapt_mask {", "typedef struct rapt_hide {"),
            ],
        )

    def test_the_python_package_has_the_keywords_of_the_table(self):
        files = python_files()
        for was, becomes in [
            ("    softcap: float = 0.0,\n", "    softcap: float = 0.0,\n    sharpness: float = 0.0,\n"),  # in stubs
            ("    softcap: float = 0.0,\n", "    soft_cap: float = 0.0,\n"),
            ("    softcap=0.0,\n", "    softcap=0.0,\n    sharpness=0.0,\n"),  # in modules
            ("    softcap=0.0,\n", ""),
            ("        page_size: int = 0,\n", "        page_size: int = 0,\n        evicts: bool = False,\n"),
            ("        page_size: int = 0,\n", ""),
            ("        position: int = 0,\n", "        place: int = 0,\n"),
            ("        output_dropout: float = 0.0,\n", ""),
            ('        family: str = "torch",\n', ""),
            ("    head_start: int = 0\n", ""),
            ("    left: int | None = None\n", ""),
            ("    max_positions: int = 0\n", "    max_positions: int = 0\n    more: int = 0\n"),
            ("    context_length: int = 0\n", ""),
        ]:
            holders = [name for name, text in files.items() if was in text]
            self.assertNotEqual(holders, [], was)
            for name in holders:
                self.notices(
                    lambda table, text: wrong_in_python(table, {**files, name: text}), files[name], [(was, becomes)]
                )

    def test_javascript_has_the_names_of_the_table(self):
        types = (ROOT / "bindings" / "wasm" / "rapt.d.ts").read_text(encoding="utf-8")
        self.notices(
            wrong_in_javascript,
            types,
            [
                ("  softcap?: number;\n", ""),
                ("  softcap?: number;\n", "  softCap?: number;\n"),
                ("  softcap?: number;\n", "  softcap?: number;\n  sharpness?: number;\n"),
                ("  left?: number | null;\n", ""),
                ("export interface Window {", "export interface Windows {"),
            ],
        )

    def test_the_command_has_the_flags_of_the_table(self):
        self.notices(
            wrong_in_command,
            run("run", "--help"),
            [
                ("  --softcap X", "  --cap X"),
                ("  --softcap X", "  --sharpness X\n  --softcap X"),
                ("  --input FILE", "  --tokens FILE"),
            ],
        )

    def test_the_guide_shows_the_table(self):
        page = (ROOT / "docs" / "guide" / "options.md").read_text(encoding="utf-8")
        self.notices(
            wrong_in_page, page, [("| `softcap` |", "| `cap` |"), ("| `--softcap` |", "| |"), ("`scale`", "`x`")]
        )

    def test_a_row_that_is_missing_is_noticed_everywhere(self):
        texts = {name: (ROOT / "include" / "rapt" / name).read_text(encoding="utf-8") for name in set(HEADERS.values())}
        page = (ROOT / "docs" / "guide" / "options.md").read_text(encoding="utf-8")
        less = [row for row in self.table if row["name"] != "softcap"]
        header = (ROOT / "include" / "rapt" / "rapt.h").read_text(encoding="utf-8")
        for check, text in (
            (wrong_in_cpp, texts),
            (wrong_in_c, header),
            (wrong_in_python, python_files()),
            (wrong_in_javascript, (ROOT / "bindings" / "wasm" / "rapt.d.ts").read_text(encoding="utf-8")),
            (wrong_in_command, run("run", "--help")),
            (wrong_in_page, page),
        ):
            self.assertNotEqual(check(less, text), [], check.__name__)


class Listing(unittest.TestCase):
    def test_an_option_is_found_by_any_of_its_names(self):
        for word in ("MultiHeadAttentionConfig::key_size", "kdim", "key_size"):
            self.assertIn("MultiHeadAttentionConfig::key_size\n", run("options", word))
        text = run("options", "key_lengths")
        self.assertIn("in rapt run           --key-lengths", text)
        self.assertIn("number of valid keys in each batch row", run("options"))

    def test_a_name_that_no_option_has_is_refused(self):
        result = subprocess.run([COMMAND, "options", "softcp"], capture_output=True, encoding="utf-8")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("did you mean softcap?", result.stderr)


if __name__ == "__main__":
    COMMAND = str(pathlib.Path(sys.argv.pop(1)).resolve())
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
