#!/usr/bin/env python3
"""`rapt bench mha` end to end: its data, its arithmetic and its exit codes.

    bench_mha_test.py COMMAND [unittest arguments]

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
VARIANTS = ["per-head", "separate", "packed", "plain", "mean-weights", "all-weights", "bf16", "f16", "training",
            "training-dropout"]
SMALL = ("--batch", "2", "--tokens", "37", "--embed", "48", "--heads", "4")


def rapt(*arguments, **changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8")


def mha(*arguments, rounds=2, small=SMALL, **changes):
    return rapt("bench", "mha", *small, "--reps", str(rounds), "--min-time", "0", *arguments, **changes)


class WithoutSgemm(unittest.TestCase):
    """Tests that do not need sgemm disable it: its 2048³ product would take most of their time."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        for name in LIBRARIES:  # the loader finds an empty file first, so no library can be loaded
            (pathlib.Path(cls._folder.name) / name).touch()

    def mha(self, *arguments, **changes):
        result = mha(*arguments, LD_LIBRARY_PATH=self._folder.name, **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def data(self, *arguments, **changes):
        return json.loads(self.mha("--json", *arguments, **changes).stdout)

    def cases(self, *arguments, **changes):
        return self.data(*arguments, **changes)["cases"]


class Data(WithoutSgemm):
    def test_the_data_has_the_promised_shape(self):
        found = self.data()
        self.assertEqual(found["schema"], 1)
        self.assertEqual(set(found["machine"]), {"cpu", "isa", "fma", "threads", "cores", "version"})
        self.assertEqual(found["sizes"],
                         {"batch": 2, "tokens": 37, "embed": 48, "heads": 4, "kv_heads": 4, "causal": True})
        self.assertEqual(found["baselines"], [{"threads": 1, "sgemm_library": None, "sgemm_gflops": None}])
        self.assertEqual([case["variant"] for case in found["cases"]], VARIANTS)
        for case in found["cases"]:
            self.assertEqual(case["rounds"], 2)
            self.assertEqual(case["threads"], 1)
            self.assertGreater(case["error"], 0)
            self.assertEqual(case["type"], case["variant"] if case["variant"] in ("bf16", "f16") else "f32")
            self.assertLessEqual(case["ms_min"], case["ms_median"])
            self.assertLessEqual(case["ms_median"], case["ms_max"])
            self.assertIsNone(case["time_over_sgemm"])

    def test_work_is_the_projections_and_the_pairs_that_are_seen(self):
        one = ("--variants", "packed", "--embed", "32", "--heads", "4", "--batch", "3", "--tokens", "10")
        for causal, pairs in (("yes", 55), ("no", 100)):
            self.assertEqual(self.data(*one, "--causal", causal, small=())["flops"],
                             2 * 30 * 32 * (3 * 32 + 32) + 4 * 3 * 4 * 8 * pairs)
        # One kv head of 8 numbers: k and v are 16 of the input projection's outputs.
        self.assertEqual(self.data(*one, "--kv-heads", "1", small=())["flops"],
                         2 * 30 * 32 * (32 + 16 + 32) + 4 * 3 * 4 * 8 * 55)

    def test_backward_is_twice_the_projections_and_five_halves_of_the_pairs(self):
        packed, training, dropout = self.cases("--variants", "packed,training,training-dropout", "--embed", "32",
                                               "--heads", "4", "--batch", "3", "--tokens", "10", small=(), rounds=3)
        projections, pairs = 2 * 30 * 32 * (3 * 32 + 32), 4 * 3 * 4 * 8 * 55
        self.assertEqual(packed["flops"], projections + pairs)
        for case in (training, dropout):
            self.assertEqual(case["flops"], 3 * projections + 3.5 * pairs)
            self.assertAlmostEqual(case["gflops"], case["flops"] / case["ms_median"] / 1e6,
                                   delta=1e-6 * case["gflops"])

    def test_rates_and_ratios_follow_from_the_times(self):
        # An odd number of rounds: the median of the rates is then the rate of the median.
        found = self.data("--variants", "plain,packed", rounds=3)
        plain, packed = found["cases"]
        for case in (plain, packed):
            self.assertAlmostEqual(case["gflops"], found["flops"] / case["ms_median"] / 1e6, delta=1e-6 * case["gflops"])
        self.assertEqual(packed["time_over_packed"], 1)
        self.assertGreaterEqual(plain["time_over_packed"], plain["ms_min"] / packed["ms_max"])
        self.assertLessEqual(plain["time_over_packed"], plain["ms_max"] / packed["ms_min"])

    def test_without_packed_there_is_nothing_to_compare_with(self):
        case, = self.cases("--variants", "separate")
        self.assertIsNone(case["time_over_packed"])

    def test_every_number_of_threads_has_every_variant(self):
        found = self.data("--threads", "1,2")
        self.assertEqual([(case["threads"], case["variant"]) for case in found["cases"]],
                         [(threads, variant) for threads in (1, 2) for variant in VARIANTS])
        self.assertEqual(len({case["name"] for case in found["cases"]}), 2 * len(VARIANTS))
        self.assertEqual([each["threads"] for each in found["baselines"]], [1, 2])

    def test_every_variant_is_right_in_other_shapes_too(self):
        for batch, tokens, heads, kv_heads, causal in ((2, 37, 4, 2, "yes"), (2, 37, 4, 1, "no"), (1, 1, 4, 4, "yes"),
                                                       (3, 200, 4, 4, "no"), (2, 37, 1, 1, "yes")):
            sizes = ("--batch", str(batch), "--tokens", str(tokens), "--embed", "48", "--heads", str(heads),
                     "--kv-heads", str(kv_heads), "--causal", causal)
            self.assertEqual(len(self.cases(small=sizes, rounds=1)), len(VARIANTS), sizes)

    def test_every_instruction_set_is_right(self):
        sets = json.loads(rapt("info", "--json").stdout)["instruction_sets"]
        for name in (each["name"] for each in sets if each["runs_here"]):
            self.assertEqual(len(self.cases(rounds=1, RAPT_ISA=name)), len(VARIANTS))


class Sgemm(unittest.TestCase):
    def test_time_is_held_against_the_work_at_its_rate(self):
        result = mha("--variants", "packed", "--json", rounds=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        case, = found["cases"]
        baseline, = found["baselines"]
        if baseline["sgemm_library"] is None:
            self.assertIn(NO_LIBRARY, result.stderr)
            self.assertIsNone(case["time_over_sgemm"])
            return
        wanted = case["ms_median"] / (found["flops"] / baseline["sgemm_gflops"] / 1e6)
        self.assertAlmostEqual(case["time_over_sgemm"], wanted, delta=1e-6 * wanted)


class Words(WithoutSgemm):
    def test_the_table_has_a_line_per_variant(self):
        result = self.mha()
        self.assertIn(NO_LIBRARY, result.stderr)
        for words in ("rapt bench mha", "batch 2, 37 tokens, width 48, 4 heads, causal", "variant", "GFLOP/s", "/sgemm",
                      "one projection per head", "separate q, k, v", "packed qkv ", "plain formula", "mean weights",
                      "all weights", "bf16", "f16", "packed qkv and backward, dropout 0.1"):
            self.assertIn(words, result.stdout)

    def test_help_lists_the_options(self):
        result = rapt("bench", "mha", "--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--batch", "--tokens", "--embed", "--heads", "--kv-heads", "--causal", "--variants", "--threads",
                       "--reps", "--min-time", "--json", "--color"):
            self.assertIn(option, result.stdout)


class WrongUsage(unittest.TestCase):
    def refused(self, *arguments, because):
        result = rapt("bench", "mha", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(because, result.stderr)

    def test_what_is_wrong_is_named(self):
        self.refused("--batch", "0", because="--batch: '0' is not an integer from 1")
        self.refused("--tokens", "many", because="--tokens: 'many' is not an integer")
        self.refused("--causal", "maybe", because="--causal: 'maybe' is not one of yes, no")
        self.refused("--variants", "packed,fast", because="--variants: 'fast' is not one of per-head, separate, packed")
        self.refused("--variants", "packed,packed", because="--variants lists a value twice")
        self.refused("--threads", "2,2", because="--threads lists a value twice")
        self.refused("--reps", "0", because="--reps: '0'")
        self.refused("--heads", "5", because="an embedding size of 768 is not divisible by 5 heads")
        self.refused("--kv-heads", "5", because="12 heads cannot share 5 kv heads evenly")
        self.refused("--tokens", "99999999", because="needs tensors of")


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
