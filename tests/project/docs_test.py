#!/usr/bin/env python3
"""Checks that everything the documents name exists: files, constants, make targets, commands and flags of rapt, CMake
options, tests.

    docs_test.py ROOT [RAPT]      reads the documents of the tree; RAPT is the built command, for its flags
    docs_test.py --self-test      checks this script on a made-up tree with a breach of each kind

It reads code spans, code blocks and links of docs/*.md, docs/adr/*.md, README*.md and CONTRIBUTING.md. A superseded
decision (docs/adr) may name anything; one in force may name what docs/adr/README.md lists as renamed. In a table with
the columns "file" and "function", the file of a row must contain the function. If there is a column "line", the file
must contain that line too, and the table is a walk through the code, which has at most six steps.
"""

import fnmatch
import os
import pathlib
import re
import shlex
import subprocess
import sys

import made_up_tree

SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__"}
SOURCES = (".h", ".cc", ".c", ".py", ".pyi", ".mjs", ".js", ".sh", ".cmake", ".txt", ".json", ".toml", ".cuh", ".cu")
# A code span with one of these endings names a file.
FILE = re.compile(r"^[\w.*+-]+(?:/[\w.*+-]+)*\.(?:h|cc|c|py|pyi|md|mjs|sh|cmake|json|toml|svg|png|ts|supp|map)$")
PLACEHOLDER = re.compile(r"[<>{}…$~=]|^(?:FILE|FOLDER|OUT|JOB)\b|^/|^build/")
COMMENT = re.compile(r"(?:^|\s)#(?:\s|$).*")
BUILT_RAPT = re.compile(r"(?:.*/)?build/[\w-]+/rapt$")
LONGEST_WALK = 6  # files from the layer to the multiply, in docs/architecture.md
STATUS = re.compile(r"^\*\*Status:\*\* superseded by \[(\d+)\]\(([^)]+)\)", re.M)


class Tree:
    """Everything that exists in the project."""

    def __init__(self, root, rapt=None):
        self.root, self.rapt = root, rapt
        self.files, self.folders = set(), set()
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in SKIPPED_FOLDERS]
            place = pathlib.Path(folder).relative_to(root)
            self.folders |= {(place / name).as_posix() for name in below}
            self.files |= {(place / name).as_posix() for name in names}
        self.tops = {name for name in self.folders if "/" not in name}
        self.words, self.included, self.cmake_options = set(), set(), {"BUILD_SHARED_LIBS"}
        self.tests = set()  # suites, tests and cases: the parts of a test's name
        for name in self.files:
            if name.startswith("docs/") or not (name.endswith(SOURCES) or name.startswith(("Makefile", ".ci/"))):
                continue
            text = self.read(name)
            self.words |= set(re.findall(r"\b(?:k[A-Z]\w*|RAPT_\w+)", text))
            for names in re.findall(r"\bTEST(?:_[FP])?\((\w+),\s*(\w+)\)|\badd\(\"(\w+)\"", text):
                self.tests |= set(names)
            self.included |= set(re.findall(r"^#include [<\"]([\w./-]+)", text, re.M))
            if name.endswith(("CMakeLists.txt", ".cmake")):
                self.cmake_options |= set(re.findall(r"\boption\((\w+)", text))
                self.cmake_options |= set(re.findall(r"\bset\((\w+)[^)]*\bCACHE\b", text))
        makefile = self.read("Makefile") if "Makefile" in self.files else ""
        self.make_variables = set(re.findall(r"^(\w+)\s*[?:]?=", makefile, re.M))
        lists = dict(re.findall(r"^(\w+) := ([\w -]+)$", makefile, re.M))
        self.make_targets = set()
        for targets in re.findall(r"^([^\s#:][^:=\n]*):(?!=)", makefile, re.M):
            targets = re.sub(r"\$\((\w+)\)", lambda match: lists.get(match[1], ""), targets)
            self.make_targets |= set(targets.split())
        self.helps = {}

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def has_path(self, name):
        """Whether a file or folder has this path from the root; * stands for anything."""
        every, name = self.files | self.folders, name.rstrip("/")
        return any(fnmatch.fnmatchcase(each, name) for each in every) if "*" in name else name in every

    def has_file(self, name):
        """Whether a file has this name in some folder, or is a header of another project that ours include."""
        pattern = "*/" + name
        return any(fnmatch.fnmatchcase("/" + each, pattern) for each in self.files | self.included)

    def help(self, *command):
        """(subcommands, flags) of a command of rapt."""
        if command not in self.helps:
            asked = [self.rapt, *command, "--help"]
            text = subprocess.run(asked, capture_output=True, encoding="utf-8", check=True).stdout
            listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)
            commands = set(re.findall(r"^  (\w+)", listed[1], re.M)) if listed else set()
            self.helps[command] = commands, set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))
        return self.helps[command]


