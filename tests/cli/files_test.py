#!/usr/bin/env python3
"""rapt inspect and rapt convert on files, end to end."""

import json
import math
import os
import shutil
import subprocess
import time

import arrays
import file_case


class Inspect(file_case.Files):
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
        self.assertIn("rapt run --model a.safetensors --prefix 0. --heads N --input x.npy", text)
        self.assertIn("  1.  same as the previous one\n  2.  same as the previous one\n", text)

    def test_the_command_it_gives_runs_the_layer(self):
        shutil.copy(self.layer("gpt2"), self.path("gpt2.safetensors"))
        data = json.loads(self.good("inspect", "gpt2.safetensors", "--json").stdout)
        (layer,) = data["layers"]
        self.assertEqual((layer["names"], layer["context_length"], layer["prefix"]), ("c_attn", 7, file_case.PREFIX))
        self.assertIn(4, layer["possible_heads"])
        self.assertIn(layer["run"], self.good("inspect", "gpt2.safetensors").stdout)
        self.assertIn(" --heads N ", layer["run"])  # no shape determines the number
        words = layer["run"].replace("--heads N", "--heads 4").split()
        self.assertEqual(words[0], "rapt")
        self.good(*words[1:])

    def test_heads_that_the_file_notes_are_taken(self):
        with open(self.layer("wq"), "rb") as file:
            tensors = {n: t for n, t in arrays.read_safetensors(file.read()).items() if n != "answer"}
        self.write("a.safetensors", arrays.safetensors(tensors, {"rapt.heads": "4"}))
        (layer,) = json.loads(self.good("inspect", "a.safetensors", "--json").stdout)["layers"]
        self.assertEqual((layer["heads"], layer["run"]), (4, "rapt run --model a.safetensors --heads 4 --input x.npy"))
        self.assertEqual(layer["heads_from"], "rapt.heads in the metadata of the file")
        self.write("config.json", b'{"n_heads": 2}')  # the metadata comes first
        self.assertIn(") of 3 (rapt.heads in", self.good("run", "--model", "a.safetensors", "--input", "x.npy").stdout)

    def test_a_number_of_heads_is_never_guessed(self):
        weight = ("F32", [384, 384], [0.0] * 384 * 384)  # a width of 12 heads of 32, or 6 heads of 64
        self.write("a.safetensors", arrays.safetensors({f"w{x}.weight": weight for x in "qkvo"}))
        text = self.good("inspect", "a.safetensors", "--no-stats").stdout
        self.assertIn("the number of heads must be given", text)
        self.assertIn("rapt run --model a.safetensors --heads N --input x.npy", text)
        (layer,) = json.loads(self.good("inspect", "a.safetensors", "--no-stats", "--json").stdout)["layers"]
        self.assertEqual((layer["heads"], layer["heads_from"], layer["heads_problem"]), (None, None, None))

    def test_heads_that_a_config_beside_the_file_states_are_taken(self):
        os.mkdir(self.path("model"))
        shutil.copy(self.layer("wq"), self.path("model/a.safetensors"))  # four heads share two key heads
        for number, config in enumerate((b'{"num_attention_heads": 4, "num_key_value_heads": 2}', b'{"n_head": 4}',
                                         b'{"num_heads": 4, "num_key_value_heads": null}', b'{"n_heads": 4, "n_head": 4}')):
            with self.subTest(config=config):
                self.write("model/config.json", config)
                text = self.good("inspect", "model/a.safetensors").stdout
                name = ("num_attention_heads", "n_head", "num_heads", "n_head")[number]
                self.assertIn(f"    4 heads of size 3 ({name} in model/config.json)\n", text)
                self.assertIn("rapt run --model model/a.safetensors --heads 4 --input x.npy", text)

    def test_a_config_that_cannot_be_used_says_why(self):
        shutil.copy(self.layer("wq"), self.path("a.safetensors"))
        for config, why in (
            (b"{", "not valid JSON"), (b"[" * 100_000, "not valid JSON"), (b"[" * 50_000 + b"]" * 50_000, "not a JSON object"),
            (b"[4]", "not a JSON object"), (b"", "not valid JSON"),
            (b'{"hidden_size": 12}', "no number of heads (num_attention_heads, n_head, num_heads or n_heads)"),
            (b'{"num_heads": "4"}', 'num_heads is "4"; expected a positive whole number'),
            (b'{"num_heads": 0}', "num_heads is 0; expected"), (b'{"num_heads": -4}', "num_heads is -4; expected"),
            (b'{"num_heads": 4.0}', "num_heads is 4.0; expected"), (b'{"num_heads": true}', "num_heads is true; expected"),
            (b'{"num_heads": 18446744073709551615}', "is 18446744073709551615; expected"),
            (b'{"num_heads": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "num_heads is an array; expected"),
            (b'{"n_head": 4, "n_heads": 2}', "n_head is 4, but n_heads is 2"),
            (b'{"n_head": 5}', "n_head is 5, which does not fit a query width of 12 and a key width of 6"),
            (b'{"n_head": 4, "num_key_value_heads": 4}',
             "num_key_value_heads is 4, but with 4 heads of size 3, a key width of 6 is 2 heads"),
            (b'{"n_head": 4, "num_key_value_heads": "x"}', 'num_key_value_heads is "x"; expected'),
        ):
            with self.subTest(config=config[:60]):
                self.write("config.json", config)
                text = self.good("inspect", "a.safetensors").stdout
                self.assertIn("    config.json is not used: ", text)
                self.assertIn(why, text)
                self.assertIn("--heads N --input x.npy", text)
                (layer,) = json.loads(self.good("inspect", "a.safetensors", "--json").stdout)["layers"]
                self.assertIn(why, layer["heads_problem"])
                refused = self.rapt("run", "--model", "a.safetensors", "--input", "x.npy")
                self.assertEqual((refused.returncode, refused.stdout), (1, ""))
                self.assertIn("give --heads", refused.stderr)
                self.assertIn("config.json", refused.stderr)
                self.good("run", "--model", "a.safetensors", "--heads", "4", "--input", "x.npy")
        os.remove(self.path("config.json"))
        os.mkdir(self.path("config.json"))
        self.assertNotIn("config.json", self.good("inspect", "a.safetensors").stdout)

    def test_several_layers_come_with_their_prefixes(self):
        text = self.good("inspect", self.layer("several")).stdout
        self.assertIn("--prefix encoder.0.attn.", text)
        self.assertIn("possible: 1, 2, 3, 4, 6, 12", text)

    def test_one_array(self):
        data = json.loads(self.good("inspect", "x.npy", "--json").stdout)
        self.assertEqual(data["tensors"][0]["shape"], [2, 5, 12])


class Convert(file_case.Files):
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
        self.assertIn(file_case.PREFIX + "q_proj_weight", arrays.read_safetensors(self.read("a.safetensors")))
        self.good("convert", "a.safetensors", "b.safetensors", "--projections", "packed")
        self.assertIn(file_case.PREFIX + "in_proj_weight", arrays.read_safetensors(self.read("b.safetensors")))

        result = self.rapt("convert", self.layer("wq"), "c.safetensors", "--projections", "packed")
        self.assertEqual(result.returncode, 1)
        for part in (file_case.PREFIX, "in separate tensors", "--names", "--projections"):
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
            process = subprocess.Popen([file_case.COMMAND, "convert", f"{n % 2 + 1}.0.safetensors", "out.safetensors"], cwd=self.folder,
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
        self.assertEqual((kinds["input"], kinds[file_case.PREFIX + "bias"]), ("bf16", "bool"))

    def test_what_cannot_be_taken_is_said(self):
        self.write("a.safetensors", arrays.safetensors({"w": ("F32", [1], [1.0]), "ids": ("I64", [2], [1, 2])}))
        self.assertIn("skipped ids (I64)", self.good("convert", "a.safetensors", "a.npz").stderr)
        result = self.rapt("convert", "a.safetensors", "a.npz", "--names", "torch")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no attention layer", result.stderr)
        result = self.rapt("convert", "a.safetensors", "a.bin")
        self.assertEqual(result.returncode, 2)
        self.assertIn(".safetensors, .npz or .npy", result.stderr)


if __name__ == "__main__":
    file_case.main()
