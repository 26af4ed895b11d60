#!/usr/bin/env python3
"""rapt view and rapt run --html, with a stub page instead of the explorer's.

    view_test.py COMMAND [unittest arguments]
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import arrays

COMMAND = "rapt"
PAGE = "<html><body>the page<!--RESULT--><script>main</script></body></html>"


class View(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = self.folder / "page.html"
        self.page.write_text(PAGE, encoding="utf-8")
        self.temporary = self.folder / "temporary"
        # No display, so that no browser is opened.
        self.environment = {**os.environ, "RAPT_EXPLORER": str(self.page), "DISPLAY": "", "WAYLAND_DISPLAY": "",
                            "TMPDIR": str(self.temporary)}
        self.weights = arrays.npy((1, 2, 2), [1, 0, 0.25, 0.75])
        (self.folder / "w.npy").write_bytes(self.weights)
        self.temporary.mkdir()

    def run_rapt(self, *arguments):
        return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env=self.environment, timeout=60, check=False)

    def result_in(self, path):
        text = pathlib.Path(path).read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="result">(.*?)</script>', text, re.S)
        self.assertTrue(text.startswith("<html><body>the page<script") and text.endswith("<script>main</script></body></html>"))
        return json.loads(found[1])

    def test_a_page_is_written_with_the_files_inside(self):
        self.assertEqual(self.run_rapt("view", "--file", "w.npy", "--out", "out.html").returncode, 0)
        result = self.result_in(self.folder / "out.html")
        self.assertEqual([each["name"] for each in result["files"]], ["w.npy"])
        self.assertEqual(base64.b64decode(result["files"][0]["base64"], validate=True), self.weights)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out.html", "page.html", "temporary", "w.npy"])

    def test_tokens_and_a_config_come_with_the_arrays(self):
        (self.folder / "tokens.txt").write_text("one two", encoding="utf-8")
        (self.folder / "config.JSON").write_text('{"n_head": 2}', encoding="utf-8")
        ran = self.run_rapt("view", "--file", "tokens.txt", "--file", "config.JSON", "--file", "w.npy", "--out", "out.html")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = self.result_in(self.folder / "out.html")
        self.assertEqual([each["name"] for each in result["files"]], ["tokens.txt", "config.JSON", "w.npy"])
        self.assertEqual(base64.b64decode(result["files"][0]["base64"]), b"one two")
        self.assertEqual(result["title"], "w.npy")

    def test_an_unknown_kind_of_file_is_refused_before_a_page_is_written(self):
        for name in ("notes.md", "npy", "picture.png"):
            (self.folder / name).write_bytes(b"something")
            ran = self.run_rapt("view", "--file", "w.npy", "--file", name, "--out", "out.html")
            self.assertEqual((ran.returncode, ran.stdout), (2, ""))
            self.assertIn(f"--file: {name}: unknown file extension; expected .npy, .npz, .safetensors, .txt", ran.stderr)
            self.assertFalse((self.folder / "out.html").exists())

    def test_bytes_of_every_length_come_through(self):
        for size in range(1, 7):
            data = bytes(range(250, 250 + size)) if size < 6 else b"\x00\xff\x10\x20\x30\x40"
            (self.folder / "x.npy").write_bytes(data)
            self.run_rapt("view", "--file", "x.npy", "--out", "out.html")
            self.assertEqual(base64.b64decode(self.result_in(self.folder / "out.html")["files"][0]["base64"]), data)

    def test_a_name_cannot_end_the_script(self):
        name = "<!--<b>.npy"
        (self.folder / name).write_bytes(self.weights)
        self.run_rapt("view", "--file", name, "--out", "out.html")
        self.assertNotIn("<b>", (self.folder / "out.html").read_text(encoding="utf-8"))
        self.assertEqual(self.result_in(self.folder / "out.html")["files"][0]["name"], name)

    def test_a_run_writes_its_weights_into_the_page(self):
        ran = self.run_rapt("run", "--html", "heads.html", "--heads", "4")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("wrote heads.html", ran.stderr)
        result = self.result_in(self.folder / "heads.html")
        shape, values = arrays.read_npy(base64.b64decode(result["files"][0]["base64"]))
        self.assertEqual((shape, len(result["labels"])), ((1, 4, 8, 8), 8))
        for row in range(4 * 8):
            self.assertAlmostEqual(sum(values[8 * row:8 * row + 8]), 1, places=5)

    def test_plain_attention_too(self):
        (self.folder / "q.npy").write_bytes(arrays.npy((1, 2, 3, 4), arrays.numbers(24)))
        ran = self.run_rapt("run", "--query", "q.npy", "--causal", "--html", "heads.html", "--weights", "own.npy")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        inside = base64.b64decode(self.result_in(self.folder / "heads.html")["files"][0]["base64"])
        self.assertEqual(arrays.read_npy(inside), arrays.read_npy((self.folder / "own.npy").read_bytes()))

    def test_mistakes_say_what_to_do(self):
        self.environment["RAPT_EXPLORER"] = ""
        copy = self.folder / "bin" / "rapt"  # a copy that finds no page in the folders where it searches
        copy.parent.mkdir()
        shutil.copy(COMMAND, copy)
        for arguments in (["view", "--out", "out.html"], ["run", "--html", "out.html"]):
            ran = subprocess.run([copy, *arguments], capture_output=True, text=True, cwd=self.folder,
                                 env=self.environment, timeout=60, check=False)
            self.assertEqual(ran.returncode, 1)
            self.assertIn("make explorer", ran.stderr)
        self.environment["RAPT_EXPLORER"] = str(self.page)
        self.assertIn("w.npy", self.run_rapt("view", "--file", "v.npy", "--out", "out.html").stderr)
        self.assertEqual(self.run_rapt("run", "--html", "-").returncode, 2)
        self.assertIn("no such directory", self.run_rapt("view", "--out", "no/such/out.html").stderr)
        self.page.write_text("<html>another page</html>", encoding="utf-8")
        ran = self.run_rapt("view", "--file", "w.npy", "--out", "out.html")
        self.assertIn("not a page of the rapt explorer", ran.stderr)

    def test_without_a_screen_the_path_of_the_page_is_printed(self):
        ran = self.run_rapt("view")
        self.assertEqual((ran.returncode, ran.stdout), (0, f"{self.page}\n"))
        self.assertIn("open this file in a browser", ran.stderr)

    def test_a_page_with_files_is_written_where_nobody_else_can_write(self):
        ran = self.run_rapt("view", "--file", "w.npy")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        page = pathlib.Path(ran.stdout.removesuffix("\n"))
        self.assertEqual((page.parent.parent, page.parent.stat().st_mode & 0o777), (self.temporary, 0o700))
        self.assertEqual([each["name"] for each in self.result_in(page)["files"]], ["w.npy"])
        again = self.run_rapt("view", "--file", "w.npy")
        self.assertNotEqual(again.stdout, ran.stdout)  # the first may still be open in a browser

    def test_on_a_screen_a_browser_opens_the_page(self):
        programs = self.folder / "programs"
        programs.mkdir()
        opener = programs / "xdg-open"
        # The test waits for the file `opened`, which the script creates atomically.
        opener.write_text('#!/bin/sh\nprintf %s "$1" >opened.part && mv opened.part opened\n', encoding="utf-8")
        opener.chmod(0o755)
        self.environment |= {"DISPLAY": ":0", "PATH": f"{programs}:{os.environ['PATH']}"}
        for arguments in ([], ["--file", "w.npy"]):
            (self.folder / "opened").unlink(missing_ok=True)
            ran = self.run_rapt("view", *arguments)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            end = time.monotonic() + 30
            while not (self.folder / "opened").exists() and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual((self.folder / "opened").read_text(encoding="utf-8"), ran.stdout.removesuffix("\n"))
        self.environment["PATH"] = str(programs / "empty")  # no xdg-open
        self.assertIn("open this file in a browser", self.run_rapt("view").stderr)


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
