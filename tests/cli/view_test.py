#!/usr/bin/env python3
"""rapt view and rapt run --html, with a made-up page in the place of the explorer's.

    view_test.py COMMAND [unittest arguments]
"""

import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
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
        # No screen, so that no browser is asked for anything.
        self.environment = {**os.environ, "RAPT_EXPLORER": str(self.page), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        self.weights = arrays.npy((1, 2, 2), [1, 0, 0.25, 0.75])
        (self.folder / "w.npy").write_bytes(self.weights)

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
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out.html", "page.html", "w.npy"])

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
        copy = self.folder / "bin" / "rapt"  # where no page is near
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

    def test_a_page_is_served_to_this_machine_until_ctrl_c(self):
        process = subprocess.Popen([COMMAND, "view", "--serve", "--file", "w.npy"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        address = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
        port = int(address[1])

        def ask(path, host=f"127.0.0.1:{port}", method="GET"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request(method, path, headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

        status, page = ask("/")
        self.assertEqual(status, 200)
        self.assertIn('"name":"w.npy"', page)
        self.assertEqual(ask("/", method="HEAD"), (200, ""))
        self.assertEqual(ask("/other")[0], 404)
        self.assertEqual(ask("/", host="elsewhere.example")[0], 404)  # another host name for this machine
        with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
            silent.sendall(b"nonsense\r\n\r\n")
            self.assertIn(b"404", silent.recv(1000))
        with socket.create_connection(("127.0.0.1", port)):
            pass  # one that asks nothing
        self.assertEqual(ask("/")[0], 200)
        taken = self.run_rapt("view", "--port", port)
        self.assertEqual(taken.returncode, 1)
        self.assertIn("a free one is found", taken.stderr)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 0)


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
