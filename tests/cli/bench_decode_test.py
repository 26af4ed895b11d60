#!/usr/bin/env python3
"""`rapt bench decode` end to end: its data, its arithmetic and its exit codes.

    bench_decode_test.py COMMAND [unittest arguments]

Sizes are tiny: these tests do not measure speed.
"""

import json
import os
import subprocess
import sys
import unittest

COMMAND = "rapt"
SMALL = ("--cached", "300", "--embed", "64", "--heads", "4", "--kv-heads", "2", "--batch", "2", "--page-size", "16")


def rapt(*arguments):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env=clean, encoding="utf-8")


def decode(*arguments):
    return rapt("bench", "decode", *SMALL, "--reps", "3", "--min-time", "0", *arguments)


class Data(unittest.TestCase):
    def data(self, *arguments):
        result = decode("--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_every_type_has_both_kinds_of_cache_on_every_number_of_threads(self):
        found = self.data("--threads", "1,2", "--type", "f32,i8")
        self.assertEqual([(case["threads"], case["type"], case["paged"]) for case in found["cases"]],
                         [(threads, kind, paged) for threads in (1, 2) for kind in ("f32", "i8") for paged in (False, True)])
        self.assertEqual(len({case["name"] for case in found["cases"]}), 8)

    def test_bytes_and_errors_are_those_of_the_types(self):
        most = {"f32": 0.0, "bf16": 1e-2, "f16": 1e-3, "i8": 1e-2}
        for case in self.data()["cases"]:
            self.assertLessEqual(case["error"], most[case["type"]])
            if case["type"] != "f32":
                self.assertGreater(case["error"], 0)
            self.assertEqual(case["weight_bytes"], 4 * 64 * (64 + 2 * 32 + 64))
            token = {"f32": 64, "bf16": 32, "f16": 32, "i8": 16 + 4}[case["type"]]  # 16 numbers of a head
            self.assertEqual(case["cache_bytes"], 2 * 2 * 2 * 301 * token)
            self.assertAlmostEqual(case["cache_bytes_over_f32"], token / 64)

    def test_rates_and_ratios_follow_from_the_times(self):
        for case in self.data("--type", "bf16")["cases"]:
            moved = case["weight_bytes"] + case["cache_bytes"]
            self.assertAlmostEqual(case["gbps"], moved / case["ms_median"] / 1e6, delta=1e-6 * case["gbps"])
            self.assertIsNone(case["time_over_f32"])
            self.assertGreater(case["time_over_stream"], 0)
            if not case["paged"]:
                self.assertEqual(case["time_over_contiguous"], 1)


class Words(unittest.TestCase):
    def test_the_table_has_a_line_per_cache(self):
        result = decode()
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("rapt bench decode", "one token, 300 cached", "4 heads on 2 kv heads", "f32 contiguous",
                      "f32 pages", "i8 pages", "/read", "/contiguous", "error"):
            self.assertIn(words, result.stdout)

    def test_what_is_wrong_is_named(self):
        for arguments, because in ((("--cached", "0"), "--cached: '0' is not an integer from 1"),
                                   (("--type", "f64"), "--type: 'f64' is not one of f32, bf16, f16, i8"),
                                   (("--page-size", "17"), "17"), (("--heads", "5"), "heads 5"),
                                   (("--kv-heads", "3"), "kv_heads 3")):
            result = rapt("bench", "decode", *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertIn(because, result.stderr)


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
