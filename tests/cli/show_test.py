#!/usr/bin/env python3
"""rapt show, end to end, on the tiny models of tests/data/models.

    show_test.py COMMAND MODELS [unittest arguments]
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import arrays

COMMAND, MODELS = "rapt", "models"
SENTENCE = "The cat sat on the street because it was too tired."
ESCAPE = "\x1b"


def rapt(*arguments, **changes):
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return subprocess.run([COMMAND, *arguments], capture_output=True, env={**clean, **changes}, encoding="utf-8")


def model(name):
    return os.path.join(MODELS, name)


def expected(name):
    with open(f"{model(name)}.expected.safetensors", "rb") as file:
        return arrays.read_safetensors(file.read())


def flat(nested):
    return [nested] if isinstance(nested, float | int) else [x for each in nested for x in flat(each)]


class Show(unittest.TestCase):
    def good(self, *arguments, **changes):
        result = rapt("show", *arguments, **changes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refused(self, *arguments, code=2):
        result = rapt("show", *arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertTrue(result.stderr.startswith("rapt: "), result.stderr)
        return result.stderr

    def data(self, *arguments):
        return json.loads(self.good(*arguments, "--json"))

    # ------------------------------------------------------------ the numbers

    def test_json_has_every_weight_and_hidden_state(self):
        shown = self.data(model("bert"), SENTENCE)
        count = len(shown["tokens"])
        self.assertEqual([token["text"] for token in shown["tokens"][:4]], ["[CLS]", "the", "cat", "sat"])
        self.assertEqual((shown["family"], shown["layers"], shown["heads"], shown["width"]), ("bert", 2, 4, 16))
        self.assertEqual([len(shown["weights"]), len(shown["weights"][0]), len(shown["weights"][0][0])], [2, 4, count])
        self.assertEqual([len(shown["hidden"]), len(shown["hidden"][0]), len(shown["hidden"][0][0])], [3, count, 16])
        for row in (row for layer in shown["weights"] for head in layer for row in head):
            self.assertAlmostEqual(sum(row), 1.0, places=5)
        self.assertEqual(len(shown["what_heads_do"]), 8)

    def test_switching_heads_off_changes_the_output(self):
        shown = self.data(model("bert"), SENTENCE, "--off", "0.1,1.3")
        self.assertEqual(set(flat(shown["weights"][0][1])), {0})
        self.assertEqual([each["off"] for each in shown["what_heads_do"]], [n in (1, 7) for n in range(8)])
        self.assertEqual(len(shown["change"]), len(shown["tokens"]))
        whole = self.data(model("bert"), SENTENCE)["hidden"][-1]
        for change, row, before in zip(shown["change"], shown["hidden"][-1], whole):
            difference = math.dist(row, before) / math.hypot(*before)
            self.assertAlmostEqual(change, difference, places=5)
            self.assertGreater(change, 0.001)

    def test_predictions_are_probabilities(self):
        hot = self.data(model("gpt2"), "the cat", "--next", "--temperature", "2")["next"]
        self.assertEqual(len(hot), 1)
        logits = hot[0]["logits"]
        total = sum(math.exp(x / 2) for x in logits)
        for each in hot[0]["likely"]:
            self.assertAlmostEqual(each["probability"], math.exp(logits[each["id"]] / 2) / total, places=6)
        best = max(range(len(logits)), key=lambda n: logits[n])
        self.assertEqual(hot[0]["likely"][0]["id"], best)

    def test_each_mask_is_predicted(self):
        shown = self.data(model("bert"), "the [MASK] sat on the [MASK].", "--next")
        masks = [n for n, token in enumerate(shown["tokens"]) if token["text"] == "[MASK]"]
        self.assertEqual([each["position"] for each in shown["next"]], masks)
        self.assertEqual(len(masks), 2)

    def test_generated_tokens_are_the_most_likely_ones(self):
        shown = self.data(model("gpt2"), "the cat", "--generate", "3")
        first = self.data(model("gpt2"), "the cat", "--next")["next"][0]["likely"][0]["id"]
        self.assertEqual(shown["generated"]["tokens"][0]["id"], first)
        self.assertEqual(len(shown["generated"]["tokens"]), 3)
        seeds = {self.good(model("gpt2"), "the cat", "--generate", "8", "--temperature", "3", "--seed", str(seed))
                 for seed in range(4)}
        self.assertGreater(len(seeds), 2)

    def test_one_weights_file_is_enough(self):
        folder = self.data(model("bert"), SENTENCE)
        file = self.data(os.path.join(model("bert"), "model.safetensors"), SENTENCE)
        self.assertEqual(folder["weights"], file["weights"])

    # ------------------------------------------------------------ the pages

    def test_the_overview_has_a_glyph_for_every_head(self):
        for name in ("bert", "distilbert", "roberta", "gpt2"):
            page = self.good(model(name), SENTENCE)
            rows = re.findall(r"^  layer \d +(\S(?: +\S)*)$", page, re.M)
            self.assertEqual([len(row.split()) for row in rows], [4, 4], page)
            self.assertIn(f"{name}: 2 layers with 4 heads of size 4", page)

    def test_a_map_has_a_row_for_every_token(self):
        page = self.good(model("bert"), "the cat sat", "--layer", "1", "--head", "2")
        self.assertIn("layer 1 head 2 ·", page)
        for row in ("0 [CLS]", "1 the", "2 cat", "3 sat", "4 [SEP]"):
            self.assertRegex(page, rf"(?m)^  {re.escape(row)} ")
        self.assertRegex(page, r"(?m)^  0\.\d\d  \w+ → \w+$")

    def test_later_tokens_are_hidden_in_the_map_of_gpt2(self):
        page = self.good(model("gpt2"), "the cat sat", "--layer", "0", "--head", "0")
        first = next(line for line in page.splitlines() if line.startswith("  0 the"))
        self.assertEqual(first.split()[2:], ["1.0", "×", "×"])

    def test_a_long_text_is_drawn_in_small_cells(self):
        words = "the cat and the dog ran and the animal sat and was tired and it ran"
        page = self.good(model("bert"), words, "--layer", "0", "--head", "0")
        count = len(self.data(model("bert"), words)["tokens"])
        rows = [line for line in page.splitlines() if re.match(r"  +\d+ \S+ +[·░▒▓█]", line)]
        self.assertEqual(len(rows), count)

    def test_a_layer_lists_its_heads(self):
        page = self.good(model("bert"), SENTENCE, "--layer", "0")
        self.assertEqual(re.findall(r"(?m)^ +(\d)  \S ", page), ["0", "1", "2", "3"])

    def test_a_word_is_found_by_its_name_part_or_number(self):
        for word, title in (("street", "“street”"), ("street,", "“street”"), ("tired", "“tired”"), ("0", "“[CLS]”")):
            page = self.good(model("bert"), "the cat did not cross the street, it was tired, it sat", "--token", word)
            self.assertIn(f"what {title}", page)

    def test_the_change_is_shown_for_every_token(self):
        page = self.good(model("gpt2"), "the cat sat", "--off", "0.0")
        self.assertIn("without 0.0", page)
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ \S+ +\d+\.\d%", page)), 3)
        self.assertIn("with all heads:", page)

    def test_masks_and_next_tokens_have_bars(self):
        self.assertRegex(self.good(model("gpt2"), "the cat", "--next"), r"\d\.\d%  [▏▎▍▌▋▊▉█]")
        self.assertIn("at token 2, [MASK]", self.good(model("bert"), "the [MASK] sat", "--next"))
        self.assertIn("has no mask", self.good(model("bert"), "the cat sat", "--next"))

    def test_text_without_a_sentence_is_an_example(self):
        self.assertIn("animal", self.good(model("bert")))

    def test_chinese(self):
        page = self.good(model("gpt2"), "the cat sat", "--lang", "zh", "--off", "0.0", "--next", "--generate", "2",
                         "--token", "cat", "--layer", "0")
        for words in ("个词元", "关闭 0.0", "下一个词元", "续写", "最关注什么", "第 0 层"):
            self.assertIn(words, page)
        self.assertIn("每个头在做什么", self.good(model("bert"), "the cat", "--lang", "zh"))

    def test_pages_fit_and_colours_can_be_chosen(self):
        for options in ((), ("--layer", "0"), ("--layer", "0", "--head", "1"), ("--token", "cat"), ("--off", "0.0")):
            page = self.good(model("bert"), "the cat sat on the street", *options, COLUMNS="70")
            self.assertNotIn(ESCAPE, page)
            self.assertLessEqual(max(map(len, page.splitlines())), 70)
            self.assertIn(ESCAPE, self.good(model("bert"), "the cat sat", *options[:4], "--color", "always"))

    def test_control_characters_do_not_reach_the_terminal(self):
        page = self.good(model("gpt2"), f"a{ESCAPE}[2J\nb", "--layer", "0", "--head", "0", "--token", "b", "--generate", "4")
        self.assertNotIn(ESCAPE, page)

    # ------------------------------------------------------------ mistakes

    def test_mistakes(self):
        bert, gpt2 = model("bert"), model("gpt2")
        self.assertIn("there is no such folder", self.refused("none", code=1))
        self.assertIn("--head requires --layer", self.refused(bert, "--head", "0"))
        self.assertIn("--layer: the model has layer 0 to 1", self.refused(bert, "--layer", "2"))
        self.assertIn("--head: the model has head 0 to 3", self.refused(bert, "--layer", "0", "--head", "4"))
        self.assertIn("--off: '5' is not a layer and a head", self.refused(bert, "--off", "5"))
        self.assertIn("not UTF-8", self.refused(bert, b"\xff", code=1))
        self.assertIn("there are no tokens", self.refused(gpt2, "", code=1))
        self.assertIn("there is no head 7.0; layers are 0 to 1", self.refused(bert, "--off", "7.0", code=1))
        self.assertIn("--token: 'horse' is not in the text", self.refused(bert, "the cat", "--token", "horse"))
        self.assertIn("--generate: a bert model does not continue", self.refused(bert, "--generate", "3"))
        self.assertIn("--temperature requires --next or --generate", self.refused(gpt2, "--temperature", "1"))
        self.assertIn("--seed requires --generate", self.refused(gpt2, "--next", "--seed", "1"))
        self.assertIn("the model has positions for 40", self.refused(gpt2, "Z " * 30, code=1))
        self.assertIn("usage: rapt show FILE TEXT", self.refused())

    def test_a_model_without_predictions_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
                shutil.copy(os.path.join(model("bert"), name), folder)
            with open(os.path.join(model("bert"), "model.safetensors"), "rb") as file:
                tensors = arrays.read_safetensors(file.read())
            bare = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
            with open(os.path.join(folder, "model.safetensors"), "wb") as file:
                file.write(arrays.safetensors(bare))
            self.assertIn("these weights predict nothing", self.refused(folder, "the [MASK]", "--next"))

    def test_a_damaged_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("there is no config.json", self.refused(folder, code=1))
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump({"model_type": "t5"}, file)
            self.assertIn("model_type is \"t5\"", self.refused(folder, code=1))
            for name in ("config.json", "model.safetensors"):
                shutil.copy(os.path.join(model("bert"), name), folder)
            self.assertIn("there is no tokenizer.json", self.refused(folder, code=1))


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    MODELS = os.path.abspath(sys.argv.pop(1))
    unittest.main()
