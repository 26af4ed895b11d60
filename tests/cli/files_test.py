#!/usr/bin/env python3
"""rapt run, inspect and convert on files, as a user meets them.

    files_test.py COMMAND LAYERS [unittest arguments]

LAYERS is tests/data/layers: layers that PyTorch saved, with inputs and answers.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import arrays

COMMAND = "rapt"
LAYERS = "layers"
PREFIX = "model.layers.0.attn."


def attention(q, k, v, causal=False):
    """Of one head, (L, D) each: the formula."""
    out = []
    for i, query in enumerate(q):
        scores = [sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query)) for key in k]
        if causal:
            scores = scores[: i + 1]
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        out.append([sum(w * row[d] for w, row in zip(weights, v)) / sum(weights) for d in range(len(v[0]))])
    return out


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.values = arrays.numbers(2 * 5 * 12)
        self.write("x.npy", arrays.npy((2, 5, 12), self.values))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def layer(self, name):
        return os.path.join(LAYERS, f"{name}.safetensors")

    def rapt(self, *arguments, **more):
        return arrays.run(COMMAND, *arguments, folder=self.folder, **more)

    def good(self, *arguments, **more):
        result = self.rapt(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def used(self, *arguments):
        """The exit code of a run, the most memory it had in kilobytes, and its seconds."""
        start = time.monotonic()
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, used.ru_maxrss, time.monotonic() - start

    def near(self, a, b, bound=1e-5):
        self.assertEqual(len(a), len(b))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), bound)


class Run(Files):
    def test_a_layer_of_each_family_answers_as_pytorch_did(self):
        for name in sorted(os.listdir(LAYERS)):
            if name in ("several.safetensors", "torch_kdim.safetensors"):
                continue
            with self.subTest(name=name):
                file = os.path.join(LAYERS, name)
                self.good("run", "--model", file, "--heads", "4", "--input", f"{file}:input", "--out", "y.npy")
                with open(file, "rb") as data:
                    kind, shape, values = arrays.read_safetensors(data.read())["answer"]
                got_shape, got = arrays.read_npy(self.read("y.npy"))
                self.assertEqual(list(got_shape), shape)
                self.near(got, values, 5e-6)

    def test_keys_and_values_may_have_sizes_of_their_own(self):
        with open(self.layer("torch_kdim"), "rb") as file:
            tensors = arrays.read_safetensors(file.read())
        _, shape, values = tensors["input"]
        tokens = [values[n : n + 12] for n in range(0, len(values), 12)]
        for name, size in (("k.npy", 5), ("v.npy", 7)):  # as make_layers.py cut them
            self.write(name, arrays.npy((*shape[:2], size), [x for token in tokens for x in token[:size]]))
        self.good("run", "--model", self.layer("torch_kdim"), "--heads", "4", "--query", self.layer("torch_kdim") + ":input",
                  "--key", "k.npy", "--value", "v.npy", "--out", "y.npy")
        self.near(arrays.read_npy(self.read("y.npy"))[1], tensors["answer"][2], 5e-6)

    def test_plain_attention_is_the_formula(self):
        rows = [self.values[n * 4 : n * 4 + 4] for n in range(5)]
        self.write("q.npy", arrays.npy((1, 1, 5, 4), sum(rows, [])))
        for causal in (False, True):
            self.good("run", "--input", "q.npy", *(["--causal"] if causal else []), "--out", "y.npy")
            shape, got = arrays.read_npy(self.read("y.npy"))
            self.assertEqual(shape, (1, 1, 5, 4))
            self.near(got, sum(attention(rows, rows, rows, causal), []))

    def test_a_matrix_is_one_head_and_tokens_are_split(self):
        self.write("q.npy", arrays.npy((5, 4), self.values[:20]))
        self.good("run", "--query", "q.npy", "--key", "q.npy", "--value", "q.npy", "--out", "y.npy")
        self.assertEqual(arrays.read_npy(self.read("y.npy"))[0], (5, 4))
        self.good("run", "--input", "x.npy", "--heads", "3", "--weights", "w.npy", "--out", "y.npy")
        self.assertEqual(arrays.read_npy(self.read("y.npy"))[0], (2, 5, 12))
        shape, weights = arrays.read_npy(self.read("w.npy"))
        self.assertEqual(shape, (2, 3, 5, 5))
        self.near([sum(weights[n : n + 5]) for n in range(0, len(weights), 5)], [1.0] * 30)
        self.good("run", "--input", "x.npy", "--heads", "3", "--weights", "w.npy", "--weights-of", "mean")
        self.assertEqual(arrays.read_npy(self.read("w.npy"))[0], (2, 5, 5))
        self.write("row.npy", arrays.npy((5, 12), self.values[:60]))
        self.good("run", "--input", "row.npy", "--heads", "3", "--out", "z.npy")
        shape, alone = arrays.read_npy(self.read("z.npy"))
        self.assertEqual(shape, (5, 12))
        self.assertEqual(alone, arrays.read_npy(self.read("y.npy"))[1][:60])

    def test_keys_may_have_fewer_heads(self):
        self.write("k.npy", arrays.npy((2, 5, 6), self.values[:60]))
        twice = [x for n in range(0, 60, 3) for x in self.values[n : n + 3] * 2]  # each head for two of the queries
        self.write("k2.npy", arrays.npy((2, 5, 12), twice))
        self.good("run", "--query", "x.npy", "--key", "k.npy", "--heads", "4", "--kv-heads", "2", "--out", "y.npy")
        self.assertIn("--kv-heads says", self.rapt("run", "--query", "x.npy", "--key", "k.npy", "--heads", "4").stderr)
        self.good("run", "--query", "x.npy", "--key", "k2.npy", "--heads", "4", "--out", "z.npy")
        self.assertEqual(self.read("y.npy"), self.read("z.npy"))

    def test_length_may_come_first(self):
        rows = [self.values[n : n + 12] for n in range(0, 120, 12)]
        self.write("l.npy", arrays.npy((5, 2, 12), [x for i in range(5) for b in range(2) for x in rows[b * 5 + i]]))
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "x.npy", "--out", "y.npy")
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "l.npy", "--length-first", "--out", "z.npy")
        y, z = (arrays.read_npy(self.read(name))[1] for name in ("y.npy", "z.npy"))
        self.assertEqual(y[12:24], z[24:36])

    def test_lse_and_scores_are_written(self):
        self.good("run", "--input", "x.npy", "--heads", "2", "--lse", "l.npy", "--scores", "raw:s.npy",
                  "--scores", "weights:p.npy", "--causal", "--scale", "0.5", "--softcap", "30", "--threads", "1")
        shape, lse = arrays.read_npy(self.read("l.npy"))
        self.assertEqual(shape, (2, 2, 5))
        _, raw = arrays.read_npy(self.read("s.npy"))
        _, weights = arrays.read_npy(self.read("p.npy"))
        self.near([weights[0], weights[1]], [1.0, 0.0])
        self.near([lse[0]], [30 * math.tanh(raw[0] / 30)])

    def test_a_layer_gives_lse_and_scores_too(self):
        # The layer whose projections change nothing is plain attention.
        one = [float(i == j) for i in range(12) for j in range(12)]
        self.write("m.safetensors", arrays.safetensors({f"W_{x}.weight": ("F32", [12, 12], one) for x in "qkvo"}))
        asked = ["--input", "x.npy", "--heads", "3", "--causal"]
        for prefix, model in (("plain", []), ("layer", ["--model", "m.safetensors"])):
            self.good("run", *model, *asked, "--lse", f"{prefix}_l.npy", "--scores", f"raw:{prefix}_s.npy",
                      "--scores", f"masked:{prefix}_m.npy", "--weights", f"{prefix}_w.npy", "--out", f"{prefix}_y.npy")
        for name in ("l", "s", "m", "w", "y"):
            self.assertEqual(self.read(f"plain_{name}.npy"), self.read(f"layer_{name}.npy"), name)

    def test_lse_and_scores_have_the_shape_of_the_call(self):
        asked = ["--heads", "4", "--lse", "l.npy", "--scores", "raw:s.npy"]
        for file, model, lse, scores in (
            ("x.npy", "w_q", (2, 4, 5), (2, 4, 5, 5)),
            ("row.npy", "w_q", (4, 5), (4, 5, 5)),
        ):
            self.write("row.npy", arrays.npy((5, 12), self.values[:60]))
            self.good("run", "--model", self.layer(model), "--input", file, *asked)
            self.assertEqual(arrays.read_npy(self.read("l.npy"))[0], lse)
            self.assertEqual(arrays.read_npy(self.read("s.npy"))[0], scores)
        self.good("run", "--lse", "l.npy", "--scores", "weights:s.npy")  # the example
        self.assertEqual(arrays.read_npy(self.read("l.npy"))[0], (1, 4, 8))

    def test_masks_say_what_true_means(self):
        lower = [j <= i for i in range(5) for j in range(5)]
        self.write("keep.npy", arrays.npy((5, 5), lower, "b1"))
        self.write("drop.npy", arrays.npy((5, 5), [int(not seen) for seen in lower], "i8"))
        self.write("add.npy", arrays.npy((5, 5), [0.0 if seen else -math.inf for seen in lower]))
        self.good("run", "--input", "x.npy", "--heads", "2", "--causal", "--out", "y.npy")
        wanted = self.read("y.npy")
        for mask in (["keep.npy", "--mask-true", "keep"], ["drop.npy", "--mask-true", "drop"], ["add.npy"]):
            self.good("run", "--input", "x.npy", "--heads", "2", "--mask", *mask, "--out", "y.npy")
            self.near(arrays.read_npy(self.read("y.npy"))[1], arrays.read_npy(wanted)[1])

    def test_key_lengths_and_window_hide_keys(self):
        self.good("run", "--input", "x.npy", "--heads", "1", "--key-lengths", "3,5", "--window", "1,", "--weights", "w.npy")
        _, weights = arrays.read_npy(self.read("w.npy"))
        self.assertEqual(weights[3:5], [0.0, 0.0])
        self.assertEqual(weights[2 * 5 : 2 * 5 + 1], [0.0])

    def test_a_mask_may_fill_instead_of_hiding(self):
        # The notes' masked_fill(mask == 0, -1e9): a row that is filled whole attends evenly, one that is hidden gives 0.
        keep = [False] * 5 + [j < 2 for _ in range(4) for j in range(5)]
        self.write("keep.npy", arrays.npy((5, 5), keep, "b1"))
        self.write("drop.npy", arrays.npy((5, 5), [not seen for seen in keep], "b1"))
        first = {}
        for name, more in (("keep", ["--mask-fill", "-1e9"]), ("drop", ["--mask-fill", "-1e9"]), ("keep", [])):
            self.good("run", "--input", "x.npy", "--heads", "1", "--mask", f"{name}.npy", "--mask-true", name, *more,
                      "--weights", "w.npy")
            _, weights = arrays.read_npy(self.read("w.npy"))
            first[name, bool(more)] = weights[:5]
            self.assertEqual(weights[7:10], [0.0] * 3)
        self.near(first["keep", True], [0.2] * 5)
        self.near(first["drop", True], [0.2] * 5)
        self.assertEqual(first["keep", False], [0.0] * 5)

    def test_packed_sequences_are_rows_of_their_own(self):
        self.write("packed.npy", arrays.npy((1, 8, 12), self.values[:36] + self.values[60:]))
        self.good("run", "--input", "packed.npy", "--heads", "3", "--causal", "--query-starts", "0,3,8", "--out", "y.npy")
        self.good("run", "--input", "x.npy", "--heads", "3", "--causal", "--key-lengths", "3,5", "--out", "z.npy")
        packed, padded = (arrays.read_npy(self.read(name))[1] for name in ("y.npy", "z.npy"))
        self.assertEqual(packed, padded[:36] + padded[60:])
        self.write("k.npy", arrays.npy((1, 5, 12), self.values[:60]))
        self.good("run", "--query", "packed.npy", "--key", "k.npy", "--heads", "1", "--query-starts", "0,3,8",
                  "--key-starts", "0,1,5", "--weights", "w.npy")
        self.assertEqual(arrays.read_npy(self.read("w.npy"))[1][:5], [1.0, 0.0, 0.0, 0.0, 0.0])

    def test_the_first_query_may_stand_anywhere(self):
        self.write("q.npy", arrays.npy((2, 1, 2, 12), self.values[:48]))
        self.write("k.npy", arrays.npy((2, 1, 5, 12), self.values))
        for offset, seen in (("3", (4, 4)), ("1,2", (2, 3))):
            self.good("run", "--query", "q.npy", "--key", "k.npy", "--causal", "--offset", offset, "--weights", "w.npy")
            _, weights = arrays.read_npy(self.read("w.npy"))
            self.assertEqual(tuple(sum(w > 0 for w in weights[row * 10 : row * 10 + 5]) for row in range(2)), seen)

    def test_alibi_and_sinks_change_the_scores_as_the_formula_does(self):
        self.write("sinks.npy", arrays.npy((2,), [0.5, -math.inf]))
        self.good("run", "--input", "x.npy", "--heads", "2", "--alibi-slopes", "0.5,0", "--sinks", "sinks.npy",
                  "--scores", "raw:r.npy", "--scores", "masked:m.npy", "--scores", "weights:w.npy")
        raw, masked, weights = (arrays.read_npy(self.read(f"{name}.npy"))[1] for name in "rmw")
        distance = [abs(i - j) for i in range(5) for j in range(5)]
        self.near(masked[:25], [s - 0.5 * d for s, d in zip(raw, distance)])
        self.assertEqual(masked[25:50], raw[25:50])
        total = sum(math.exp(s) for s in masked[:5])
        self.near(weights[:5], [math.exp(s) / (total + math.exp(0.5)) for s in masked[:5]])
        self.near([sum(weights[25:30])], [1.0])

    def test_dropout_is_a_function_of_its_seed(self):
        def weights(*more):
            self.good("run", "--input", "x.npy", "--heads", "2", "--weights", "w.npy", *more)
            return arrays.read_npy(self.read("w.npy"))[1]

        whole, once, again = weights(), weights("--dropout", "0.5"), weights("--dropout", "0.5", "--seed", "0")
        self.assertEqual(once, again)
        self.assertNotEqual(once, weights("--dropout", "0.5", "--seed", "1"))
        self.assertEqual(once, weights("--dropout", "0.5", "--threads", "1", "--engine", "cpu"))
        self.assertTrue(0 < once.count(0.0) < len(once))
        for kept, before in zip(once, whole):
            self.assertAlmostEqual(kept, 2 * before if kept else 0.0, delta=1e-6)
        layer = ["--model", self.layer("w_q")]  # the same places, whatever the numbers
        self.assertEqual([w == 0.0 for w in weights(*layer, "--dropout", "0.5")][:50], [w == 0.0 for w in once][:50])

    def test_the_reference_can_be_asked(self):
        for engine in ("reference", "cpu"):
            self.good("run", "--input", "x.npy", "--heads", "2", "--engine", engine, "--out", f"{engine}.npy")
        a, b = (arrays.read_npy(self.read(f"{engine}.npy"))[1] for engine in ("reference", "cpu"))
        self.near(a, b, 1e-6)
        self.assertNotEqual(a, b)

    def test_rotary_embedding_has_its_options(self):
        def answer(*more):
            self.good("run", "--model", self.layer("w_q"), "--heads", "3", "--input", "x.npy", "--out", "y.npy", *more)
            return arrays.read_npy(self.read("y.npy"))[1]

        half = ("--rotary", "half")
        whole = answer(*half)
        self.near(answer(*half, "--position", "7"), whole)  # only differences of positions count
        self.near(answer(*half, "--rotary-size", "4"), whole, 0.0 + 1e-12)
        self.near(answer(*half, "--rotary-scaling", "linear:1"), whole, 1e-12)
        others = {tuple(answer(*half, *more)): more for more in (
            (), ("--rotary-size", "2"), ("--rotary-base", "5"), ("--rotary-scaling", "linear:2"),
            ("--rotary-scaling", "ntk:4"), ("--rotary-scaling", "yarn:4,64"), ("--rotary-scaling", "llama3:8,16"),
            ("--rotary-scaling", "llama3:8,16,1,2"))}
        self.assertEqual(len(others), 8, list(others.values()))
        # dynamic is ntk by 2 · 5 / 2 − (2 − 1) = 4.
        self.assertEqual(others[tuple(answer(*half, "--rotary-scaling", "dynamic:2,2,5"))], ("--rotary-scaling", "ntk:4"))

    def test_a_layer_may_have_a_key_of_zeros(self):
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "x.npy", "--add-zero-attention",
                  "--weights", "w.npy")
        self.assertEqual(arrays.read_npy(self.read("w.npy"))[0], (2, 4, 5, 6))

    def test_pipes_carry_arrays(self):
        result = self.good("run", "--input", "-", "--heads", "2", "--out", "-", stdin=self.read("x.npy"), text=False)
        self.good("run", "--input", "x.npy", "--heads", "2", "--out", "y.npy")
        self.assertEqual(result.stdout, self.read("y.npy"))
        result = self.good("run", "--input", "x.npy", "--heads", "2", "--scores", "masked:-", text=False)
        self.assertEqual(arrays.read_npy(result.stdout)[0], (2, 2, 5, 5))

    def test_without_out_a_summary_is_printed(self):
        text = self.good("run", "--input", "x.npy", "--heads", "2")
        self.assertIn("(2, 5, 12) f32", text.stdout)
        self.assertEqual(text.stderr, "")
        self.assertNotIn("\x1b", text.stdout)
        data = json.loads(self.good("run", "--model", self.layer("wq"), "--heads", "4", "--input", "x.npy", "--json").stdout)
        self.assertEqual(data["out"]["shape"], [2, 5, 12])
        self.assertEqual((data["model"]["names"], data["model"]["kv_heads"], data["model"]["prefix"]), ("wq", 2, PREFIX))

    def test_without_any_input_an_example_runs(self):
        result = self.good("run")
        self.assertIn("if the cat ran", result.stdout)
        self.assertIn("(1, 8, 24)", result.stdout)

    def test_types_can_be_chosen(self):
        data = json.loads(self.good("run", "--input", "x.npy", "--heads", "2", "--dtype", "bf16", "--json").stdout)
        self.assertEqual(data["out"]["dtype"], "bf16")
        data = json.loads(self.good("run", "--model", self.layer("bert"), "--heads", "4", "--input", "x.npy", "--dtype", "f64",
                                    "--json").stdout)
        self.assertEqual(data["out"]["dtype"], "f64")

    def test_a_large_file_costs_only_what_is_read(self):
        # A gigabyte of other tensors, which lie in a hole of the file.
        with open(self.layer("w_q"), "rb") as file:
            tensors = {n: t for n, t in arrays.read_safetensors(file.read()).items() if n.startswith(PREFIX)}
        data = arrays.safetensors(tensors)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        body = data[8 + size :]
        header["other"] = {"dtype": "F32", "shape": [256 * 1024 * 1024], "data_offsets": [len(body), len(body) + 2**30]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(self.path("large.safetensors"), "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + body)
            file.truncate(8 + len(text) + len(body) + 2**30)
        self.write("small.safetensors", data)
        seconds = {}
        for name in ("small", "large"):
            arguments = ["run", "--model", f"{name}.safetensors", "--heads", "4", "--input", "x.npy"]
            runs = [self.used(*arguments) for _ in range(5)]
            self.assertEqual([code for code, _, _ in runs], [0] * 5)
            self.assertLess(max(kilobytes for _, kilobytes, _ in runs), 300_000, "kilobytes in memory")
            seconds[name] = min(time for _, _, time in runs)
        self.assertLess(seconds["large"], seconds["small"] + 0.2)
        shown = self.good("inspect", "large.safetensors").stdout
        self.assertIn("no statistics: the file is larger than", shown)


class Mistakes(Files):
    def refused(self, code, *arguments, says):
        result = self.rapt(*arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("rapt: "), result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def run_model(self, *arguments, says, code=1):
        self.refused(code, "run", "--model", self.layer("w_q"), *arguments, says=says)

    def test_a_wrong_number_of_heads(self):
        self.run_model("--heads", "5", "--input", "x.npy", says=["--heads is 5", "these work: 1, 2, 3, 4, 6, 12"])
        self.refused(1, "run", "--model", self.layer("wq"), "--heads", "4", "--kv-heads", "4", "--input", "x.npy",
                     says=["--kv-heads is 4", "which are 2 heads"])

    def test_no_number_of_heads(self):
        self.run_model("--input", "x.npy", says=["how many heads", "give --heads. These work: 1, 2, 3, 4, 6, 12"])

    def test_another_number_of_heads_than_the_array_has(self):
        self.write("q.npy", arrays.npy((1, 2, 5, 12), self.values))
        self.refused(2, "run", "--input", "q.npy", "--heads", "3", says=["(1, 2, 5, 12)", "2 heads", "3 were asked for"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "5", says=["(2, 5, 12)", "do not divide into 5 heads"])

    def test_a_transposed_array(self):
        self.write("t.npy", arrays.npy((2, 12, 5), self.values))
        self.run_model("--heads", "4", "--input", "t.npy", says=["(2, 12, 5)", "(B, L, E)", "E = 12", "transposed?"])

    def test_a_missing_file(self):
        self.run_model("--heads", "4", "--input", "y.npy", says=["there is no file y.npy", "did you mean x.npy?"])
        self.refused(1, "run", "--model", "m.safetensors", "--heads", "4", "--input", "x.npy",
                     says=["there is no file m.safetensors"])
        self.refused(1, "inspect", "nothing.npz", says=["rapt: there is no file nothing.npz"])

    def test_a_typo_in_the_name_of_a_tensor(self):
        self.run_model("--heads", "4", "--input", self.layer("w_q") + ":inptu",
                       says=['has no tensor "inptu"', "did you mean", ":input?"])
        self.run_model("--heads", "4", "--input", self.layer("w_q"), code=2, says=["tensors; name one as", "input"])

    def test_text_instead_of_an_array(self):
        self.write("x.txt", b"1 2 3\n4 5 6\n")
        self.run_model("--heads", "4", "--input", "x.txt", says=["x.txt", "numpy.save"])

    def test_f64_where_the_model_has_f32(self):
        self.write("d.npy", arrays.npy((2, 5, 12), self.values, "f8"))
        self.run_model("--heads", "4", "--input", "d.npy", says=["f64", "--dtype f32"])
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "d.npy", "--dtype", "f32")

    def test_integers_for_tokens(self):
        self.write("i.npy", arrays.npy((2, 5, 12), [1] * 120, "i8"))
        self.run_model("--heads", "4", "--input", "i.npy", says=["--input: i.npy", "int64", "astype"])
        self.write("b.npy", arrays.npy((2, 5, 12), [True] * 120, "b1"))
        self.run_model("--heads", "4", "--input", "b.npy", says=["b.npy holds bool", "astype"])

    def test_a_claim_of_100_gigabytes_costs_no_memory(self):
        claimed = 100 * 10**9
        self.write("header.safetensors", claimed.to_bytes(8, "little") + b"{}")
        text = json.dumps({"a": {"dtype": "F32", "shape": [claimed // 4], "data_offsets": [0, claimed]}}).encode()
        self.write("tensor.safetensors", len(text).to_bytes(8, "little") + text)
        self.write("a.npy", arrays.npy((claimed // 4,), []))
        for name in ("header.safetensors", "tensor.safetensors", "a.npy"):
            for arguments in (["inspect", name], ["run", "--input", name, "--heads", "1"]):
                with self.subTest(arguments=arguments):
                    code, kilobytes, _ = self.used(*arguments)
                    self.assertEqual(code, 1)
                    self.assertLess(kilobytes, 300_000)

    def test_a_mask_of_the_wrong_shape(self):
        self.write("m.npy", arrays.npy((4, 5), [True] * 20, "b1"))
        self.run_model("--heads", "4", "--input", "x.npy", "--mask", "m.npy", "--mask-true", "keep",
                       says=["--mask: m.npy", "(4, 5)", "(2, 4, 5, 5)", "a matrix is (Lq, Lk)", "--mask-of keys"])
        self.write("m3.npy", arrays.npy((2, 5, 5), [True] * 50, "b1"))
        self.run_model("--heads", "4", "--input", "x.npy", "--mask", "m3.npy", "--mask-true", "keep", code=2,
                       says=["two readings", "--mask-of batch"])

    def test_an_odd_head_that_should_turn(self):
        self.run_model("--heads", "4", "--rotary", "half", "--input", "x.npy",
                       says=["--rotary: head size is 3", "another number of --heads"])
        self.good("run", "--model", self.layer("w_q"), "--heads", "6", "--rotary", "half", "--input", "x.npy")
        self.run_model("--heads", "6", "--rotary", "half", "--rotary-base", "-1", "--input", "x.npy", says=["--rotary-base is -1"])

    def test_an_archive_without_the_name_of_a_member(self):
        self.good("convert", self.layer("w_q"), "two.npz")
        self.run_model("--heads", "4", "--input", "two.npz", code=2, says=["two.npz holds", "name one as two.npz:NAME", "input"])
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "two.npz:input")

    def test_an_option_with_nothing_behind_it(self):
        self.run_model("--heads", "4", "--input", "x.npy", "--weights", code=2, says=["--weights needs something", "--weights FILE"])
        self.run_model("--heads", "4", "--input", "x.npy", "--weights", "--out", "y.npy", code=2,
                       says=["--weights: needs something behind it, and --out is an option"])
        self.refused(2, "inspect", says=["rapt inspect FILE"])
        self.refused(2, "convert", "x.npy", says=["rapt convert IN OUT"])
        self.refused(2, "run", "x.npy", says=["x.npy belongs to no option"])
        self.refused(2, "bench", says=["rapt bench needs one of attention"])

    def test_keys_that_do_not_fit_the_queries(self):
        self.write("k.npy", arrays.npy((3, 5, 12), self.values + self.values[:60]))
        self.run_model("--heads", "4", "--query", "x.npy", "--key", "k.npy", says=["rapt: --key has batch size 3"])
        self.write("v.npy", arrays.npy((2, 4, 12), self.values[:96]))
        self.run_model("--heads", "4", "--query", "x.npy", "--key", "x.npy", "--value", "v.npy", says=["rapt: --value has shape"])

    def test_a_mask_without_a_meaning(self):
        self.write("m.npy", arrays.npy((5, 5), [True] * 25, "b1"))
        self.run_model("--heads", "4", "--input", "x.npy", "--mask", "m.npy", code=2,
                       says=["--mask-true keep", "--mask-true drop"])

    def test_an_output_in_a_folder_that_is_not_there(self):
        self.run_model("--heads", "4", "--input", "x.npy", "--out", "results/y.npy",
                       says=["there is no folder results", "mkdir -p results"])

    def test_an_unknown_flag(self):
        self.run_model("--heads", "4", "--inptu", "x.npy", code=2,
                       says=["there is no --inptu; did you mean --input?", "rapt run --help"])
        self.refused(2, "inpect", "x.npy", says=["there is no inpect; did you mean inspect?", "rapt --help"])

    def test_a_model_of_several_layers(self):
        self.refused(1, "run", "--model", self.layer("several"), "--heads", "4", "--input", "x.npy",
                     says=["2 attention layers", "choose one with --prefix:", "encoder.0.attn.", "encoder.1.attn."])
        self.good("run", "--model", self.layer("several"), "--prefix", "encoder.0", "--heads", "4", "--input", "x.npy")

    def test_what_the_library_refuses_is_said_in_flags(self):
        self.write("k.npy", arrays.npy((1, 2, 3, 12), self.values[:72]))
        self.write("q.npy", arrays.npy((1, 2, 5, 12), self.values))
        self.refused(1, "run", "--query", "q.npy", "--key", "k.npy", "--causal",
                     says=["rapt: --causal", "5 queries and 3 keys", "--align top-left", "--align bottom-right"])
        self.good("run", "--query", "q.npy", "--key", "k.npy", "--window", "1,1", "--align", "bottom-right")
        self.refused(1, "run", "--input", "q.npy", "--key-lengths", "9", says=["rapt: --key-lengths[0] is 9", "5 keys"])
        self.refused(1, "run", "--input", "key_lengths.npy", says=["there is no file key_lengths.npy"])
        self.refused(2, "run", "--heads", "5", says=["24 numbers", "do not divide into 5 heads"])

    def test_a_model_that_is_no_file_of_tensors(self):
        self.refused(2, "run", "--model", "x.npy", "--heads", "4", "--input", "x.npy", says=["x.npy", "save_file"])
        self.refused(1, "inspect", "x.npz", says=["there is no file x.npz", "did you mean x.npy?"])

    def test_options_that_do_not_go_together(self):
        self.refused(2, "run", "--input", "x.npy", "--query", "x.npy", says=["--input is query, key and value in one"])
        self.refused(2, "run", "--model", self.layer("w_q"), says=["give --input"])
        self.refused(2, "run", "--input", "x.npy", says=["(2, 5, 12)", "--heads N", "--model"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--causal", "left", says=["top-left, bottom-right"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--weights-of", "mean", says=["give --weights"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "4", "--kv-heads", "2", says=["give --key"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--out", "y.npz", says=["y.npz", "rapt convert"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--window", "3", says=["LEFT,RIGHT"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--scores", "s.npy", says=["STAGE:FILE"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--json", "--out", "-", says=["standard output"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--mask-fill", "-1e9", says=["give --mask too"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--mask", "x.npy", "--mask-of", "batch", "--mask-fill",
                     "-1e9", says=["--mask-fill: x.npy holds f32"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--seed", "3", says=["give --dropout too"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--add-zero-attention", says=["give --model too"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--rotary-size", "2", says=["give --rotary half"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--position", "2", says=["--rotary"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--align", "top-left", "--offset", "2", says=["one of them"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-scaling", "yarn:4", code=2,
                       says=["'yarn:4' should be yarn:FACTOR,ORIGINAL"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-scaling", "far:4", code=2,
                       says=["'far' is none of linear, ntk, dynamic, yarn, llama3"])

    def test_numbers_of_heads_and_rows_that_do_not_fit(self):
        asked = ["run", "--input", "x.npy", "--heads", "2"]
        self.write("sinks.npy", arrays.npy((3,), [0.0] * 3))
        self.refused(1, *asked, "--alibi-slopes", "1", says=["rapt: --alibi-slopes has 1 values for 2 query heads"])
        self.refused(1, *asked, "--sinks", "sinks.npy", says=["rapt: --sinks has shape (3,)", "(Hq)"])
        self.refused(1, *asked, "--query-starts", "0,5", says=["rapt: --query-starts: sequences lie in one batch row"])
        self.refused(1, *asked, "--causal", "--offset", "1,2,3", says=["rapt: --offset has 3 offsets for 2 batch rows"])
        self.run_model("--heads", "4", "--input", "x.npy", "--alibi-slopes", "1", says=["rapt: --alibi-slopes has 1 values"])
        self.run_model("--heads", "4", "--input", "x.npy", "--sinks", "sinks.npy", says=["rapt: --sinks has shape (3,)"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-size", "6",
                       says=["--rotary-size is 6", "the head size 4"])
        self.write("row.npy", arrays.npy((1, 5, 12), self.values[:60]))
        self.refused(1, "run", "--input", "row.npy", "--heads", "2", "--query-starts", "0,2,5", "--key-starts", "0,5",
                     says=["--query-starts names 2 sequences, --key-starts 1"])


class Inspect(Files):
    def test_every_tensor_has_its_statistics(self):
        self.write("a.safetensors", arrays.safetensors(
            {"w": ("F32", [2, 2], [0.0, 1.0, 3.0, math.nan]), "ids": ("I64", [2], [1, 2])}, {"made": "by hand"}))
        data = json.loads(self.good("inspect", "a.safetensors", "--json").stdout)
        w, ids = data["tensors"]
        self.assertEqual((w["name"], w["shape"], w["type"], w["bytes"]), ("w", [2, 2], "F32", 16))
        self.assertEqual((w["statistics"]["min"], w["statistics"]["max"], w["statistics"]["zeros"], w["statistics"]["nans"]),
                         (0.0, 3.0, 1, 1))
        self.assertNotIn("statistics", ids)
        self.assertEqual(data["metadata"], {"made": "by hand"})
        text = self.good("inspect", "a.safetensors").stdout
        self.assertIn("I64", text)
        self.assertIn("no attention layer", text)
        self.assertRegex(text, r"min +max +mean +std")
        self.assertIn("1 NaN", text)
        self.assertNotIn("mean", self.good("inspect", "a.safetensors", "--no-stats").stdout)
        self.assertEqual(self.rapt("inspect", "a.safetensors", "--stats", "--no-stats").returncode, 2)

    def test_layers_that_repeat_are_said_once(self):
        weight = ("F32", [128, 128], [0.0] * 128 * 128)
        self.write("a.safetensors", arrays.safetensors({f"{n}.w{x}.weight": weight for n in range(3) for x in "qkvo"}))
        text = self.good("inspect", "a.safetensors").stdout
        self.assertIn("rapt run --model a.safetensors --prefix 0. --heads 2 --input x.npy", text)
        self.assertIn("  1.  as the one before\n  2.  as the one before\n", text)

    def test_the_command_it_gives_runs_the_layer(self):
        shutil.copy(self.layer("gpt2"), self.path("gpt2.safetensors"))
        data = json.loads(self.good("inspect", "gpt2.safetensors", "--json").stdout)
        (layer,) = data["layers"]
        self.assertEqual((layer["names"], layer["context_length"], layer["prefix"]), ("c_attn", 7, PREFIX))
        self.assertIn(4, layer["possible_heads"])
        self.assertIn(layer["run"], self.good("inspect", "gpt2.safetensors").stdout)
        self.assertIn(" --heads N ", layer["run"])  # no shape tells it, and no head size that people use fits 12
        words = layer["run"].replace("--heads N", "--heads 4").split()
        self.assertEqual(words[0], "rapt")
        self.good(*words[1:])

    def test_heads_that_the_file_notes_are_taken(self):
        with open(self.layer("wq"), "rb") as file:
            tensors = {n: t for n, t in arrays.read_safetensors(file.read()).items() if n != "answer"}
        self.write("a.safetensors", arrays.safetensors(tensors, {"rapt.heads": "4"}))
        (layer,) = json.loads(self.good("inspect", "a.safetensors", "--json").stdout)["layers"]
        self.assertEqual((layer["likely_heads"], layer["run"]), (4, "rapt run --model a.safetensors --heads 4 --input x.npy"))
        self.good("run", "--model", "a.safetensors", "--input", "x.npy")

    def test_several_layers_come_with_their_prefixes(self):
        text = self.good("inspect", self.layer("several")).stdout
        self.assertIn("--prefix encoder.0.attn.", text)
        self.assertIn("these work: 1, 2, 3, 4, 6, 12", text)

    def test_one_array(self):
        data = json.loads(self.good("inspect", "x.npy", "--json").stdout)
        self.assertEqual(data["tensors"][0]["shape"], [2, 5, 12])


class Convert(Files):
    def test_there_and_back_gives_the_same_numbers(self):
        self.good("convert", self.layer("gpt2"), "a.npz")
        self.good("convert", "a.npz", "b.npz", "--compress")
        result = self.good("convert", "b.npz", "b.safetensors")
        self.assertIn("wrote b.safetensors: ", result.stdout)
        with open(self.layer("gpt2"), "rb") as file:
            self.assertEqual(arrays.read_safetensors(file.read()), arrays.read_safetensors(self.read("b.safetensors")))

    def test_names_change_and_answers_do_not(self):
        def answer(model):
            self.good("run", "--model", model, "--heads", "4", "--input", "x.npy", "--out", "y.npy")
            return self.read("y.npy")

        wanted = answer(self.layer("gpt2"))
        for names in ("torch", "W_q", "W_query", "q_linear", "wq", "q_proj", "query", "to_q", "qkv", "c_attn"):
            with self.subTest(names=names):
                result = self.good("convert", self.layer("gpt2"), "a.safetensors", "--names", names)
                self.assertIn(f"c_attn to {names}", result.stdout)
                self.assertIn("model.layers.0.norm.weight", arrays.read_safetensors(self.read("a.safetensors")))
                self.assertEqual(answer("a.safetensors"), wanted)

    def test_projections_can_be_packed_or_separate(self):
        self.good("convert", self.layer("torch"), "a.safetensors", "--projections", "separate")
        self.assertIn(PREFIX + "q_proj_weight", arrays.read_safetensors(self.read("a.safetensors")))
        self.good("convert", "a.safetensors", "b.safetensors", "--projections", "packed")
        self.assertIn(PREFIX + "in_proj_weight", arrays.read_safetensors(self.read("b.safetensors")))

        result = self.rapt("convert", self.layer("wq"), "c.safetensors", "--projections", "packed")
        self.assertEqual(result.returncode, 1)
        for part in (PREFIX, "in one each", "--names", "--projections"):
            self.assertIn(part, result.stderr)
        self.assertFalse(os.path.exists(self.path("c.safetensors")))

    def test_a_killed_conversion_leaves_the_old_file_or_the_new_one(self):
        wholes = []
        for value in (1.0, 2.0):
            self.write(f"{value}.safetensors", arrays.safetensors({"a": ("F32", [200000], [value] * 200000)}))
            self.good("convert", f"{value}.safetensors", "out.safetensors")
            wholes.append(self.read("out.safetensors"))
        killed = 0
        start = time.monotonic()
        self.good("convert", "1.0.safetensors", "out.safetensors")
        usual = time.monotonic() - start
        for n in range(50):
            process = subprocess.Popen([COMMAND, "convert", f"{n % 2 + 1}.0.safetensors", "out.safetensors"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL)
            time.sleep(usual * n / 40)
            process.kill()
            killed += process.wait() != 0
            self.assertIn(self.read("out.safetensors"), wholes)
        self.assertGreater(killed, 0)

    def test_one_tensor_to_npy(self):
        self.good("convert", self.layer("torch"), "input.npy", "--prefix", "input")
        self.assertEqual(arrays.read_npy(self.read("input.npy"))[0], (2, 5, 12))
        result = self.rapt("convert", self.layer("torch"), "input.npy")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--prefix", result.stderr)

    def test_types_change(self):
        data = json.loads(self.good("convert", self.layer("gpt2"), "a.safetensors", "--dtype", "bf16", "--json").stdout)
        kinds = {one["name"]: one["dtype"] for one in data["written"]}
        self.assertEqual((kinds["input"], kinds[PREFIX + "bias"]), ("bf16", "bool"))

    def test_what_cannot_be_taken_is_said(self):
        self.write("a.safetensors", arrays.safetensors({"w": ("F32", [1], [1.0]), "ids": ("I64", [2], [1, 2])}))
        self.assertIn("left out ids (I64)", self.good("convert", "a.safetensors", "a.npz").stderr)
        result = self.rapt("convert", "a.safetensors", "a.npz", "--names", "torch")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no attention layer", result.stderr)
        result = self.rapt("convert", "a.safetensors", "a.bin")
        self.assertEqual(result.returncode, 2)
        self.assertIn(".safetensors, .npz and .npy", result.stderr)


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    LAYERS = os.path.abspath(sys.argv.pop(1))
    unittest.main()
