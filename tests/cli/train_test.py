#!/usr/bin/env python3
"""rapt train and rapt generate, end to end.

    train_test.py COMMAND [unittest arguments]

RAPT_KILLS is the number of times a run is killed at a random moment (default 4).
"""

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import arrays

COMMAND = "rapt"
KILLS = int(os.environ.get("RAPT_KILLS", "4"))
TEXT = "".join(f"Line {n}: {n * n % 89} little words, über alles 文.\n" for n in range(300))
SMALL = {"--layers": "1", "--heads": "2", "--width": "16", "--context": "16", "--batch": "4", "--every": "5"}


class Train(arrays.InFolder):
    def setUp(self):
        super().setUp()
        self.write("a.txt", TEXT.encode())

    def exists(self, name):
        return os.path.exists(self.path(name))

    def rapt(self, *arguments):
        return arrays.run(COMMAND, *arguments, folder=self.folder)

    def good(self, *arguments):
        result = self.rapt(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def data(self, *arguments):
        return json.loads(self.good(*arguments, "--json").stdout)

    def refused(self, code, words, *arguments):
        result = self.rapt(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, result.stderr)

    def text(self, *more):
        small = [word for name, value in SMALL.items() if name not in more for word in (name, value)]
        return ["train", "text", "a.txt", *small, "--out", "m.safetensors", *more]


class Tasks(Train):
    def test_reverse_is_learned_and_generated(self):
        result = self.good("train", "reverse")
        self.assertIn("✓", result.stdout)
        self.assertNotIn("✗", result.stdout)
        self.assertLess(max(len(line) for line in (result.stdout + result.stderr).splitlines()), 80)
        self.assertFalse(self.exists("reverse.safetensors.checkpoint"))
        self.assertEqual(self.good("generate", "reverse.safetensors", "--prompt", "qwertyuiopas").stdout,
                         "qwertyuiopas|sapoiuytrewq\n")
        self.assertRegex(self.good("generate", "reverse.safetensors").stdout, r"^([a-z]{12})\|[a-z]{12}\n$")

    def test_the_curve_is_data(self):
        data = json.loads(self.rapt("train", "induction", "--steps", "20", "--every", "10", "--json").stdout)
        self.assertEqual(data["task"], "induction")
        self.assertFalse(data["reached"])
        self.assertEqual([point["step"] for point in data["curve"]], [10, 20])
        self.assertLessEqual({"training_loss", "loss", "accuracy", "match", "previous"}, set(data["curve"][0]))
        self.assertEqual({m["name"]: m.get("goal") for m in data["measures"]},
                         {"accuracy": 0.99, "match": 0.9, "previous": 0.6, "previous_of_match": None})

    def test_goals_that_are_not_reached_are_exit_code_3(self):
        result = self.rapt("train", "dates", "--steps", "2", "--every", "1")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("✗", result.stdout)
        self.assertIn("--resume --steps 4", result.stderr)
        generated = self.good("generate", "dates.safetensors", "--prompt", "March 5, 1987").stdout
        self.assertRegex(generated, r"^March 5, 1987=.{10}\n$")

    def test_a_text_is_learned_and_goes_on(self):
        data = self.data(*self.text("--steps", "60", "--rate", "0.01"))
        self.assertLess(data["curve"][-1]["loss"], data["curve"][0]["loss"])
        first = self.good("generate", "m.safetensors", "--tokens", "100", "--prompt", "Line 文").stdout
        self.assertTrue(first.startswith("Line 文"))
        self.assertEqual(len(first), 6 + 100 + 1)  # longer than the context, which then slides
        self.assertEqual(first, self.good("generate", "m.safetensors", "--tokens", "100", "--prompt", "Line 文").stdout)
        self.assertNotEqual(first, self.good("generate", "m.safetensors", "--tokens", "100", "--prompt", "Line 文",
                                             "--seed", "2").stdout)
        answer = self.data("generate", "m.safetensors", "--tokens", "5", "--temperature", "0")
        self.assertEqual("".join(token["token"] for token in answer["tokens"]), answer["text"])
        top = self.data("generate", "m.safetensors", "--tokens", "5", "--top-k", "1")
        self.assertEqual(top["text"], answer["text"])

    def test_a_seed_gives_the_same_bytes_on_any_number_of_threads(self):
        files = []
        for threads in ("1", "3"):
            environment = {**os.environ, "RAPT_NUM_THREADS": threads}
            subprocess.run([COMMAND, *self.text("--steps", "7", "--restart")], cwd=self.folder, env=environment,
                           check=True, capture_output=True)
            files.append(self.read("m.safetensors"))
        self.assertEqual(*files)
        self.good(*self.text("--steps", "7", "--restart", "--seed", "2"))
        self.assertNotEqual(files[0], self.read("m.safetensors"))


class BuiltIn(Train):
    def test_is_what_one_meets_first(self):
        page = self.good("generate").stdout
        self.assertIn("theCATranthe CATr\n", page)
        self.assertIn("layer 1", page)
        self.assertIn("layer 2", page)
        self.assertLessEqual(max(len(line) for line in page.splitlines()), 80)
        self.assertNotIn("\x1b", page)
        self.assertIn("wordsxyzwor dsxyz", self.good("generate", "--prompt", "wordsxyzwor").stdout)
        self.assertIn("The prompt repeats nothing", self.good("generate", "--prompt", "ab", "--tokens", "1").stdout)
        data = self.data("generate", "--prompt", "THEcatSAWdogTHE", "--tokens", "9")
        self.assertEqual(data["text"], "catSAWdog")
        self.assertGreater(min(token["probability"] for token in data["tokens"]), 0.5)
        self.refused(1, "\"!\" is not one of the 64 characters", "generate", "--prompt", "what!")
        self.refused(1, "the context of this model is 32", "generate", "--prompt", "x" * 33)


class Resume(Train):
    def test_more_steps_go_on_bit_for_bit(self):
        self.good(*self.text("--steps", "23", "--dropout", "0.1"))
        whole = self.read("m.safetensors"), self.read("m.safetensors.checkpoint")
        self.good(*self.text("--steps", "11", "--dropout", "0.1", "--restart"))
        self.assertNotEqual(whole[0], self.read("m.safetensors"))
        self.assertIn("step 11", self.good(*self.text("--steps", "23", "--dropout", "0.1", "--resume")).stderr)
        self.assertEqual(whole, (self.read("m.safetensors"), self.read("m.safetensors.checkpoint")))

    def test_killed_at_any_moment_a_run_resumes_from_a_whole_checkpoint(self):
        arguments = self.text("--steps", str(400 * KILLS), "--every", "20")
        begin = time.monotonic()
        self.good(*arguments)
        lasts = time.monotonic() - begin
        whole = self.read("m.safetensors")
        curve = self.data(*arguments, "--resume")["curve"]
        os.remove(self.path("m.safetensors"))
        os.remove(self.path("m.safetensors.checkpoint"))
        moments = random.Random(1)
        at = 0
        for kill in range(KILLS):
            process = subprocess.Popen([COMMAND, *arguments, "--resume"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            # Short enough that the run finishes despite the kills, long enough to reach some checkpoints.
            time.sleep(moments.uniform(0.0, 2.0 * lasts / KILLS))
            process.send_signal(signal.SIGKILL)
            stderr = process.communicate()[1].decode()
            self.assertNotIn("rapt:", stderr)
            if found := re.search(r"resuming at step (\d+)", stderr):
                step = int(found.group(1))
                self.assertEqual(step % 20, 0)
                self.assertGreaterEqual(step, at)  # no saved step is lost
                at = step
        self.assertGreater(at, 0)
        self.assertEqual(self.data(*arguments, "--resume")["curve"], curve)
        self.assertEqual(self.read("m.safetensors"), whole)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".tmp")], [])

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        arguments = self.text("--steps", "1000000")
        process = subprocess.Popen([COMMAND, *arguments, "--json"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        while not self.exists("m.safetensors.checkpoint"):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        data = json.loads(stdout)
        self.assertTrue(data["interrupted"])
        self.assertGreater(data["steps"], 0)
        self.assertIn(f"--resume continues from step {data['steps']}", stderr.decode())
        self.assertFalse(self.exists("m.safetensors"))
        steps = data["steps"]
        again = self.data(*self.text("--steps", str(steps + 3)), "--resume")
        self.assertEqual(again["steps"], steps + 3)
        resumed = self.read("m.safetensors")
        self.good(*self.text("--steps", str(steps + 3), "--restart"))
        self.assertEqual(resumed, self.read("m.safetensors"))

    def test_what_cannot_go_on_is_refused(self):
        self.good(*self.text("--steps", "5"))
        before = self.read("m.safetensors.checkpoint")
        self.refused(2, ["m.safetensors.checkpoint exists", "--resume", "--restart"], *self.text("--steps", "9"))
        self.refused(1, ["trained with seed 1, this run has 2", "--restart starts over"],
                     *self.text("--seed", "2", "--resume"))
        self.refused(1, "trained with width 16, this run has 32", *self.text("--resume", "--width", "32"))
        self.refused(1, "trained with task text, this run has reverse",
                     "train", "reverse", "--out", "m.safetensors", "--resume")
        self.refused(2, "--resume", *self.text("--resume", "--restart"))
        self.write("a.txt", TEXT.encode() + b"more")
        self.refused(1, "trained with text", *self.text("--resume"))
        self.write("a.txt", TEXT.encode())
        self.assertEqual(before, self.read("m.safetensors.checkpoint"))
        for broken in (b"", before[:100], before[:-7], b"\xff" * 1000):
            self.write("m.safetensors.checkpoint", broken)
            self.refused(1, ["m.safetensors.checkpoint", "--restart starts over"], *self.text("--resume"))

    def test_resume_without_a_checkpoint_begins(self):
        self.assertIn("starting at step 0", self.good(*self.text("--steps", "2", "--resume")).stderr)


class BadInputs(Train):
    def test_are_refused_before_anything_is_trained(self):
        self.refused(2, "train", "train")
        self.refused(2, "did you mean induction", "train", "inducton")
        self.refused(2, "--steps", "train", "reverse", "--steps", "0")
        self.refused(2, "--seed", "train", "reverse", "--seed", "-1")
        self.refused(2, "--width", "train", "reverse", "--width", "8")
        self.refused(1, ["no such directory: nowhere", "mkdir"], "train", "reverse", "--out", "nowhere/m.safetensors")
        self.refused(1, "is a directory", "train", "reverse", "--out", ".")
        self.refused(1, "is not a model from rapt train", "train", "reverse", "--out", "a.txt")
        self.assertEqual(self.read("a.txt"), TEXT.encode())
        self.refused(2, "3 heads do not divide a width of 16", *self.text("--heads", "3"))
        self.refused(2, "parameters", *self.text("--width", "65536", "--layers", "99"))
        for option in ("--layers", "--heads", "--width", "--context", "--batch", "--rate", "--dropout"):
            kind = "a number" if option in ("--rate", "--dropout") else "an integer"
            for value in ("-1", "x"):
                self.refused(2, f"{option}: '{value}' is not {kind}", *self.text(option, value))

    def test_texts_that_cannot_be_learned(self):
        self.refused(2, "file", "train", "text")
        self.refused(1, ["no such file: b.txt", "a.txt"], "train", "text", "b.txt")
        self.refused(1, "is a directory", "train", "text", ".")
        for data, words in ((b"", "is empty"), (b"ab", "has 2 characters"), (b"\x7fELF\0\0", "byte 4 is 0"),
                            (b"caf\xe9 " * 500, "byte 3 is not UTF-8")):
            self.write("bad.txt", data)
            self.refused(1, ["bad.txt", words], "train", "text", "bad.txt")

    def test_models_that_cannot_generate(self):
        self.refused(1, "no such file: absent.safetensors", "generate", "absent.safetensors")
        self.refused(1, "safetensors", "generate", "a.txt")
        self.write("other.safetensors", arrays.safetensors({"w": ("F32", [1], [1.0])}))
        self.refused(1, ["other.safetensors was not written by rapt train"], "generate", "other.safetensors")
        self.rapt("train", "reverse", "--steps", "1", "--every", "1")
        for prompt, words in (("abc", "has 3 letters"), ("ABC", "\"A\" is not one of the 27 characters"), ("", "empty")):
            self.refused(1, words, "generate", "reverse.safetensors", "--prompt", prompt)
        self.refused(2, "--temperature", "generate", "reverse.safetensors", "--temperature", "-1")
        self.refused(2, "--top-k", "generate", "reverse.safetensors", "--top-k", "0")
        result = self.good("generate", "reverse.safetensors", "--tokens", "500")
        self.assertEqual(len(result.stdout), 13 + 12 + 1)
        self.assertIn("has room for 12", result.stderr)


class OnATerminal(Train):
    def screen(self, *arguments, **environment):
        """What the command writes to a terminal of 80 columns."""
        main, other = pty.openpty()
        subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=other, check=True)
        variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdin=other, stdout=other, stderr=other,
                                   env={**variables, "TERM": "xterm-256color", **environment})
        os.close(other)
        data = b""
        while True:
            ready, _, _ = select.select([main], [], [], 60)
            try:
                piece = os.read(main, 65536) if ready else b""
            except OSError:
                piece = b""
            if not piece:
                break
            data += piece
        process.wait()
        os.close(main)
        return data.decode()

    def test_a_line_changes_in_place_and_fits(self):
        for environment in ({}, {"NO_COLOR": "1"}):
            text = self.screen("train", "reverse", **environment)
            frames = [frame for frame in text.split("\r") if "tok/s" in frame]
            self.assertGreater(len(frames), 0)
            for frame in frames:
                self.assertTrue(frame.endswith("\x1b[K"), frame)
                plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", frame)
                self.assertLess(len(plain), 80, plain)
            self.assertEqual("\x1b[38" in text, not environment)
            os.remove(self.path("reverse.safetensors"))


def main():
    global COMMAND
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()


if __name__ == "__main__":
    main()
