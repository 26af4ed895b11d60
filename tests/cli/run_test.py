#!/usr/bin/env python3
"""rapt run on files, end to end, compared with PyTorch's results and with the formula."""

import json
import math
import os
import shutil

import arrays
import file_case


def attention(q, k, v, causal=False):
    """The formula for one head; inputs are (L, D)."""
    out = []
    for i, query in enumerate(q):
        scores = [sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query)) for key in k]
        if causal:
            scores = scores[: i + 1]
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        out.append([sum(w * row[d] for w, row in zip(weights, v)) / sum(weights) for d in range(len(v[0]))])
    return out


class Run(file_case.Files):
    def test_a_layer_of_each_family_answers_as_pytorch_did(self):
        for name in sorted(os.listdir(file_case.LAYERS)):
            if name in ("several.safetensors", "torch_kdim.safetensors"):
                continue
            with self.subTest(name=name):
                file = os.path.join(file_case.LAYERS, name)
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
        for name, size in (("k.npy", 5), ("v.npy", 7)):  # as make_layers.py split them
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
        twice = [x for n in range(0, 60, 3) for x in self.values[n : n + 3] * 2]  # each kv head, once per query head
        self.write("k2.npy", arrays.npy((2, 5, 12), twice))
        self.good("run", "--query", "x.npy", "--key", "k.npy", "--heads", "4", "--kv-heads", "2", "--out", "y.npy")
        self.assertIn("--kv-heads sets", self.rapt("run", "--query", "x.npy", "--key", "k.npy", "--heads", "4").stderr)
        self.good("run", "--query", "x.npy", "--key", "k2.npy", "--heads", "4", "--out", "z.npy")
        self.assertEqual(self.read("y.npy"), self.read("z.npy"))

    def test_a_config_beside_the_model_states_its_heads(self):
        shutil.copy(self.layer("wq"), self.path("m.safetensors"))
        self.write("config.json", b'{"num_attention_heads": 4, "num_key_value_heads": 2}')
        said = self.good("run", "--model", "m.safetensors", "--heads", "4", "--input", "x.npy", "--out", "y.npy").stderr
        self.assertNotIn("config.json", said)
        said = self.good("run", "--model", "m.safetensors", "--input", "x.npy", "--out", "z.npy").stderr
        self.assertIn("4 heads (2 for k and v) of 3 (num_attention_heads in config.json)", said)
        self.assertEqual(self.read("y.npy"), self.read("z.npy"))
        self.good("convert", "m.safetensors", "m.npz")
        data = json.loads(self.good("run", "--model", "m.npz", "--input", "x.npy", "--json").stdout)
        self.assertEqual((data["model"]["heads"], data["model"]["heads_from"]), (4, "num_attention_heads in config.json"))
        data = json.loads(self.good("run", "--model", "m.npz", "--heads", "2", "--input", "x.npy", "--json").stdout)
        self.assertEqual((data["model"]["heads"], data["model"]["heads_from"]), (2, "--heads"))

    def test_one_head_is_not_said_in_the_plural(self):
        text = self.good("run", "--model", self.layer("w_q"), "--heads", "1", "--input", "x.npy").stdout
        self.assertIn("E 12, 1 head of 12", text)
        self.assertIn("1 head of size 24", self.good("run", "--heads", "1", "--causal").stdout)
        self.write("one.npy", arrays.npy((2, 1, 5, 12), self.values))
        refused = self.rapt("run", "--input", "one.npy", "--heads", "3").stderr
        self.assertIn("(B, H, L, D) with 1 head, but 3 were requested", refused)
        refused = self.rapt("run", "--model", self.layer("wq"), "--heads", "2", "--kv-heads", "2", "--input", "x.npy").stderr
        self.assertIn("which is 1 head (", refused)

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
        # A layer with identity projections is plain attention.
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
        self.good("run", "--lse", "l.npy", "--scores", "weights:s.npy")  # the built-in example
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
        # masked_fill(mask == 0, -1e9): a filled row attends uniformly; a masked row has weights of 0.
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
        layer = ["--model", self.layer("w_q")]  # the same positions, regardless of the values
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
        self.near(answer(*half, "--position", "7"), whole)  # only differences of positions matter
        self.near(answer(*half, "--rotary-size", "4"), whole, 0.0 + 1e-12)
        self.near(answer(*half, "--rotary-scaling", "linear:1"), whole, 1e-12)
        others = {tuple(answer(*half, *more)): more for more in (
            (), ("--rotary-size", "2"), ("--rotary-base", "5"), ("--rotary-scaling", "linear:2"),
            ("--rotary-scaling", "ntk:4"), ("--rotary-scaling", "yarn:4,64"), ("--rotary-scaling", "llama3:8,16"),
            ("--rotary-scaling", "llama3:8,16,1,2"))}
        self.assertEqual(len(others), 8, list(others.values()))
        # dynamic:2,2,5 equals ntk with a factor of 2 · 5 / 2 − (2 − 1) = 4.
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
        self.assertEqual((data["model"]["names"], data["model"]["kv_heads"], data["model"]["prefix"]), ("wq", 2, file_case.PREFIX))

    def test_without_any_input_an_example_runs(self):
        result = self.good("run", "--causal")
        self.assertIn("if the cat ran", result.stdout)
        self.assertIn("(1, 8, 24)", result.stdout)

    def test_alone_it_shows_the_model_that_is_built_in(self):
        result = self.good("run")
        self.assertIn("layer 2: what came next last time", result.stdout)
        self.assertEqual(result.stdout, self.good("generate").stdout)

    def test_types_can_be_chosen(self):
        data = json.loads(self.good("run", "--input", "x.npy", "--heads", "2", "--dtype", "bf16", "--json").stdout)
        self.assertEqual(data["out"]["dtype"], "bf16")
        data = json.loads(self.good("run", "--model", self.layer("bert"), "--heads", "4", "--input", "x.npy", "--dtype", "f64",
                                    "--json").stdout)
        self.assertEqual(data["out"]["dtype"], "f64")

    def test_a_large_file_costs_only_what_is_read(self):
        # A gigabyte of other tensors, stored as a hole in a sparse file.
        with open(self.layer("w_q"), "rb") as file:
            tensors = {n: t for n, t in arrays.read_safetensors(file.read()).items() if n.startswith(file_case.PREFIX)}
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


if __name__ == "__main__":
    file_case.main()
