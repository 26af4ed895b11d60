#!/usr/bin/env python3
"""The rapt command end to end: exit codes, stdout and stderr, and the numbers of `rapt explain`.

    explain_test.py COMMAND [unittest arguments]

The numbers are recomputed here from the matrices in the JSON, without the engine.
"""

import fcntl
import json
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unicodedata
import unittest

COMMAND = "rapt"
ESCAPE = "\x1b"
HEADS_THAT_WORK = [1, 2, 3, 4, 6, 8, 12, 24]
ENGLISH = "if the cat ran the dog ran too"


def environment(**changes):
    """This process's environment, without variables that would change the output, plus `changes`."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    return {**clean, "TERM": "xterm-256color", **changes}


def rapt(*arguments, **changes):
    return subprocess.run([COMMAND, *arguments], capture_output=True, env=environment(**changes), encoding="utf-8")


def explain(*arguments, **changes):
    """The stdout of a successful run, which prints nothing to stderr."""
    result = rapt("explain", *arguments, **changes)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "", result.stderr
    return result.stdout


def data(*arguments):
    return json.loads(explain("--json", *arguments))


def on_terminal(*arguments, width=100, **changes):
    """What `rapt explain` writes to a terminal of that width."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen([COMMAND, "explain", *arguments], stdout=terminal, env=environment(**changes))
    os.close(terminal)
    written = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # Linux reports EIO when the other end is closed
            break
        if not part:
            break
        written += part
    os.close(controller)
    assert process.wait() == 0
    return written.decode("utf-8")


def columns(line):
    bare = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in bare)


def steps(walk):
    return {(s["step"], s.get("name")): s.get("values") for s in walk["steps"]}


def linear(x, weight):
    return [[sum(w * v for w, v in zip(row, token)) for row in weight] for token in x]


def attention(q, k, v, heads, causal):
    """Three (L, E) arrays -> weights (H, L, L) and out (L, E), by the formula."""
    size = len(q[0]) // heads
    weights, out = [], [[] for _ in q]
    for h in range(heads):
        cut = slice(h * size, (h + 1) * size)
        table = []
        for i, row in enumerate(q):
            keys = range(i + 1 if causal else len(k))
            scores = [sum(a * b for a, b in zip(row[cut], k[j][cut])) / math.sqrt(size) for j in keys]
            powers = [math.exp(s - max(scores)) for s in scores] + [0.0] * (len(k) - len(keys))
            table.append([p / sum(powers) for p in powers])
            out[i] += [sum(w * v[j][d] for j, w in enumerate(table[-1])) for d in range(cut.start, cut.stop)]
        weights.append(table)
    return weights, out


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


def shape_of(values):
    return [len(values), *shape_of(values[0])] if isinstance(values, list) else []


