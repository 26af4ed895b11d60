#!/usr/bin/env python3
"""Checks that no folder holds more code files than a reader can keep track of.

    folders_test.py ROOT
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
CODE = {".cc", ".h", ".c", ".py", ".pyi", ".mjs", ".js", ".sh", ".cmake"}
MOST = 40  # the maximum number of code files in one folder
NOT_OURS = {"build", "__pycache__"}  # hidden folders are skipped too


def folders(folder):
    yield folder
    for each in sorted(folder.iterdir()):
        if each.is_dir() and not each.is_symlink() and each.name not in NOT_OURS and not each.name.startswith("."):
            yield from folders(each)


class Folders(unittest.TestCase):
    def test_no_folder_has_more_files_of_code_than_forty(self):
        counts = {
            str(folder.relative_to(ROOT)): sum(path.suffix in CODE for path in folder.iterdir() if path.is_file())
            for folder in folders(ROOT)
        }
        self.assertGreater(sum(counts.values()), 500)
        self.assertEqual({name: count for name, count in counts.items() if count > MOST}, {})


if __name__ == "__main__":
    unittest.main()
