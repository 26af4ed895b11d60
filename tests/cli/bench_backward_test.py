#!/usr/bin/env python3
"""`rapt bench backward` end to end: the parts that `rapt bench attention` does not have.

    bench_backward_test.py COMMAND [unittest arguments]

Sizes are tiny: these tests do not measure speed.
"""

import csv
import io
import json
import os
import subprocess
import sys
import unittest

COMMAND = "rapt"
NO_LIBRARY = "no sgemm to compare with"


def rapt(*arguments, **changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8")


def bench(*arguments, rounds=2, **changes):
    """The stdout of a successful run, which prints nothing to stderr."""
    result = rapt("bench", "backward", "--reps", str(rounds), "--min-time", "0", *arguments, **changes)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def cases(*arguments, **changes):
    return json.loads(bench("--json", *arguments, **changes))["cases"]


class Data(unittest.TestCase):
    def test_defaults_are_those_of_forward(self):
        case, = cases("--queries", "4")
        wanted = {"name": "b1 h8 n4 d128", "pass": "backward", "batch": 1, "heads": 8, "keys": 4, "dtype": "f32",
                  "causal": False, "mask": "none", "threads": 1, "rounds": 2}
        self.assertEqual({key: case[key] for key in wanted}, wanted)
        self.assertNotIn("gbps", case)
        forward, = json.loads(rapt("bench", "attention", "--queries", "4", "--reps", "1", "--json").stdout)["cases"]
        self.assertEqual(forward["pass"], "forward")

    def test_work_is_five_products_of_the_pairs_that_are_seen(self):
        full, causal = cases("--queries", "64", "--dim", "8", "--causal", "both", rounds=3)
        self.assertEqual(full["flops"], 5 * 2 * 8 * 8 * 64 * 64)
        self.assertEqual(causal["flops"], 5 * 2 * 8 * 8 * (64 * 65 // 2))
        self.assertAlmostEqual(full["gflops"], full["flops"] / full["ms_median"] / 1e6, delta=1e-6 * full["gflops"])

    def test_every_option_is_right(self):
        found = cases("--queries", "37", "--keys", "37,50", "--heads", "4", "--kv-heads", "2", "--dim", "8", "--batch",
                      "2", "--causal", "both", "--mask", "none,bool,float,bool-plane,float-plane", rounds=1)
        self.assertEqual(len(found), 20)
        found += cases("--queries", "1,300", "--dim", "16", "--dtype", "f32,bf16,f16,f64", "--window", "none",
                       "--window", "20,5", "--threads", "1,2", rounds=1)
        for case in found:
            self.assertGreaterEqual(case["error"], 0)
            self.assertLess(case["error"], {"f32": 4e-6, "f64": 1e-12, "bf16": 8e-3, "f16": 1e-3}[case["dtype"]])
        self.assertGreater(max(case["error"] for case in found), 1e-4)  # not 0, because 16-bit results are rounded

    def test_every_engine_and_instruction_set_is_right(self):
        sets = json.loads(rapt("info", "--json").stdout)["instruction_sets"]
        for name in (each["name"] for each in sets if each["runs_here"]):
            found = cases("--queries", "70", "--dim", "24", "--causal", "both", rounds=1, RAPT_ISA=name)
            self.assertEqual(len(found), 2)
        self.assertEqual(len(cases("--queries", "16", "--dim", "8", "--engine", "reference", rounds=1)), 1)

    def test_the_rate_is_held_against_sgemms(self):
        result = rapt("bench", "backward", "--queries", "16", "--dim", "8", "--baseline", "--json", "--reps", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        case, baseline = found["cases"][0], found["baseline"]
        self.assertAlmostEqual(case["over_fma"], case["gflops"] / baseline["fma_gflops"], delta=1e-6 * case["over_fma"])
        if baseline["sgemm_gflops"] is None:
            self.assertIn(NO_LIBRARY, result.stderr)
        else:
            wanted = case["gflops"] / baseline["sgemm_gflops"]
            self.assertAlmostEqual(case["over_sgemm"], wanted, delta=1e-6 * wanted)
        self.assertNotIn("over_stream", case)


class Shown(unittest.TestCase):
    def test_the_table_names_every_case(self):
        page = bench("--queries", "8,16", "--dim", "8", COLUMNS="100")
        for text in ("rapt bench backward", "b1 h8 n8 d8", "b1 h8 n16 d8", "GFLOP/s", "spread", "five products"):
            self.assertIn(text, page)
        self.assertNotIn("GB/s", page)

    def test_csv_is_there_too(self):
        rows = list(csv.DictReader(io.StringIO(bench("--csv", "--queries", "8,16", "--dim", "8"))))
        self.assertEqual([row["pass"] for row in rows], ["backward", "backward"])


class WrongUsage(unittest.TestCase):
    def test_what_only_forward_has_is_refused(self):
        for argument in ("--decode", "--weights=mean"):
            result = rapt("bench", "backward", argument)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(argument.split("=")[0], result.stderr)


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
