"""Shared by tests of rapt on files: a temporary folder with an input, the command, and layers that PyTorch saved.

Test files are called with COMMAND LAYERS [unittest arguments]; LAYERS is tests/data/layers.
"""

import os
import subprocess
import sys
import time
import unittest

import arrays

COMMAND = "rapt"
LAYERS = "layers"
PREFIX = "model.layers.0.attn."


class Files(arrays.InFolder):
    def setUp(self):
        super().setUp()
        self.values = arrays.numbers(2 * 5 * 12)
        self.write("x.npy", arrays.npy((2, 5, 12), self.values))

    def layer(self, name):
        return os.path.join(LAYERS, f"{name}.safetensors")

    def rapt(self, *arguments, **more):
        return arrays.run(COMMAND, *arguments, folder=self.folder, **more)

    def good(self, *arguments, **more):
        result = self.rapt(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def used(self, *arguments):
        """The exit code of a run, its peak memory in kilobytes, and its duration in seconds."""
        start = time.monotonic()
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, used.ru_maxrss, time.monotonic() - start

    def near(self, a, b, bound=1e-5):
        self.assertEqual(len(a), len(b))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), bound)


def main():
    global COMMAND, LAYERS
    COMMAND = os.path.abspath(sys.argv.pop(1))
    LAYERS = os.path.abspath(sys.argv.pop(1))
    unittest.main()
