#!/usr/bin/env python3
"""`rapt info` and `rapt check`, end to end.

    check_test.py COMMAND [unittest arguments]
"""

import functools
import json
import os
import subprocess
import sys
import unittest

COMMAND = "rapt"


def rapt(*arguments, cores=None, **changes):
    clean = {k: v for k, v in os.environ.items() if k not in ("RAPT_ISA", "RAPT_NUM_THREADS")}
    limit = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8",
                          preexec_fn=limit)


def info(**changes):
    result = rapt("info", "--json", **changes)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return json.loads(result.stdout)


def gpus_here():
    return ["cuda"] if info()["gpus"] else []


def sets_here():
    return [one["name"] for one in info()["instruction_sets"] if one["runs_here"]]


class Info(unittest.TestCase):
    def test_text_and_data_tell_the_same(self):
        text = rapt("info").stdout
        data = info()
        self.assertEqual(data["schema"], 1)
        self.assertTrue(text.startswith(f"rapt {data['version']}\n"))
        self.assertIn(data["processor"], text)
        self.assertIn(f"{data['threads']}: {data['threads_because']}", text)
        for one in data["instruction_sets"] + data["engines"]:
            self.assertIn(one["name"], text)
        self.assertEqual([one["name"] for one in data["engines"]], ["cpu", "reference", "cuda"])

    def test_the_best_set_is_in_use_unless_another_is_named(self):
        self.assertEqual([one["name"] for one in info()["instruction_sets"] if one["in_use"]], sets_here()[:1])
        for name in sets_here():
            in_use = [one["name"] for one in info(RAPT_ISA=name)["instruction_sets"] if one["in_use"]]
            self.assertEqual(in_use, [name])

    def test_an_unknown_set_is_wrong_usage_that_lists_the_known_ones(self):
        for command in (["info"], ["info", "--json"], ["check"]):
            result = rapt(*command, RAPT_ISA="mmx")
            self.assertEqual((result.returncode, result.stdout), (2, ""), command)
            self.assertIn("unknown name mmx; this build has ", result.stderr)
            self.assertIn(sets_here()[0], result.stderr)

    def test_threads_have_a_reason(self):
        self.assertEqual(info(RAPT_NUM_THREADS="5")["threads"], 5)
        self.assertEqual(info(RAPT_NUM_THREADS="5")["threads_because"], "RAPT_NUM_THREADS=5")
        garbled = info(RAPT_NUM_THREADS="many")
        self.assertEqual(garbled["threads"], info()["threads"])
        self.assertIn("RAPT_NUM_THREADS=many is not a positive integer", garbled["threads_because"])
        cores = os.sched_getaffinity(0)
        one = info(cores={min(cores)})
        self.assertEqual((one["threads"], one["affinity"]), (1, 1))
        if one["cores"] > 1:
            self.assertIn("affinity", one["threads_because"])


@functools.cache
def whole_check():
    """The case list on every engine and instruction set, which takes half a minute: the tests share it."""
    return rapt("check", "--random", "30", "--seed", "5", "--json")