def code_of(text):
    """(offset, language or None, code): fenced blocks, indented blocks (language "") and code spans (None)."""
    pieces = []

    def take(match, language, group):
        pieces.append((match.start(group), language, match[group]))
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"<!--.*?-->", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.S)
    text = re.sub(r"^( *)```(\w*)\n(.*?)^ *```", lambda match: take(match, match[2], 3), text, flags=re.M | re.S)
    text = re.sub(r"(?<=\n\n)((?: {4,}.*\n| *\n(?= {4}))+)", lambda match: take(match, "", 1), text)
    for match in re.finditer(r"`([^`]+)`", text):
        pieces.append((match.start(1), None, match[1]))
    return pieces


class Document:
    def __init__(self, tree, name, renamed=()):
        self.tree, self.name, self.renamed = tree, name, dict(renamed)
        self.text = tree.read(name)
        self.made = set(re.findall(r"<!-- file (\S+) -->", self.text))  # files that a page's examples create
        self.breaches = []

    def report(self, offset, what, why):
        line = self.text.count("\n", 0, offset) + 1
        self.breaches.append(f"{self.name}:{line}: {what}: {why}")

    def check(self):
        for match in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", lambda m: " " * len(m[0]), self.text,
                                                            flags=re.M | re.S)):
            self.check_link(match.start(1), match[1])
        for offset, language, code in code_of(self.text):
            self.check_names(offset, code)
            self.check_paths(offset, code, spans=language is None)
            if language in (None, "sh", ""):
                for line in re.finditer(r"(?:[^\\\n]|\\.|\\\n)+", code):
                    text = COMMENT.sub("", line[0].replace("\\\n", " "))
                    self.check_command(offset + line.start(), text, wrapped=language == "sh")
        self.check_tables()
        return self.breaches

    def known(self, what, exists):
        """Whether a name exists, or is an old name of something that exists."""
        if exists(what):
            return True
        if what not in self.renamed:
            return False
        return self.renamed[what] == "" or exists(self.renamed[what])

    def check_link(self, offset, link):
        path = link.split("#")[0]
        if re.match(r"\w+:", link) or path == "":
            return
        target = os.path.normpath(os.path.join(os.path.dirname(self.name), path))
        if target not in self.tree.files | self.tree.folders:
            self.report(offset, link, "no such file")

    def check_names(self, offset, code):
        for match in re.finditer(r"(?<![\w-])-D(\w+)=", code):
            option = match[1]
            if not option.startswith("CMAKE_") and not self.known(option, self.tree.cmake_options.__contains__):
                self.report(offset + match.start(), option, "no such CMake option")
        for match in re.finditer(r"--gtest_filter='?([\w.*:/-]+)", code):
            for name in re.findall(r"[A-Z]\w{2,}", match[1]):
                if not any(name in test for test in self.tree.tests):
                    self.report(offset + match.start(), name, "no such test")
        for match in re.finditer(r"\bk[A-Z]\w*|\bRAPT_\w+", code):
            if not self.known(match[0], self.tree.words.__contains__):
                self.report(offset + match.start(), match[0], "no such constant, option or variable in the sources")

    def check_paths(self, offset, code, spans):
        for match in re.finditer(r"[^\s()\[\],;:'\"|]+", code):
            word = match[0].rstrip(".")
            word = word[2:] if word.startswith("./") else word
            inside = word.split("/")[0] in self.tree.tops and "/" in word
            if PLACEHOLDER.search(word) or not (inside or (spans and FILE.match(word))) or word in self.made:
                continue
            if not self.known(word, self.tree.has_path if inside else self.tree.has_file):
                self.report(offset + match.start(), word, "no such file or folder")

    def check_command(self, offset, line, wrapped):
        for part in re.finditer(r"(?:[^;&|'\"]|'[^']*'|\"[^\"]*\"|\$\([^)]*\))+", line):
            at = offset + part.start()
            try:
                words = shlex.split(re.sub(r"\$\([^)]*\)", "X", part[0]))
            except ValueError:
                continue
            program = 0
            while program < len(words) and re.match(r"\w+=|(?:sudo|time)$", words[program]):
                program += 1
            if program < len(words) and words[program] == "make":
                self.check_make(at, words[program + 1 :])
            for n in range(program, len(words) - 1):  # in a shell block, a profiler may precede the program
                if (n == program and words[n] == "rapt") or (wrapped or n == program) and BUILT_RAPT.match(words[n]):
                    self.check_rapt(at, words[n + 1 :])
                    break

    def check_make(self, offset, words):
        for word in words:
            variable = re.match(r"(\w+)=", word)
            if variable and not self.known(variable[1], self.tree.make_variables.__contains__):
                self.report(offset, f"make {word}", "no such variable in the Makefile")
            elif not variable and not word.startswith("-") and not PLACEHOLDER.search(word):
                if not self.known(word, self.tree.make_targets.__contains__):
                    self.report(offset, f"make {word}", "no such target")

    def check_rapt(self, offset, words):
        if self.tree.rapt is None:
            return
        command = ()
        commands, flags = self.tree.help()
        while commands and words and not words[0].startswith("-"):
            if words[0].isupper() or PLACEHOLDER.search(words[0]):
                return
            if words[0] not in commands:
                self.report(offset, f"rapt {' '.join(command)} {words[0]}", "no such command")
                return
            command = (*command, words.pop(0))
            commands, flags = self.tree.help(*command)
        for word in words:
            flag = word.split("=")[0]
            if re.match(r"--?[a-z]", flag) and flag not in flags:
                self.report(offset, f"rapt {' '.join((*command, flag))}", "no such flag")

    def check_tables(self):
        """Checks tables that say which file contains a function."""
        columns = {}
        offset = 0
        for line in self.text.splitlines(keepends=True):
            cells = [cell.strip() for cell in line.strip()[1:-1].split("|")] if line.startswith("|") else []
            if not cells:
                columns = {}
            elif not columns:
                columns = {cell: n for n, cell in enumerate(cells)}
                steps = 0
            elif {"file", "function"} <= columns.keys() and not line.startswith("|-") and len(cells) >= len(columns):
                self.check_row(offset, cells, columns)
                steps += 1
                if "line" in columns and steps == LONGEST_WALK + 1:
                    self.report(offset, cells[0], f"the walk has more than {LONGEST_WALK} steps")
            offset += len(line)

    def check_row(self, offset, cells, columns):
        file = cells[columns["file"]].strip("`")
        if file not in self.tree.files:
            self.report(offset, file, "no such file")
            return
        plain = lambda text: re.sub(r"\s+", "", text)
        source = plain(self.tree.read(file))
        for kind in ("function", "line"):
            for span in re.findall(r"`([^`]+)`", cells[columns[kind]] if kind in columns else ""):
                wanted = span.split("::")[-1] if kind == "function" else span
                if plain(wanted) not in source:
                    self.report(offset, span, f"not in {file}")


