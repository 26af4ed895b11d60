#!/usr/bin/env python3
"""Mistakes on the command line and in files: each is rejected with a message that says what to do."""

import json

import arrays
import file_case


class Mistakes(file_case.Files):
    def refused(self, code, *arguments, says):
        result = self.rapt(*arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("rapt: "), result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def run_model(self, *arguments, says, code=1):
        self.refused(code, "run", "--model", self.layer("w_q"), *arguments, says=says)

    def test_a_wrong_number_of_heads(self):
        self.run_model("--heads", "5", "--input", "x.npy", says=["--heads is 5", "possible values: 1, 2, 3, 4, 6, 12"])
        self.refused(1, "run", "--model", self.layer("wq"), "--heads", "4", "--kv-heads", "4", "--input", "x.npy",
                     says=["--kv-heads is 4", "which is 2 heads"])

    def test_no_number_of_heads(self):
        self.run_model("--input", "x.npy", says=["the number of heads", "give --heads. Possible values: 1, 2, 3, 4, 6, 12"])

    def test_another_number_of_heads_than_the_array_has(self):
        self.write("q.npy", arrays.npy((1, 2, 5, 12), self.values))
        self.refused(2, "run", "--input", "q.npy", "--heads", "3", says=["(1, 2, 5, 12)", "2 heads", "3 were requested"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "5", says=["(2, 5, 12)", "not divisible into 5 heads"])

    def test_a_transposed_array(self):
        self.write("t.npy", arrays.npy((2, 12, 5), self.values))
        self.run_model("--heads", "4", "--input", "t.npy", says=["(2, 12, 5)", "(B, L, E)", "E = 12", "transposed?"])

    def test_a_missing_file(self):
        self.run_model("--heads", "4", "--input", "y.npy", says=["no such file: y.npy", "did you mean x.npy?"])
        self.refused(1, "run", "--model", "m.safetensors", "--heads", "4", "--input", "x.npy",
                     says=["no such file: m.safetensors"])
        self.refused(1, "inspect", "nothing.npz", says=["rapt: no such file: nothing.npz"])

    def test_a_typo_in_the_name_of_a_tensor(self):
        self.run_model("--heads", "4", "--input", self.layer("w_q") + ":inptu",
                       says=['has no tensor "inptu"', "did you mean", ":input?"])
        self.run_model("--heads", "4", "--input", self.layer("w_q"), code=2, says=["tensors; select one with", "input"])

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
                       says=["ambiguous", "--mask-of batch"])

    def test_an_odd_head_that_should_turn(self):
        self.run_model("--heads", "4", "--rotary", "half", "--input", "x.npy",
                       says=["--rotary: head size is 3", "another number of --heads"])
        self.good("run", "--model", self.layer("w_q"), "--heads", "6", "--rotary", "half", "--input", "x.npy")
        self.run_model("--heads", "6", "--rotary", "half", "--rotary-base", "-1", "--input", "x.npy", says=["--rotary-base is -1"])

    def test_an_archive_without_the_name_of_a_member(self):
        self.good("convert", self.layer("w_q"), "two.npz")
        self.run_model("--heads", "4", "--input", "two.npz", code=2, says=["two.npz contains", "select one with two.npz:NAME", "input"])
        self.good("run", "--model", self.layer("w_q"), "--heads", "4", "--input", "two.npz:input")

    def test_an_option_with_nothing_behind_it(self):
        self.run_model("--heads", "4", "--input", "x.npy", "--weights", code=2, says=["--weights requires a value", "--weights FILE"])
        self.run_model("--heads", "4", "--input", "x.npy", "--weights", "--out", "y.npy", code=2,
                       says=["--weights: requires a value, but --out is an option"])
        self.refused(2, "inspect", says=["rapt inspect FILE"])
        self.refused(2, "convert", "x.npy", says=["rapt convert IN OUT"])
        self.refused(2, "run", "x.npy", says=["unexpected argument x.npy"])
        self.refused(2, "bench", says=["rapt bench requires a command: attention"])

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
                       says=["no such directory: results", "mkdir -p results"])

    def test_an_unknown_flag(self):
        self.run_model("--heads", "4", "--inptu", "x.npy", code=2,
                       says=["unknown option --inptu; did you mean --input?", "rapt run --help"])
        self.refused(2, "inpect", "x.npy", says=["unknown command inpect; did you mean inspect?", "rapt --help"])

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
        self.refused(1, "run", "--input", "q.npy", "--key-lengths", "9", says=["rapt: --key-lengths[0] is 9, more than the number of keys, 5"])
        self.refused(1, "run", "--input", "key_lengths.npy", says=["no such file: key_lengths.npy"])
        self.refused(2, "run", "--heads", "5", says=["embedding size, 24", "not divisible by 5"])

    def test_a_model_that_is_no_file_of_tensors(self):
        self.refused(2, "run", "--model", "x.npy", "--heads", "4", "--input", "x.npy", says=["x.npy", "save_file"])
        self.refused(1, "inspect", "x.npz", says=["no such file: x.npz", "did you mean x.npy?"])

    def test_options_that_do_not_go_together(self):
        self.refused(2, "run", "--input", "x.npy", "--query", "x.npy", says=["--input already sets query, key and value"])
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
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--rotary-size", "2", says=["requires --rotary half"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--position", "2", says=["--rotary"])
        self.refused(2, "run", "--input", "x.npy", "--heads", "2", "--align", "top-left", "--offset", "2", says=["cannot be combined with --align"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-scaling", "yarn:4", code=2,
                       says=["'yarn:4' should be yarn:FACTOR,ORIGINAL"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-scaling", "far:4", code=2,
                       says=["'far' is not one of linear, ntk, dynamic, yarn, llama3"])

    def test_numbers_of_heads_and_rows_that_do_not_fit(self):
        asked = ["run", "--input", "x.npy", "--heads", "2"]
        self.write("sinks.npy", arrays.npy((3,), [0.0] * 3))
        self.refused(1, *asked, "--alibi-slopes", "1", says=["rapt: --alibi-slopes has 1 values for 2 query heads"])
        self.refused(1, *asked, "--sinks", "sinks.npy", says=["rapt: --sinks has shape (3,)", "(Hq)"])
        self.refused(1, *asked, "--query-starts", "0,5", says=["rapt: --query-starts: sequences must be in one batch row"])
        self.refused(1, *asked, "--causal", "--offset", "1,2,3", says=["rapt: --offset has 3 offsets for 2 batch rows"])
        self.run_model("--heads", "4", "--input", "x.npy", "--alibi-slopes", "1", says=["rapt: --alibi-slopes has 1 values"])
        self.run_model("--heads", "4", "--input", "x.npy", "--sinks", "sinks.npy", says=["rapt: --sinks has shape (3,)"])
        self.run_model("--heads", "3", "--input", "x.npy", "--rotary", "half", "--rotary-size", "6",
                       says=["--rotary-size is 6", "the head size 4"])
        self.write("row.npy", arrays.npy((1, 5, 12), self.values[:60]))
        self.refused(1, "run", "--input", "row.npy", "--heads", "2", "--query-starts", "0,2,5", "--key-starts", "0,5",
                     says=["--query-starts defines 2 sequences, --key-starts 1"])


if __name__ == "__main__":
    file_case.main()