class Check(unittest.TestCase):
    def test_every_engine_and_set_is_right(self):
        result = whole_check()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("failures", result.stderr)  # progress
        data = json.loads(result.stdout)
        self.assertTrue(data["good"])
        self.assertEqual(data["failures"], [])
        names = [(one["engine"], one["instruction_set"]) for one in data["engines"]]
        gpus = [(name, "") for name in gpus_here()]
        self.assertEqual(names, [("reference", "")] + [("cpu", name) for name in sets_here()] + gpus)
        for one in data["engines"]:
            self.assertGreater(one["cases"], 100)
            self.assertEqual(one["differ"], 0)
            self.assertLess(one["worst_of_allowed"], 1)
            self.assertGreater(one["gradients"], 100)
            self.assertLess(one["gradients"], one["cases"])
            self.assertGreater(one["worst_gradient_of_allowed"], 0)
            self.assertLess(one["worst_gradient_of_allowed"], 1)

    def test_the_table_goes_to_stdout_and_progress_to_stderr(self):
        result = rapt("check", "--case", "Random17")
        self.assertEqual(result.returncode, 0)
        self.assertIn("all results agree with the reference", result.stdout)
        for name in ["reference"] + sets_here():
            self.assertIn(name, result.stdout)
        self.assertNotIn("failures", result.stdout)

    def test_one_set_and_one_case_can_be_asked_for(self):
        for name in sets_here():
            data = json.loads(rapt("check", "--case", "Random17", "--isa", name, "--json").stdout)
            self.assertEqual([(one["instruction_set"], one["cases"]) for one in data["engines"]], [(name, 1)])

    def test_the_same_seed_gives_the_same_numbers(self):
        best = sets_here()[0]
        again = rapt("check", "--random", "30", "--seed", "5", "--isa", best, "--json")

        def worst(result):
            return [[one[key] for key in ("worst_of_allowed", "worst_case", "worst_gradient_case")]
                    for one in json.loads(result.stdout)["engines"] if one["instruction_set"] == best]

        self.assertEqual(len(worst(again)), 1)
        self.assertEqual(worst(again), worst(whole_check()))

    def digests(self, *arguments, **changes):
        result = rapt("check", "--digest", "--json", *arguments, **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["digests"]

    def test_digests_tell_bits_apart(self):
        one, other = (self.digests("--case", name) for name in ("Random17", "Random18"))
        engines = ["reference"] + [f"cpu {name}" for name in sets_here()] + gpus_here()
        for digests in (one, other):
            self.assertEqual([each["engine"] for each in digests], engines)
            for each in digests:
                self.assertRegex(each["attention"], "^[0-9a-f]{16}$")
        for a, b in zip(one, other):
            self.assertNotEqual(a["attention"], b["attention"])

    def test_digests_do_not_depend_on_the_number_of_threads(self):
        best = sets_here()[0]
        one, three = (self.digests("--random", "5", "--isa", best, RAPT_NUM_THREADS=threads) for threads in ("1", "3"))
        self.assertEqual(one, three)
        self.assertRegex(one[0]["attention"] + one[0]["layers"], "^[0-9a-f]{32}$")

    def test_one_engine_can_be_asked_for(self):
        for name in ("reference", "cpu"):
            data = json.loads(rapt("check", "--case", "Random17", "--engine", name, "--json").stdout)
            self.assertEqual({one["engine"] for one in data["engines"]}, {name})

    def test_what_an_engine_leaves_out_is_said(self):
        engines = {one["instruction_set"]: one for one in json.loads(whole_check().stdout)["engines"]}
        for name in sets_here():
            self.assertGreater(engines[name]["left_out"], 0)
            self.assertEqual(engines[name]["left_out_because"], "only the reference engine computes f64")

    def test_rows_made_in_other_ways_have_the_same_bits(self):
        best = sets_here()[0]
        result = rapt("check", "--bits", "--case", "GroupedHeads", "--isa", best, "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        data = json.loads(result.stdout)
        self.assertTrue(data["good"])
        self.assertEqual(len(data["ways"]), 8)
        for way in data["ways"]:
            self.assertEqual((way["engine"], way["cases"], way["differ"]), (f"cpu {best}", 1, 0), way["what"])

    def test_without_a_gpu_the_cuda_engine_says_why(self):
        if gpus_here():
            self.skipTest("there is one")
        reason = info()["no_gpu_because"]
        self.assertNotEqual(reason, "")
        self.assertIn(f"none: {reason}", rapt("info").stdout)
        result = rapt("check", "--engine", "cuda")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, f"rapt: check: the cuda engine cannot run here: {reason}\n")
        result = rapt("bench", "attention", "--device", "cuda")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn(f"bench: --device cuda: {reason}", result.stderr)

    def test_bad_options_have_a_message(self):
        table = [
            (["--isa", "mmx"], "instruction set: unknown name mmx; this build has "),
            (["--case", "Nothing"], "check: unknown case Nothing; give a name from the case list, or Random and a seed"),
            (["--case", "Random1x"], "check: unknown case Random1x"),
            (["--engine", "gpu"], "--engine: 'gpu' is not one of reference, cpu, cuda"),
            (["--engine", "reference", "--isa", "avx2"], "check: only the cpu engine has instruction sets"),
            (["--random", "-1"], "--random: -1 is not a non-negative integer (see rapt check --help)"),
            (["--random", "many"], "--random: many is not a non-negative integer"),
            (["--seed", "1.5"], "--seed: 1.5 is not a non-negative integer"),
        ]
        for arguments, message in table:
            with self.subTest(arguments=arguments):
                result = rapt("check", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr.startswith(f"rapt: {message}"), result.stderr)

    def test_tensor_cores_are_checked_or_it_says_why_not(self):
        for arguments in (["--tensor-core"], ["--tensor-core", "--json"]):
            result = rapt("check", *arguments)
            if result.returncode == 0:  # a Hopper GPU
                self.assertIn("NVIDIA", result.stdout)
            else:
                self.assertEqual((result.returncode, result.stdout), (1, ""), arguments)
                self.assertTrue(result.stderr.startswith("rapt: tensor-core check: "), result.stderr)
        for other in (["--case", "Plain"], ["--random", "3"], ["--isa", "avx2"], ["--digest"]):
            result = rapt("check", "--tensor-core", *other)
            self.assertEqual((result.returncode, result.stdout), (2, ""), other)
            self.assertIn("--tensor-core", result.stderr)

    def test_each_has_help(self):
        for command, option in (("check", "--isa"), ("info", "--json")):
            result = rapt(command, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(option, result.stdout)


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