def renamed_names(tree):
    """{old: new} of docs/adr/README.md; an empty new name means that it no longer exists."""
    index = "docs/adr/README.md"
    text = tree.read(index) if index in tree.files else ""
    table = re.search(r"^\| in a record \| now \|\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.M)
    rows = table[1].splitlines() if table else []
    return dict([cell.strip().strip("`") for cell in row.split("|")[1:3]] for row in rows)


def check_decisions(tree, names):
    """Checks that a superseded decision and its successor refer to each other."""
    found = []
    for name in names:
        status = STATUS.search(tree.read(name))
        if not status:
            continue
        place = os.path.join(os.path.dirname(name), status[2])
        number = int(re.match(r"\d+", os.path.basename(name))[0])
        if place not in tree.files or f"Supersedes [{number}](" not in tree.read(place):
            found.append(f"{name}:3: {status[2]}: does not say that it supersedes {number}")
    return found


def breaches(root, rapt=None):
    tree = Tree(root.resolve(), rapt)
    documents = re.compile(r"docs/[^/]+\.md|README[^/]*\.md|CONTRIBUTING\.md")
    pages = sorted(name for name in tree.files if documents.fullmatch(name))
    decisions = sorted(name for name in tree.files if re.fullmatch(r"docs/adr/\d+[^/]*\.md", name))
    renamed = renamed_names(tree)
    found = check_decisions(tree, decisions)
    for name in pages:
        found += Document(tree, name).check()
    if "docs/adr/README.md" in tree.files:
        found += Document(tree, "docs/adr/README.md", {old: "" for old in renamed}).check()
    for name in decisions:
        if not STATUS.search(tree.read(name)):
            found += Document(tree, name, renamed).check()
    return found, len(pages) + len(decisions)


FAKE_RAPT = """#!/bin/sh
case "$1" in
  check) printf 'Usage: rapt check\\n\\nOptions:\\n  --case NAME   One case\\n  -h, --help\\n' ;;
  bench) [ "$2" = gemm ] && printf 'Options:\\n  --rows N   Rows\\n' || printf 'Commands:\\n  gemm   A product\\n\\n' ;;
  *) printf 'Commands:\\n  check   Compare\\n  bench   Measure\\n\\nOptions:\\n  --help\\n' ;;
esac
"""


def self_test():
    """Lines marked BREACH must be found, and no other."""
    breach = "BREACH"
    tree = {
        "Makefile": ["all := build-a build-b", "TESTS ?=", "test: ## runs", "$(all): build-%:", "x := 1"],
        "CMakeLists.txt": ['option(RAPT_ZLIB "zlib" ON)', 'set(RAPT_KIND "" CACHE STRING "kind")', "set(RAPT_PLAIN 1)"],
        "src/core/a.h": ["constexpr int kChunk = 256;", "void Merge(int a,", "           int b) { call(a, b); }"],
        "tests/rows_test.cc": ["TEST_P(Rows, AreSeen) {", 'list.add("Plain", x);'],
        "src/core/b.cc": ['getenv("RAPT_ISA");', "#include <other/theirs.h>"],
        "README.md": ["<!-- file mine.cc -->", "```cpp", "int kMine = gone/gone.h;  // BREACH", "```",
                      "`mine.cc` is made above, `a.h` and `theirs.h` exist, `theirs.cc` does not BREACH",
                      "[good](docs/guide.md) and [bad](docs/gone.md) BREACH",
                      "[anchor](docs/guide.md#x) [web](https://x.y/z)"],
        "CONTRIBUTING.md": ["```sh", "make test TESTS='-R x'   # make this", "make gone   # BREACH",
                            "make test GONE=1  # BREACH",
                            "make build-a && make build-c  # BREACH", "```", "`make test` and `make nothing` BREACH",
                            "In words, make this: no command."],
        "docs/guide.md": ["`src/core/a.h`, `src/core/`, `core/a.h`, `src/core/*.cc`, `build/x.h`, `src/<name>/y.h`",
                          "`src/core/gone.h` BREACH", "`src/gone/` BREACH", "`src/core/*.py` BREACH",
                          "`gone-inl.h` BREACH",
                          "`tests --gtest_filter='On/Rows.AreSeen/avx2:*See*Plain*'`",
                          "`tests --gtest_filter='*HiddenRow*'` BREACH",
                          "", "    attend   src/core/a.h   is fine", "    attend   src/core/z.h   is not BREACH", "",
                          "`kChunk` and `kGone` BREACH", "`RAPT_ISA` is read, `RAPT_GONE` is not BREACH",
                          "`-DRAPT_ZLIB=OFF -DRAPT_KIND=x -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=ON`",
                          "`-DRAPT_PLAIN=1` is no option BREACH",
                          "```sh", "build/release/rapt check --case A | grep --count x", "rapt check --gone  # BREACH",
                          "RAPT_ISA=x perf stat -e y build/release/rapt bench gemm --rows 3",
                          "rapt bench sgemm  # BREACH", "rapt bench gemm \\", "  --columns 3", "rapt fly  # BREACH",
                          "```",
                          "`rapt check --case NAME`, `rapt COMMAND`, `import rapt`, `rapt gone` BREACH",
                          "", "| what | file | function | line |", "|---|---|---|---|",
                          "| a | `src/core/a.h` | `X::Merge` | `call(a, b)` |",
                          "| b | `src/core/a.h` | `Split` | `call(a, b)` | BREACH",
                          "| c | `src/core/a.h` | `Merge` | `call(b, a)` | BREACH",
                          "| d | `src/core/y.h` | `Merge` |  | BREACH", *["| e | `src/core/a.h` | `Merge` |  |"] * 2,
                          "| f | `src/core/a.h` | `Merge` |  | BREACH"],
        "docs/adr/README.md": ["| in a record | now |", "|---|---|", "| `src/core/old.h` | `src/core/a.h` |",
                               "| `src/core/older.h` | `src/core/nowhere.h` | BREACH", "| `kOld` | |"],
        "docs/adr/0001-one.md": ["# 1. One", "", "**Status:** superseded by [2](0002-two.md).", "`src/core/any.h`"],
        "docs/adr/0002-two.md": ["# 2. Two", "", "Supersedes [1](0001-one.md).", "`src/core/old.h`, `kOld`",
                                 "`src/core/older.h` BREACH", "`src/core/never.h` BREACH"],
        "docs/adr/0003-three.md": ["# 3. Three", "", "**Status:** superseded by [2](0002-two.md). BREACH"],
    }

    def found(root):
        rapt = root / "build" / "rapt"
        rapt.parent.mkdir()
        rapt.write_text(FAKE_RAPT, encoding="utf-8")
        rapt.chmod(0o755)
        return breaches(root, str(rapt))[0]

    return made_up_tree.self_test(tree, breach, found, ".md", {"docs/guide.md:21"},  # a flag on a continued line
                                  lambda line: line.replace(" | " + breach, " |"))


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    found, count = breaches(pathlib.Path(sys.argv[1]), *sys.argv[2:])
    for breach in found:
        print(breach)
    print(f"{count} documents, {len(found)} breaches")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
