#!/usr/bin/env python3
"""`rapt bench attention` end to end: its data, its arithmetic, its output and its exit codes.

    bench_test.py COMMAND [unittest arguments]

Sizes are tiny: these tests do not measure speed.
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = "rapt"
LIBRARIES = ["libopenblas.so.0", "libopenblas.so", "libdnnl.so.3", "libdnnl.so.2", "libmkl_rt.so.2", "libmkl_rt.so"]
RATIOS = {"over_sgemm": "sgemm_gflops", "over_fma": "fma_gflops"}


def rapt(*arguments, **changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8")


def attention(*arguments, rounds=2, **changes):
    return rapt("bench", "attention", "--reps", str(rounds), "--min-time", "0", *arguments, **changes)


def bench(*arguments, **changes):
    """The stdout of a successful run, which prints nothing to stderr."""
    result = attention(*arguments, **changes)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "", result.stderr
    return result.stdout


def data(*arguments, **changes):
    return json.loads(bench("--json", *arguments, **changes))


def cases(*arguments, **changes):
    return data(*arguments, **changes)["cases"]


class Data(unittest.TestCase):
    def test_the_data_has_the_promised_shape(self):
        found = data("--heads", "2", "--queries", "16", "--dim", "8")
        self.assertEqual(found["schema"], 1)
        self.assertEqual(set(found["machine"]), {"cpu", "isa", "fma", "threads", "cores", "version"})
        self.assertIsNone(found["baseline"])
        self.assertEqual(len(found["cases"]), 1)
        case = found["cases"][0]
        for key in ("name", "ms_median", "ms_min", "gflops", "gbps", "batch", "threads", "dtype"):
            self.assertIn(key, case)
        self.assertEqual(case["name"], "b1 h2 n16 d8")
        self.assertEqual(case["rounds"], 2)
        self.assertGreater(case["error"], 0)
        self.assertNotIn("over_sgemm", case)

    def test_defaults_are_those_of_the_help(self):
        case = cases("--queries", "4")[0]
        wanted = {"batch": 1, "heads": 8, "kv_heads": 8, "queries": 4, "keys": 4, "dim": 128, "dtype": "f32",
                  "causal": False, "window": "none", "mask": "none", "weights": "none", "threads": 1}
        self.assertEqual({key: case[key] for key in wanted}, wanted)

    def test_times_are_in_order(self):
        case = cases("--queries", "16", rounds=5)[0]
        times = [case[key] for key in ("ms_min", "ms_q1", "ms_median", "ms_q3", "ms_max")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)

    def test_rates_follow_from_the_times(self):
        # An odd number of rounds: the median of the rates is then the rate of the median.
        for case in cases("--batch", "2", "--heads", "4", "--kv-heads", "2", "--queries", "8,12", "--keys", "32",
                          "--dim", "16", rounds=3):
            flops = 4 * 2 * 4 * case["queries"] * 32 * 16
            self.assertEqual(case["flops"], flops)
            self.assertAlmostEqual(case["gflops"], flops / case["ms_median"] / 1e6, delta=1e-6 * case["gflops"])
            read = 2 * 2 * 2 * 32 * 16 * 4  # k and v, batch, kv heads, keys, dim, bytes
            self.assertEqual(case["bytes"], read)
            self.assertAlmostEqual(case["gbps"], read / case["ms_median"] / 1e6, delta=1e-6 * case["gbps"])

    def test_only_visible_pairs_count(self):
        full, causal = cases("--queries", "64", "--dim", "8", "--causal", "both")
        self.assertEqual(full["flops"], 4 * 8 * 8 * 64 * 64)
        self.assertEqual(causal["flops"], 4 * 8 * 8 * (64 * 65 // 2))
        band = cases("--queries", "64", "--dim", "8", "--window", "3,0")[0]
        self.assertEqual(band["flops"], 4 * 8 * 8 * (61 * 4 + 1 + 2 + 3))
        cached = cases("--queries", "2", "--keys", "64", "--dim", "8", "--causal")[0]
        self.assertEqual(cached["flops"], 4 * 8 * 8 * (63 + 64))

    def test_16_bit_inputs_are_half_the_bytes(self):
        small = cases("--queries", "8", "--dim", "8", "--dtype", "bf16", "--engine", "reference")[0]
        self.assertEqual(small["bytes"], 2 * 8 * 8 * 8 * 2)


class Decoding(unittest.TestCase):
    def test_it_is_one_query_on_a_long_cache_in_every_type(self):
        result = rapt("bench", "attention", "--help")
        self.assertIn("1 query on 32768 keys, 32 heads on 8 kv heads", " ".join(result.stdout.split()))
        found = cases("--decode", "--keys", "64")  # the whole cache would take too long for a test
        self.assertEqual([case["name"] for case in found],
                         ["b1 h32/8 q1 k64 d128", "b1 h32/8 q1 k64 d128 bf16", "b1 h32/8 q1 k64 d128 f16"])

    def test_what_is_given_besides_changes_it_wherever_it_stands(self):
        before = cases("--queries", "4", "--keys", "32", "--dtype", "f32", "--kv-heads", "16", "--decode")
        after = cases("--decode", "--queries", "4", "--keys", "32", "--dtype", "f32", "--kv-heads", "16")
        self.assertEqual([case["name"] for case in before], ["b1 h32/16 q4 k32 d128"])
        self.assertEqual([case["name"] for case in after], ["b1 h32/16 q4 k32 d128"])


class Sweeps(unittest.TestCase):
    def test_lists_multiply(self):
        found = cases("--queries", "4,8", "--dim", "8,16,24", "--causal", "both", "--threads", "1,2")
        self.assertEqual(len(found), 2 * 3 * 2 * 2)
        self.assertEqual(len({case["name"] for case in found}), len(found))

    def test_keys_follow_queries_and_kv_heads_follow_heads(self):
        for case in cases("--queries", "4,8", "--heads", "2,4", "--dim", "8"):
            self.assertEqual(case["keys"], case["queries"])
            self.assertEqual(case["kv_heads"], case["heads"])

    def test_windows_sweep_by_being_given_again(self):
        found = cases("--queries", "16", "--dim", "8", "--window", "none", "--window", "4,0", "--window", "2,open")
        self.assertEqual([case["window"] for case in found], ["none", "4,0", "2,open"])

    def test_every_mask_and_every_kind_of_weights_is_right(self):
        found = cases("--queries", "20", "--heads", "4", "--kv-heads", "2", "--dim", "8", "--batch", "2", "--causal",
                      "--mask", "none,bool,float,bool-plane,float-plane", "--weights", "none,mean,all")
        self.assertEqual(len(found), 15)

    def test_every_engine_is_right(self):
        for engine in ("auto", "cpu", "reference"):
            self.assertEqual(len(cases("--queries", "16", "--dim", "8", "--engine", engine)), 1)


class Baseline(unittest.TestCase):
    """One run serves most of these tests, because it times a large matrix product."""

    @classmethod
    def setUpClass(cls):
        cls.run_of = attention("--queries", "16", "--dim", "8", "--baseline", "--json", rounds=1)
        assert cls.run_of.returncode == 0, cls.run_of.stderr
        cls.found = json.loads(cls.run_of.stdout)

    def test_the_machine_is_measured(self):
        baseline = self.found["baseline"]
        self.assertGreater(baseline["fma_gflops"], 0)
        self.assertGreater(baseline["stream_gbps"], 0)
        self.assertEqual(baseline, self.found["baselines"][0])

    def test_a_library_that_was_found_is_named(self):
        baseline = self.found["baseline"]
        if baseline["sgemm_library"] is None:
            self.assertIn("no sgemm to compare with", self.run_of.stderr)
        else:
            self.assertIn(baseline["sgemm_library"], ("OpenBLAS", "oneDNN", "MKL"))
            self.assertGreater(baseline["sgemm_gflops"], 0)
            self.assertEqual(self.run_of.stderr, "")

    def test_without_a_library_there_is_a_note_and_no_number(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in LIBRARIES:  # the loader finds an empty file first, so no library can be loaded
                (pathlib.Path(folder) / name).touch()
            result = attention("--queries", "4", "--dim", "8", "--baseline", "--json", rounds=1, LD_LIBRARY_PATH=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no sgemm to compare with", result.stderr)
        found = json.loads(result.stdout)
        self.assertIsNone(found["baseline"]["sgemm_library"])
        self.assertIsNone(found["baseline"]["sgemm_gflops"])
        self.assertIsNone(found["cases"][0]["over_sgemm"])
        self.assertGreater(found["cases"][0]["over_fma"], 0)

    def test_ratios_are_rates_over_the_baseline(self):
        case, baseline = self.found["cases"][0], self.found["baseline"]
        for ratio, of in RATIOS.items():
            if baseline[of] is not None:
                self.assertAlmostEqual(case[ratio], case["gflops"] / baseline[of], delta=1e-9 + 1e-6 * case[ratio])

    def test_reading_is_held_against_a_plain_read_of_the_same_bytes(self):
        case, baseline = self.found["cases"][0], self.found["baseline"]
        self.assertGreater(case["stream_gbps"], 0)
        self.assertAlmostEqual(case["over_stream"], case["gbps"] / case["stream_gbps"], delta=1e-6)
        for way in (case["stream_way"], baseline["stream_way"]):
            self.assertRegex(way, r"^(16 bytes|avx2|avx512)(, (prefetch|[48] streams))?$")


class Shown(unittest.TestCase):
    def test_the_table_names_every_case(self):
        page = bench("--queries", "8,16", "--dim", "8", COLUMNS="100")
        for text in ("rapt bench attention", "b1 h8 n8 d8", "b1 h8 n16 d8", "GFLOP/s", "spread"):
            self.assertIn(text, page)
        self.assertNotIn("\x1b", page)
        self.assertIn("\x1b", bench("--queries", "8", "--dim", "8", "--color", "always"))

    def test_csv_has_the_columns_of_the_data(self):
        arguments = ["--queries", "8,16", "--dim", "8", "--window", "4,0"]
        rows = list(csv.DictReader(io.StringIO(bench("--csv", *arguments))))
        found = cases(*arguments)
        self.assertEqual(len(rows), 2)
        self.assertEqual(list(rows[0]), list(found[0]))
        self.assertEqual([row["name"] for row in rows], [case["name"] for case in found])
        self.assertEqual(rows[0]["window"], "4,0")
        self.assertGreater(float(rows[1]["ms_median"]), 0)

    def test_help_lists_the_options(self):
        result = rapt("bench", "attention", "--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--batch", "--kv-heads", "--window", "--baseline", "--json", "--csv"):
            self.assertIn(option, result.stdout)


class WrongUsage(unittest.TestCase):
    def refused(self, *arguments, because):
        result = rapt("bench", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(because, result.stderr)

    def test_a_bad_number_is_named(self):
        self.refused("attention", "--queries", "12,x", because="--queries: 'x' is not an integer")
        self.refused("attention", "--queries", "0", because="--queries: '0' is not an integer from 1")
        self.refused("attention", "--queries", "4,", because="--queries: '' is not an integer")
        self.refused("attention", "--dim", "513", because="--dim: '513' is not an integer from 1 to 512")
        self.refused("attention", "--reps", "0", because="--reps: '0'")
        self.refused("attention", "--min-time", "-1", because="--min-time")

    def test_a_bad_choice_lists_the_good_ones(self):
        self.refused("attention", "--mask", "int", because="--mask: 'int' is not one of none, bool, float")
        self.refused("attention", "--dtype", "int8", because="not one of f32, f64, bf16, f16")
        self.refused("attention", "--weights", "some", because="is not one of none, mean, all")
        self.refused("attention", "--engine", "gpu", because="is not one of auto, cpu, reference")
        self.refused("attention", "--causal", "maybe", because="is not one of yes, no, both")

    def test_a_bad_window_shows_a_good_one(self):
        self.refused("attention", "--window", "256", because="'256' is not LEFT,RIGHT, such as 256,0")
        self.refused("attention", "--window", "a,0", because="--window: 'a' is not an integer")

    def test_heads_that_cannot_be_shared_are_refused(self):
        self.refused("attention", "--heads", "8", "--kv-heads", "3", because="8 heads cannot share 3 kv heads evenly")

    def test_more_memory_than_there_is_anywhere_is_refused(self):
        self.refused("attention", "--queries", "99999999", "--mask", "bool", because="needs tensors of")

    def test_json_and_csv_exclude_each_other(self):
        self.refused("attention", "--json", "--csv", because="excludes")

    def test_bench_alone_says_what_is_missing(self):
        self.refused(because="requires a command: attention")


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
