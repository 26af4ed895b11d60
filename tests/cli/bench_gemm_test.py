#!/usr/bin/env python3
"""`rapt bench gemm` end to end: its data, its arithmetic and its exit codes.

    bench_gemm_test.py COMMAND [unittest arguments]

Sizes are tiny: these tests do not measure speed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = "rapt"
LIBRARIES = ["libopenblas.so.0", "libopenblas.so", "libdnnl.so.3", "libdnnl.so.2", "libmkl_rt.so.2", "libmkl_rt.so"]
NO_LIBRARY = "no sgemm to compare with"


def rapt(*arguments, **changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8")


def gemm(*arguments, rounds=2, **changes):
    return rapt("bench", "gemm", "--reps", str(rounds), "--min-time", "0", *arguments, **changes)


def data(*arguments, **changes):
    result = gemm("--json", *arguments, **changes)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "" or NO_LIBRARY in result.stderr, result.stderr
    return json.loads(result.stdout)


def cases(*arguments, **changes):
    return data(*arguments, **changes)["cases"]


class Data(unittest.TestCase):
    def test_the_data_has_the_promised_shape(self):
        found = data("--rows", "3", "--shape", "40x30")
        self.assertEqual(found["schema"], 1)
        self.assertEqual(set(found["machine"]), {"cpu", "isa", "fma", "threads", "cores", "version"})
        case, = found["cases"]
        self.assertEqual(case["name"], "m3 k40 n30")
        self.assertEqual(case["rounds"], 2)
        self.assertGreater(case["error"], 0)
        self.assertIsNone(case["stream_gbps"])
        self.assertIsNone(case["over_stream"])

    def test_defaults_are_those_of_the_help(self):
        found = cases("--shape", "8x8")
        self.assertEqual([case["rows"] for case in found], [1, 8, 32, 128, 512, 2048])
        case, = cases("--rows", "1")
        self.assertEqual((case["inputs"], case["outputs"], case["type"], case["threads"]), (1024, 1024, "f32", 1))

    def test_rates_follow_from_the_times(self):
        # An odd number of rounds: the median of the rates is then the rate of the median.
        for case in cases("--rows", "2,7", "--shape", "33x20", "--type", "f32,bf16", rounds=3):
            flops = 2 * case["rows"] * 33 * 20
            self.assertEqual(case["flops"], flops)
            self.assertAlmostEqual(case["gflops"], flops / case["ms_median"] / 1e6, delta=1e-6 * case["gflops"])
            read = 33 * 20 * (4 if case["type"] == "f32" else 2)
            self.assertEqual(case["bytes"], read)
            self.assertAlmostEqual(case["gbps"], read / case["ms_median"] / 1e6, delta=1e-6 * case["gbps"])

    def test_lists_multiply(self):
        found = cases("--rows", "1,2", "--shape", "8x16,24x8", "--type", "f32,bf16,f16", "--threads", "1,2")
        self.assertEqual(len(found), 2 * 2 * 3 * 2)
        self.assertEqual(len({case["name"] for case in found}), len(found))

    def test_one_row_is_held_against_a_plain_read(self):
        case, = cases("--rows", "1", "--shape", "200x100", rounds=3)
        self.assertGreater(case["stream_gbps"], 0)
        self.assertGreater(case["over_stream"], 0)
        self.assertTrue(case["stream_way"])

    def test_every_instruction_set_is_right(self):
        sets = json.loads(rapt("info", "--json").stdout)["instruction_sets"]
        for name in (each["name"] for each in sets if each["runs_here"]):
            self.assertEqual(len(cases("--rows", "9", "--shape", "70x50", RAPT_ISA=name)), 1)


class Libraries(unittest.TestCase):
    def test_those_that_were_found_are_named_and_the_better_one_counts(self):
        result = gemm("--rows", "4", "--shape", "64x64", "--json", rounds=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        case, = json.loads(result.stdout)["cases"]
        if not case["libraries"]:
            self.assertIn(NO_LIBRARY, result.stderr)
            return
        best = max(case["libraries"], key=case["libraries"].get)
        self.assertEqual(case["sgemm_library"], best)
        wanted = case["gflops"] / case["libraries"][best]
        self.assertAlmostEqual(case["over_sgemm"], wanted, delta=1e-6 * wanted)

    def test_without_a_library_there_is_a_note_and_no_number(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in LIBRARIES:  # the loader finds an empty file first, so no library can be loaded
                (pathlib.Path(folder) / name).touch()
            result = gemm("--rows", "2", "--shape", "8x8", "--json", LD_LIBRARY_PATH=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(NO_LIBRARY, result.stderr)
        case, = json.loads(result.stdout)["cases"]
        self.assertEqual(case["libraries"], {})
        self.assertIsNone(case["sgemm_library"])
        self.assertIsNone(case["over_sgemm"])
        self.assertGreater(case["gflops"], 0)


class Words(unittest.TestCase):
    def test_the_table_has_a_line_per_case(self):
        page = gemm("--rows", "1,5", "--shape", "16x24").stdout
        for words in ("rapt bench gemm", "m1 k16 n24", "m5 k16 n24", "/best", "/read"):
            self.assertIn(words, page)

    def test_help_lists_the_options(self):
        result = rapt("bench", "gemm", "--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--rows", "--shape", "--type", "--threads", "--reps", "--min-time", "--json"):
            self.assertIn(option, result.stdout)


class WrongUsage(unittest.TestCase):
    def refused(self, *arguments, because):
        result = rapt("bench", "gemm", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(because, result.stderr)

    def test_what_is_wrong_is_named(self):
        self.refused("--rows", "0", because="--rows: '0' is not an integer from 1")
        self.refused("--shape", "1024", because="--shape: '1024' is not KxN, such as 1024x4096")
        self.refused("--shape", "8xy", because="--shape: 'y' is not an integer")
        self.refused("--type", "f64", because="--type: 'f64' is not one of f32, bf16, f16")
        self.refused("--reps", "0", because="--reps: '0'")
        self.refused("--rows", "99999999", "--shape", "99999x8", because="needs matrices of")


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
