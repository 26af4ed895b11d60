#!/usr/bin/env python3
"""Shell completions, run by bash and zsh themselves, the manual, and the version.

    shells_test.py COMMAND [unittest arguments]
"""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import arrays

COMMAND = "rapt"

# Records the completions that the user would see; ^X ends the shell after the TAB has been processed.
ZSH = """
unsetopt prompt_sp; PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D
compadd() {{
  local -a hits
  [[ " ${{@[1,(i)(-|--)]}}" == *" -"[OAD]" "* ]] || {{ builtin compadd -A hits "$@"; print -l -- $hits >> {folder}/hits }}
  builtin compadd "$@"
}}
finish() {{ print -r -- "$BUFFER" > {folder}/buffer; exit }}
zle -N finish; bindkey '^X' finish; bindkey '^I' complete-word
"""


class Shells(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("x.npy", "m.safetensors"):
            open(os.path.join(self.folder, name), "wb").close()

    def good(self, *arguments):
        result = arrays.run(COMMAND, *arguments, folder=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def read(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read()

    def bash(self, *words):
        """What bash offers for the last of these words; bash splits words at = and at colons."""
        line = " ".join(f"'{word}'" for word in words)
        ask = f"{self.good('completion', 'bash')}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _rapt"
        ask += "; printf '%s\\n' \"${COMPREPLY[@]}\""
        result = subprocess.run(["bash", "-c", ask], capture_output=True, cwd=self.folder, encoding="utf-8")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    def zsh(self, line):
        """What zsh offers if TAB is pressed after `line`, and the resulting line."""
        for name, text in (("_rapt", self.good("completion", "zsh")), ("setup", ZSH.format(folder=self.folder))):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        for name in ("hits", "buffer"):
            open(os.path.join(self.folder, name), "w").close()
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        os.write(terminal, f"source setup\n{line}\t\x18".encode())
        deadline = time.monotonic() + 60
        try:
            while select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                if not os.read(terminal, 4096):
                    break
        except OSError:  # the shell has ended
            pass
        os.close(terminal)
        os.waitpid(child, 0)
        return sorted(set(self.read("hits").split())), self.read("buffer").rstrip("\n")

    def test_bash_knows_commands_options_values_and_files(self):
        self.assertEqual(self.bash("rapt", "ins"), ["inspect"])
        self.assertNotIn("--help", self.bash("rapt", ""))
        self.assertIn("--help", self.bash("rapt", "-"))
        self.assertEqual(self.bash("rapt", "bench", "m"), ["mha"])
        self.assertIn("--mask-true", self.bash("rapt", "run", "--ma"))
        self.assertIn("--mask-true", self.bash("rapt", "run", ""))
        self.assertEqual(self.bash("rapt", "run", "--mask-true", "d"), ["drop"])
        self.assertEqual(self.bash("rapt", "run", "--mask-true", "=", "d"), ["drop"])
        self.assertEqual(self.bash("rapt", "run", "--mask-true", "="), ["keep", "drop"])
        self.assertEqual(self.bash("rapt", "run", "--causal", "bot"), ["bottom-right"])
        self.assertEqual(self.bash("rapt", "run", "--input", "x"), ["x.npy"])
        self.assertEqual(self.bash("rapt", "run", "--scores", "m"), ["masked:"])
        self.assertEqual(self.bash("rapt", "run", "--scores", "raw", ":", "x"), ["x.npy"])
        self.assertEqual(self.bash("rapt", "run", "--input", "m.safetensors", ":"), [])
        self.assertEqual(sorted(self.bash("rapt", "inspect", "")), ["m.safetensors", "x.npy"])
        self.assertEqual(self.bash("rapt", "completion", "z"), ["zsh"])

    @unittest.skipIf(shutil.which("zsh") is None, "there is no zsh")
    def test_zsh_knows_commands_options_values_and_files(self):
        for line, offered, after in (
            ("rapt ins", ["inspect"], "rapt inspect "),
            ("rapt bench m", ["mha"], "rapt bench mha "),
            ("rapt run --mask-", ["--mask-fill", "--mask-of", "--mask-true"], "rapt run --mask-"),
            ("rapt run --mask-true ", ["drop", "keep"], "rapt run --mask-true "),
            ("rapt run --mask-true=d", ["drop"], "rapt run --mask-true=drop "),
            ("rapt run --causal bot", ["bottom-right"], "rapt run --causal bottom-right "),
            ("rapt run --input x", ["x.npy"], "rapt run --input x.npy "),
            ("rapt run --scores ma", ["masked"], "rapt run --scores masked:"),
            ("rapt run --scores raw:s.npy --scores masked:x", ["x.npy"], "rapt run --scores raw:s.npy --scores masked:x.npy "),
            ("rapt run --scores raw:s.npy --sco", ["--scores"], "rapt run --scores raw:s.npy --scores="),
            ("rapt inspect m", ["m.safetensors"], "rapt inspect m.safetensors "),
            ("rapt completion z", ["zsh"], "rapt completion zsh "),
        ):
            with self.subTest(line=line):
                self.assertEqual(self.zsh(line), (offered, after))

    def test_the_manual_names_every_command_and_option(self):
        page = self.good("man").replace("\\-", "-")
        for word in ("rapt run", "rapt inspect", "rapt convert", "rapt bench mha", "--mask-true", "EXIT STATUS", "NO_COLOR"):
            self.assertIn(word, page)

    def test_there_is_a_version(self):
        self.assertRegex(self.good("--version"), r"^rapt \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