class Command(unittest.TestCase):
    def test_version_and_help_go_to_stdout_and_are_good(self):
        self.assertRegex(rapt("--version").stdout, r"^rapt \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], ["help"], ["-h"]):
            result = rapt(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("explain", result.stdout)
        result = rapt("explain", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--wrong-split", result.stdout)

    def test_no_subcommand_is_wrong_usage_and_shows_help_on_stderr(self):
        result = rapt()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("explain", result.stderr)

    def test_each_bad_option_has_its_message_and_writes_no_data(self):
        hint = " (see rapt explain --help)"
        work = "possible numbers of heads: 1, 2, 3, 4, 6, 8, 12, 24"
        table = [
            (["frobnicate"], "unknown command frobnicate (see rapt --help)"),
            (["explain", "--bogus"], "unknown option --bogus" + hint),
            (["explain", "--heads", "x"], "--heads: x is not an integer" + hint),
            (["explain", "--heads", "2.5"], "--heads: 2.5 is not an integer" + hint),
            (["explain", "--heads", "99999999999999999999"], "--heads: 99999999999999999999 is not an integer" + hint),
            (["explain", "--heads", "0"], "explain: 0 heads requested; at least 1 is needed"),
            (["explain", "--heads", "-4"], "explain: -4 heads requested; at least 1 is needed"),
            (["explain", "--heads", "5"],
             f"explain: 5 heads do not divide E = 24: each head would have 24 / 5 = 4.8 numbers; {work}"),
            (["explain", "--heads", "48"],
             f"explain: 48 heads do not divide E = 24: each head would have 24 / 48 = 0.5 numbers; {work}"),
            (["explain", "--lang", "fr"], "--lang: 'fr' is not one of en, zh" + hint),
            (["explain", "--color", "maybe"], "--color: 'maybe' is not one of auto, always, never" + hint),
            (["explain", "--text"], "--text requires a value: --text TEXT" + hint),
            (["explain", "--text", ""], "explain: the text has no tokens; give at least one word with --text"),
            (["explain", "--text", " \t\u3000\n"], "explain: the text has no tokens; give at least one word with --text"),
            (["explain", "--text", "a " * 1025], "explain: the text has 1025 tokens; the maximum is 1024"),
            (["explain", "--question"], "--question requires a value: --question N" + hint),
            (["explain", "--question", "x"], "--question: x is not an integer" + hint),
            (["explain", "--question", "19"], "explain: question 19: there are questions 1 to 18"),
            (["explain", "--question", "8", "--set", "x=1"],
             'explain: question 8: unknown setting "x"; it has "scale" and "d"'),
            (["explain", "--question", "8", "--set", "scale=x"],
             'explain: question 8: "scale" is "on" or "off", not "x"'),
            (["explain", "--question", "8", "--set", "scale"], "--set: 'scale' is not key=value" + hint),
            (["explain", "--question", "8", "--set", "d=4", "--set", "d=64"], "--set: 'd' is given twice" + hint),
            (["explain", "--set", "d=4"], "explain: --set requires --question N"),
            (["explain", "--question", "1", "--questions"], "explain: --questions and --question cannot be combined"),
            *((["explain", "--question", "1", *option],
               f"explain: {option[0]} cannot be combined with --question: a question has its own settings, changed with --set")
              for option in (["--text", "a"], ["--heads", "4"], ["--causal"], ["--wrong-split"])),
        ]
        for arguments, message in table:
            with self.subTest(arguments=arguments[:3]):
                result = rapt(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertEqual(result.stderr, f"rapt: {message}\n")

    def test_errors_of_explain_speak_chinese_too(self):
        result = rapt("explain", "--heads", "5", "--lang", "zh")
        self.assertEqual(result.returncode, 2)
        self.assertIn("整除", result.stderr)

    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([COMMAND, "explain"], stdout=full, stderr=subprocess.PIPE, env=environment())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, b"rapt: cannot write to stdout\n")


class Numbers(unittest.TestCase):
    def assert_close(self, got, expected):
        got, expected = flat(got), flat(expected)
        self.assertEqual(len(got), len(expected))
        self.assertLess(max(abs(a - b) for a, b in zip(got, expected)), 1e-11)

    def check(self, walk):
        sizes, parameters, step = walk["sizes"], walk["parameters"], steps(walk)
        heads = sizes["H"]
        self.assertEqual(sizes["H"] * sizes["D"], sizes["E"])
        self.assertEqual(len(walk["tokens"]), sizes["L"])
        for each in walk["steps"]:
            if each["step"] != "dropout":
                self.assertEqual(shape_of(each["values"]), each["shape"], each["step"])
                self.assertEqual(len(each["strides"]), len(each["shape"]), each["step"])
        x = step["embedding", "x"][0]
        q, k, v = (linear(x, parameters[name]["values"]) for name in ("W_q", "W_k", "W_v"))
        self.assert_close(step["projections", "q"][0], q)
        self.assert_close(step["projections", "k"][0], k)
        self.assert_close(step["projections", "v"][0], v)
        weights, out = attention(q, k, v, heads, walk["causal"])
        self.assert_close(step["softmax", "weights"][0], weights)
        self.assert_close([head["weights"] for head in walk["heads"]], weights)
        for row in (row for head in step["softmax", "weights"][0] for row in head):
            self.assertAlmostEqual(sum(row), 1, delta=1e-12)
        self.assert_close(step["combine_heads", "out"][0], out)
        self.assert_close(step["W_o", "y"][0], linear(out, parameters["W_o"]["values"]))
        for i, token in enumerate(step["weighted_sum", "out"][0][heads - 1]):
            self.assert_close(token, out[i][-sizes["D"]:])
        factor = walk["scale"]["factor"]
        self.assert_close(step["scale", "scores"], [s * factor for s in flat(step["scores", "scores"])])
        self.assertTrue(walk["checks"]["good"])

    def test_every_number_of_heads_gives_the_formulas_numbers(self):
        for heads in HEADS_THAT_WORK:
            for causal in ([], ["--causal"]):
                with self.subTest(heads=heads, causal=causal):
                    walk = data("--heads", str(heads), *causal)
                    self.assertEqual(walk["sizes"]["H"], heads)
                    self.check(walk)

    def test_any_text_works(self):
        table = {
            "The cat, the CAT.": (["The", "cat", ",", "the", "CAT", "."], [0, 1, 2, 0, 1, 3]),
            "我爱 AI，你呢？": (["我", "爱", "AI", "，", "你", "呢", "？"], [0, 1, 2, 3, 4, 5, 6]),
            "it's split_heads -- well-known": (["it's", "split_heads", "-", "-", "well-known"], [0, 1, 2, 2, 3]),
            "안녕 세계": (["안녕", "세계"], [0, 1]),
            "e\u0301t\u00e9 \U0001f642": (["e\u0301t\u00e9", "\U0001f642"], [0, 1]),
            "one": (["one"], [0]),
            "\x1b[31mred": (["[", "31mred"], [0, 1]),
        }
        for text, (tokens, ids) in table.items():
            with self.subTest(text=text):
                walk = data("--text", text)
                self.assertEqual((walk["tokens"], walk["ids"]), (tokens, ids))
                self.check(walk)

    def test_bytes_that_are_not_utf8_become_replacement_characters(self):
        result = subprocess.run([COMMAND, "explain", "--json", "--text", b"a\xff\xe4 \xc0\xaf \xed\xa0\x80"],
                                capture_output=True, env=environment())
        self.assertEqual(result.returncode, 0)
        self.assertEqual(json.loads(result.stdout)["tokens"], ["a\ufffd\ufffd", "\ufffd\ufffd", "\ufffd\ufffd\ufffd"])

    def test_a_long_text_is_computed_whole(self):
        walk = data("--text", " ".join(f"w{i}" for i in range(60)), "--causal")
        self.assertEqual(walk["sizes"]["L"], 60)
        self.check(walk)

    def test_the_built_in_sentences_give_four_different_heads(self):
        for lang in ("en", "zh"):
            habits = [head["habit"] for head in data("--lang", lang)["heads"]]
            self.assertEqual(habits, ["previous", "same", "first", "next"])
        self.assertEqual(data("--causal")["heads"][3]["habit"], "blinded")
        self.assertEqual(data()["tokens"], ENGLISH.split())

    def test_split_heads_changes_only_strides(self):
        walk = {(s["step"], s.get("name")): s for s in data()["steps"]}
        self.assertEqual(walk["projections", "q"]["strides"], [192, 24, 1])
        self.assertEqual(walk["split_heads", "q"]["shape"], [1, 4, 8, 6])
        self.assertEqual(walk["split_heads", "q"]["strides"], [192, 6, 24, 1])

    def test_causal_hides_the_future(self):
        step = steps(data("--causal"))
        for i, (scores, weights) in enumerate(zip(step["apply_mask", "scores"][0][0], step["softmax", "weights"][0][0])):
            self.assertEqual([s is None for s in scores], [j > i for j in range(8)])
            self.assertEqual([w == 0 for w in weights], [j > i for j in range(8)])

    def test_the_number_of_heads_changes_no_parameter(self):
        self.assertEqual(data("--heads", "1")["parameters"], data("--heads", "24")["parameters"])

    def test_scale_divides_the_variance_by_the_head_size(self):
        for heads in (1, 4):
            walk = data("--heads", str(heads))
            scale = walk["scale"]
            self.assertAlmostEqual(scale["variance_before"] / scale["variance_after"], walk["sizes"]["D"], delta=1e-9)
            self.assertGreater(scale["mean_largest_weight_before"], scale["mean_largest_weight_after"])


class WrongSplit(unittest.TestCase):
    def test_it_differs_from_the_right_one_and_is_what_the_wrong_view_gives(self):
        walk = data("--wrong-split")
        wrong, step = walk["wrong_split"], steps(walk)
        length, heads, size = (walk["sizes"][name] for name in "LHD")
        memory = {name: flat(step["projections", name]) for name in "qkv"}
        rows = {name: [memory[name][n * size:(n + 1) * size] for n in range(heads * length)] for name in "qkv"}
        differences = []
        for h in range(heads):
            q, k, v = (rows[name][h * length:(h + 1) * length] for name in "qkv")
            weights, out = attention(q, k, v, 1, False)
            for got, expected in ((wrong["weights"], weights[0]), (wrong["out"], out)):
                got = flat(got["values"][0][h])
                self.assertLess(max(abs(a - b) for a, b in zip(got, flat(expected))), 1e-11)
            differences += [abs(a - b) for a, b in zip(flat(weights), flat(step["softmax", "weights"][0][h]))]
        self.assertAlmostEqual(wrong["weights_difference"], max(differences), delta=1e-11)
        self.assertGreater(wrong["weights_difference"], 0.3)
        self.assertGreater(wrong["output_difference"], 0.3)

    def test_it_leaks_the_future_and_the_right_one_does_not(self):
        wrong = data("--wrong-split")["wrong_split"]
        self.assertEqual(wrong["leaks_right"], [])
        self.assertGreater(len(wrong["leaks_wrong"]), 0)

    def test_with_one_head_or_one_token_nothing_breaks(self):
        for arguments in (["--heads", "1"], ["--text", "word"]):
            wrong = data("--wrong-split", *arguments)["wrong_split"]
            self.assertEqual((wrong["misplaced_rows"], wrong["weights_difference"], wrong["output_difference"]), (0, 0, 0))
            self.assertIn("nothing breaks", " ".join(explain("--wrong-split", *arguments).split()))

    def test_the_page_shows_both(self):
        page = explain("--wrong-split")
        self.assertIn("000000111111222222333333", page)
        self.assertIn("000000000000000000000000", page)
        self.assertIn("(192, 48, 6, 1)", page)
        self.assertIn("正确", explain("--wrong-split", "--lang", "zh"))


class Questions(unittest.TestCase):
    def all(self, lang="en"):
        return json.loads(explain("--questions", "--json", "--lang", lang))

    def test_they_are_listed_with_their_numbers(self):
        for lang in ("en", "zh"):
            page = " ".join(explain("--questions", "--lang", lang).split())
            questions = self.all(lang)
            self.assertEqual([each["number"] for each in questions], list(range(1, 19)))
            for each in questions:
                # A line may break between two Chinese characters, where no space belongs.
                self.assertIn(f"{each['number']}{each['question']}".replace(" ", ""), page.replace(" ", ""))

    def test_the_page_has_what_the_data_has(self):
        for lang in ("en", "zh"):
            for number in range(1, 19):
                with self.subTest(number=number, lang=lang):
                    arguments = ["--question", str(number), "--lang", lang]
                    answer, page = data(*arguments), explain(*arguments).replace(" ", "").replace("\n", "")
                    for block in answer["blocks"]:
                        if block["kind"] == "prose":
                            self.assertIn(block["text"].replace(" ", ""), page)
                        if block["kind"] == "table":
                            for cell in (cell for row in block["rows"] for cell in row if " " not in cell):
                                self.assertIn(cell, page)
                    for each in answer["switches"]:
                        for choice in each["choices"][1:]:
                            self.assertIn(f"--set{each['key']}={choice['value']}", page)

    def test_a_switch_changes_the_page(self):
        for each in self.all():
            for switch in each["switches"]:
                for choice in switch["choices"][1:]:
                    setting = ["--question", str(each["number"]), "--set", f"{switch['key']}={choice['value']}"]
                    with self.subTest(setting=setting):
                        self.assertNotEqual(data(*setting)["blocks"], data(*setting[:2])["blocks"])

    def test_every_wrong_way_is_marked(self):
        for each in self.all():
            for switch in each["switches"]:
                for choice in switch["choices"]:
                    if "the wrong way" in choice["label"]:
                        page = explain("--question", str(each["number"]), "--set", f"{switch['key']}={choice['value']}")
                        self.assertIn("✗", page)
            self.assertNotIn("✗", explain("--question", str(each["number"])))

    def test_no_line_is_wider_than_the_terminal(self):
        questions = [["--questions"], *(["--question", str(n)] for n in range(1, 19))]
        settings = [["--question", str(each["number"]), "--set", f"{switch['key']}={choice['value']}"]
                    for each in self.all() for switch in each["switches"] for choice in switch["choices"][1:]]
        for width, pages in ((60, questions), (80, questions + settings), (100, questions)):
            for lang in ("en", "zh"):
                for arguments in pages:
                    for line in explain(*arguments, "--lang", lang, COLUMNS=str(width)).splitlines():
                        self.assertLessEqual(columns(line), width, f"{arguments} {lang} at {width}: {line}")

    def test_colours_take_no_room(self):
        for number in range(1, 19):
            plain, drawn = (explain("--question", str(number), "--color", when, COLUMNS="100", COLORTERM="truecolor")
                            for when in ("never", "always"))
            self.assertIn(ESCAPE, drawn)
            self.assertLessEqual(max(map(columns, drawn.splitlines())), max(map(columns, plain.splitlines())))


class Page(unittest.TestCase):
    def test_every_step_is_there_in_order(self):
        for lang in ("en", "zh"):
            page = explain("--lang", lang)
            places = [page.find(f"── {step}") for step in (
                "1  embedding", "2  W_q  W_k  W_v", "3  split_heads", "4  scores", "5  scale", "6  apply_mask",
                "7  softmax", "8  dropout", "9  weighted_sum", "10  combine_heads", "11  W_o")]
            self.assertNotIn(-1, places)
            self.assertEqual(places, sorted(places))

    def test_languages_differ(self):
        self.assertIn("多头注意力", explain("--lang", "zh"))
        self.assertIsNone(re.search("[\u4e00-\u9fff]", explain().replace("中文", "")))

    def test_the_page_shows_the_engines_weights(self):
        walk, page = data(), explain()
        row = walk["heads"][0]["weights"][4]
        shown = " ".join(f"{w:.2f}"[1:] if w >= 0.005 else "·" for w in row)
        self.assertIn("4 the " + shown, re.sub(" +", " ", page))

    def test_a_pipe_gets_no_colour_and_always_forces_it(self):
        self.assertNotIn(ESCAPE, explain())
        self.assertNotIn(ESCAPE, explain(COLORTERM="truecolor"))
        self.assertIn(ESCAPE, explain("--color", "always"))
        self.assertIn(ESCAPE, explain("--color", "always", NO_COLOR="1"))

    def test_a_terminal_gets_the_colours_it_knows(self):
        self.assertIn(ESCAPE + "[38;2;", on_terminal(COLORTERM="truecolor"))
        self.assertIn(ESCAPE + "[38;2;", on_terminal(COLORTERM="24bit"))
        plain = on_terminal()
        self.assertIn(ESCAPE + "[38;5;", plain)
        self.assertNotIn(";2;", plain)

    def test_no_color_dumb_terminals_and_never_are_respected(self):
        self.assertNotIn(ESCAPE, on_terminal(NO_COLOR="1", COLORTERM="truecolor"))
        self.assertNotIn(ESCAPE, on_terminal(TERM="dumb"))
        self.assertNotIn(ESCAPE, on_terminal("--color", "never"))
        self.assertIn(ESCAPE, on_terminal(NO_COLOR=""))  # set but empty: no preference

    def test_no_line_is_wider_than_the_terminal(self):
        texts = [[], ["--lang", "zh"], ["--causal"], ["--text", "one"], ["--text", "多头注意力机制，" * 4],
                 ["--text", "internationalization of extraordinarily long words, twice: extraordinarily " * 3]]
        for width in (60, 80, 100, 120):
            for text in texts:
                for heads in (1, 4, 8, 24):
                    for wrong in ([], ["--wrong-split"]):
                        arguments = [*text, "--heads", str(heads), *wrong]
                        for line in explain(*arguments, COLUMNS=str(width)).splitlines():
                            self.assertLessEqual(columns(line), width, f"{arguments} at {width}: {line}")
        for line in on_terminal(width=80, COLORTERM="truecolor").splitlines():
            self.assertLessEqual(columns(line), 80)

    def test_a_long_text_is_cut_on_the_page_and_says_so(self):
        page = explain("--text", " ".join(f"w{i}" for i in range(40)))
        self.assertIn("The text has 40 tokens. All are computed; the first 16 are shown.", page)
        self.assertNotIn("16 w16", page)

    def test_the_default_page_is_three_or_four_screens(self):
        self.assertLess(len(on_terminal(width=100).splitlines()), 160)


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
