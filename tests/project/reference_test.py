#!/usr/bin/env python3
"""The API reference (scripts/reference.py): no public name is missing, and the same tree gives the same bytes.

reference_test.py ROOT [unittest arguments]
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import options_checks

ROOT = pathlib.Path(".")


def text_of(page):
    """The text of a page."""
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def make(root, folder, **environment):
    subprocess.run(
        [sys.executable, "-B", str(ROOT / "scripts" / "reference.py"), str(root), str(folder)],
        check=True,
        capture_output=True,
        env={**os.environ, **environment},
    )
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).iterdir())}


def plainly_declared(header):
    """Names of declarations that start in the first column of a header, read independently of the reference."""
    names = set()
    in_detail = False
    for line in header.splitlines():
        in_detail = (in_detail or line.startswith("namespace detail {")) and not line.startswith(
            "}  // namespace detail"
        )
        if (
            in_detail
            or not line
            or line[0] in " #/}"
            or line.startswith(("template", "requires", "static_assert", "extern"))
        ):
            continue
        line = re.sub(r"//.*", "", line)
        kind = re.match(r"(?:typedef )?(?:struct|class|enum class|enum) (\w+)", line)
        if kind:
            names.add(kind[1])
        elif line.startswith("using "):
            names.add(line.split()[1])
        elif "(" in line and not line.startswith(("namespace", "typedef")):
            names.add(re.findall(r"(\w+)\(", line)[0])
    return names


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.pages = make(ROOT, cls.folder.name)
        cls.headers = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "include" / "rapt").glob("*.h")}

    def test_every_declaration_has_its_place(self):
        count = 0
        for name, header in self.headers.items():
            page = self.pages[name.replace(".h", ".html")]
            for declared in plainly_declared(header):
                count += 1
                self.assertTrue(
                    f'id="{declared}"' in page or re.search(rf"\b(?:class|struct) {declared};", header),
                    f"{name}: {declared}",
                )
        self.assertGreater(count, 200)

    def test_every_field_and_function_is_shown(self):
        for struct, name in options_checks.HEADERS.items():
            shown = text_of(self.pages[name.replace(".h", ".html")])
            for field in options_checks.cpp_fields(self.headers[name], struct):
                self.assertRegex(shown, rf"\b{field}\b")
        for function in re.findall(r"\b(rapt_\w+)\(", self.headers["rapt.h"]):
            self.assertTrue(f'id="{function}"' in self.pages["rapt.html"], function)
        for constant in re.findall(r"\b(RAPT_[A-Z]\w*) =", self.headers["rapt.h"]):
            self.assertTrue(constant in text_of(self.pages["rapt.html"]), constant)
        for method in ("forward", "backward", "zero_gradients", "set_parameter", "state_dict", "slice"):
            self.assertRegex(text_of(self.pages["multi_head_attention.html"]), rf"\b{method}\(")

    def test_comments_come_along(self):
        for name, header in self.headers.items():
            shown = " ".join(text_of(self.pages[name.replace(".h", ".html")]).split())
            first = re.sub(r"^// ", "", header.splitlines()[0])
            self.assertTrue(" ".join(first.split()) in shown, name)
        self.assertTrue("never NaN. Only −inf hides" in text_of(self.pages["attention.html"]))

    def test_what_callers_cannot_use_is_left_out(self):
        everything = "".join(text_of(page) for page in self.pages.values())
        for private in ("round_to_16_bits", "free_pages_", "check_append", "NOLINT", "private:", "static_assert"):
            self.assertFalse(private in everything, private)

    def test_the_python_package_is_in_it(self):
        package = ROOT / "bindings" / "python" / "rapt"
        init = (package / "__init__.py").read_text(encoding="utf-8")
        offered = set(re.findall(r'^    "([A-Za-z]\w*)",$', init, re.M))
        if not list(package.glob("*.pyi")):  # declarations in C++ have their signature in a stub
            offered -= set(re.findall(r"\w+", re.search(r"from \._rapt import \((.*?)\)", init, re.S)[1]))
        self.assertGreater(len(offered), 10)
        for name in offered:
            self.assertTrue(f'id="{name}"' in self.pages["python.html"], name)

    def test_links_lead_somewhere(self):
        for name, page in self.pages.items():
            for target in re.findall(r'href="([^"]*)"', page):
                file, _, place = target.partition("#")
                self.assertIn(file or name, self.pages, f"{name}: {target}")
                if place:
                    self.assertTrue(f'id="{place}"' in self.pages[file or name], f"{name}: {target}")

    def test_the_same_tree_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(make(ROOT, folder, PYTHONHASHSEED="1") == self.pages)

    def test_a_new_declaration_appears(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "tree")
            for part in ("include", "bindings/python/rapt"):
                shutil.copytree(ROOT / part, copy / part)
            shutil.copy(ROOT / "CMakeLists.txt", copy)
            path = copy / "include" / "rapt" / "cpu.h"
            added = "// Says how warm it is.\ninline double temperature(int core = 0) { return core; }\n"
            added += "\n}  // namespace rapt"
            path.write_text(path.read_text(encoding="utf-8").replace("}  // namespace rapt", added), encoding="utf-8")
            page = make(copy, pathlib.Path(folder, "out"))["cpu.html"]
        self.assertIn('id="temperature"', page)
        self.assertIn("double temperature(int core = 0);", text_of(page))
        self.assertIn("Says how warm it is.", text_of(page))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
