#!/usr/bin/env python3
"""An include that "Who may include whom" (docs/architecture.md) forbids does not compile.

    breach_test.py ROOT BUILD [unittest arguments]

Takes the include path of each target from BUILD/compile_commands.json. include_rules.py reads the same rules from the
text of the sources; here the compiler does not find the header.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import include_rules

ROOT = BUILD = pathlib.Path(".")
LAYERS = ["core", "reference", "cpu", "cuda", "io", "attention", "nn", "cases", "train", "exhibits", "models", "cli", "harness"]


def commands():
    """For each layer, the compiler and the include-path flags of one of its files."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(BUILD) or path.suffix != ".cc":
            continue
        words = shlex.split(entry["command"])
        if pathlib.Path(words[0]).name == "ccache":
            words.pop(0)
        flags = []
        for word, after in zip(words, words[1:]):
            if word in ("-I", "-isystem"):
                flags += [word, str(pathlib.Path(entry["directory"], after))]
            elif word.startswith("-I"):
                flags.append("-I" + str(pathlib.Path(entry["directory"], word[2:])))
            elif word.startswith(("-std=", "-D", "-m")):
                flags.append(word)
        found.setdefault(include_rules.layer_of(path.relative_to(ROOT)), [words[0], *flags])
    return found


def headers():
    """Every header of src, cli and the harness, relative to the root, by the name that includes use."""
    found = {}
    for folder in ("src", "cli", "bench/harness"):
        for path in sorted((ROOT / folder).rglob("*.h")):
            name = path.relative_to(ROOT / "src" if folder == "src" else ROOT)
            found[str(name)] = path.relative_to(ROOT)
    return found


def includes_of(path, known):
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        directive = include_rules.DIRECTIVE.match(line)
        literal = directive and include_rules.LITERAL.match(directive.group(1).strip())
        if literal and literal.group(1) in known:
            yield literal.group(1)


def allowed(layer, known):
    """The headers that the rules allow a layer to include."""
    layers = include_rules.RULES[layer][0]
    found = set()
    for name, path in known.items():
        into = include_rules.layer_of(path)
        if into == layer or into in layers or f"{into}:{path.name}" in layers:
            found.add(name)
    return found


def with_their_includes(names, known):
    """These headers and, transitively, the headers that they include."""
    reached, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += includes_of(known[name], known)
    return reached


class Breach(unittest.TestCase):
    def setUp(self):
        self.commands = commands()

    def compiled(self, layer, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file.cc"
            file.write_text(text, encoding="utf-8")
            return subprocess.run([*self.commands[layer], "-fsyntax-only", str(file)], capture_output=True, text=True,
                                  check=False)

    def test_a_layer_cannot_include_a_kernel(self):
        good = self.compiled("nn", '#include "core/text.h"\n#include "attention/checks.h"\n')
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        bad = self.compiled("nn", '#include "core/text.h"\n#include "cpu/engine.h"\n')
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("cpu/engine.h", bad.stderr)

    def test_attention_sees_an_engine_s_row_and_nothing_else_of_it(self):
        good = self.compiled("attention", '#include "cpu/engine.h"\n#include "reference/engine.h"\n')
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        others = [name for name in headers() if name.startswith(("cpu/", "reference/")) and "/engine.h" not in name]
        self.assertGreater(len(others), 10)
        for name in (others[0], others[-1]):
            bad = self.compiled("attention", f'#include "{name}"\n')
            self.assertNotEqual(bad.returncode, 0)
            self.assertIn(name, bad.stderr)

    def test_every_target_finds_what_it_may_include_and_no_other_header(self):
        known = headers()
        self.assertGreater(len(known), 100)
        for layer in LAYERS:
            with self.subTest(layer=layer):
                may = allowed(layer, known)
                needed = with_their_includes(may, known)
                lines = [f'#if !__has_include("{name}")\n#error "does not find {name}"\n#endif' for name in sorted(may)]
                lines += [f'#if __has_include("{name}")\n#error "finds {name}"\n#endif'
                          for name in sorted(set(known) - needed)]
                result = self.compiled(layer, "\n".join(lines) + "\n")
                self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(os.path.realpath(sys.argv.pop(1))) for _ in range(2))
    unittest.main()
