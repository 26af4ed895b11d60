#!/usr/bin/env python3
"""Runs .ci/run in a made-up tree whose targets only print or fail: it must wait for every step, and notice every failure.

    ci_test.py ROOT
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
SCRIPT = (ROOT / ".ci/run").read_text(encoding="utf-8")


def listed(name):
    return re.search(rf"^{name}=\((.*)\)$", SCRIPT, re.MULTILINE)[1].split()


BUILDS, TESTS = listed("builds"), listed("tests")
# The first test step ends last, so a script that does not wait for it would end before it.
MAKEFILE = """
.PHONY: setup-ci lint wasm {builds} {tests}
setup-ci lint wasm {builds}:
	@if [ "$@" = "$(BAD)" ]; then exit 3; fi
{tests}:
	@if [ "$@" = "$(BAD)" ]; then exit 3; fi; if [ "$@$(BAD)" = {first} ]; then sleep 2; fi; touch $@.ran
"""


class Ci(unittest.TestCase):
    def run_ci(self, bad=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in (".ci", "scripts"):
                (root / name).mkdir()
            shutil.copy(ROOT / ".ci/run", root / ".ci/run")
            peers = root / "scripts/peers.sh"
            peers.write_text(f"#!/bin/sh\n[ '{bad}' != peers ]\n", encoding="utf-8")
            peers.chmod(0o755)
            makefile = MAKEFILE.format(builds=" ".join(BUILDS), tests=" ".join(TESTS), first=TESTS[0])
            (root / "Makefile").write_text(makefile, encoding="utf-8")
            environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
            done = subprocess.run(["bash", ".ci/run"], cwd=root, env=environment | {"BAD": bad}, check=False,
                                  capture_output=True, text=True)
            ran = [name for name in TESTS if (root / f"{name}.ran").exists()]
            return done, ran

    def test_every_step_has_ended_when_it_passes(self):
        done, ran = self.run_ci()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(ran, TESTS)
        for name in ["setup", "peers", "lint", *BUILDS, *TESTS]:
            self.assertIn(f"ci: {name} took", done.stdout)

    def test_a_step_that_fails_is_a_failure(self):
        for bad in ("setup-ci", "peers", "lint", BUILDS[-1], TESTS[0], TESTS[-1]):
            done, _ = self.run_ci(bad)
            self.assertNotEqual(done.returncode, 0, bad)
            self.assertNotIn("ci: passed", done.stdout)


if __name__ == "__main__":
    unittest.main()
