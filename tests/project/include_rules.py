#!/usr/bin/env python3
"""Checks every #include of the project against "Who may include whom" (docs/architecture.md).

    include_rules.py ROOT          checks the tree, prints each breach, fails when there is one
    include_rules.py --self-test   checks this script on a made-up tree full of breaches
"""

import pathlib
import re
import sys

import made_up_tree

# All headers of C++20, and the C headers that a C99 interface and its examples may need.
STANDARD = set(
    """
    algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts condition_variable
    coroutine deque exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers
    numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
    source_location span sstream stack stdexcept stop_token streambuf string string_view strstream syncstream
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
    vector version
    cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint cstdio
    cstdlib cstring ctime cuchar cwchar cwctype
    stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    """.split()
)

# The operating system's headers, for the folders that use it.
SYSTEM = re.compile(r"^(unistd|sched|pthread|fcntl|dlfcn|signal|spawn)\.h$|^(sys|linux)/[a-z]+\.h$")

# Layer -> (layers it may include besides itself, package prefixes it may include, may it include SYSTEM headers).
# A layer "x:name.h" is that one header of x; the engine.h of an engine declares its row of the engine table.
RULES = {
    "include": ([], [], False),
    "core": (["include"], [], True),
    "reference": (["core", "include"], [], False),
    "cpu": (["core", "include"], ["hwy/"], True),
    "io": (["core", "include"], ["zlib.h"], True),
    "cuda": (["core", "include"], ["cuda.h", "cuda_runtime", "cudaTypedefs.h", "cuda_bf16.h", "cuda_fp16.h"], True),
    "attention": (["core", "include", "reference:engine.h", "cpu:engine.h", "cuda:engine.h"], [], False),
    "nn": (["attention", "io", "core", "include"], [], False),
    "cases": (["include"], [], False),
    "train": (["include", "core:number_words.h", "core:utf8.h"], [], False),
    "exhibits": (["include", "core:utf8.h", "models:shares.h"], ["nlohmann/"], False),
    "models": (["include", "core:utf8.h", "core:text.h"], ["nlohmann/"], False),
    "bindings": (["include", "train", "exhibits"], ["nanobind/", "emscripten", "nlohmann/"], True),
    "cli": (["include", "cases", "train", "exhibits", "models", "harness"], ["CLI/", "fmt/", "nlohmann/"], True),
    "examples": (["include"], [], False),
    "fuzz": (["include", "core:engine.h", "models:files.h", "models:tokenizer.h"], [], False),
    "harness": (["include"], ["fmt/"], True),
    "bench": (["include"], [], False),
}

# The folders that are checked; each folder under src/ is a layer with the folder's name.
TOP_FOLDERS = ["include", "src", "cli", "bindings", "examples", "bench", "fuzz"]
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".inc", ".cu", ".cuh"}
DIRECTIVE = re.compile(r"^\s*#\s*include\b\s*(.*)$")
LITERAL = re.compile(r'^(?:"([^"]+)"|<([^>]+)>)')


def layer_of(path):
    """The layer of a path relative to the root: src/core/tensor.cc is in core, cli/run/run.cc in cli."""
    parts = path.parts
    if parts[:2] == ("bench", "harness"):
        return "harness"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def resolve(root, includer, name):
    """The project's file that an #include names, relative to the root; None if it is not a file of the project."""
    for folder in [includer.parent, pathlib.Path("include"), pathlib.Path("src"), pathlib.Path("."),
                   pathlib.Path("tests"), pathlib.Path("bindings", "python", "src")]:
        candidate = (root / folder / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    return None


def breach_of(root, includer, text):
    """Why this #include breaks a rule, or None."""
    layer = layer_of(includer)
    if layer not in RULES:
        return f"no rule for {layer}: add one to tests/project/include_rules.py and docs/architecture.md"
    layers, packages, system = RULES[layer]
    literal = LITERAL.match(text)
    if not literal:
        return "the name is not written out, so no rule can be checked"
    name = literal.group(1) or literal.group(2)
    if literal.group(2):
        if name in STANDARD:
            return None
        if SYSTEM.match(name):
            return None if system else f"{layer} may not include the operating system's headers"

    target = resolve(root, includer, name)
    if target is None:
        if any(name.startswith(prefix) for prefix in packages):  # in quotes, too, as in Highway's own documentation
            return None
        if literal.group(1):
            return "no such file in the project"
        allowed = ", ".join(packages) if packages else "none"
        return f"{layer} may include no such package (allowed beyond the standard library: {allowed})"
    into = layer_of(target)
    if into == layer or into in layers or f"{into}:{target.name}" in layers:
        return None
    return f"{layer} may not include {into} (allowed: {', '.join([layer] + layers)})"


def breaches(root):
    root = root.resolve()
    found, count = [], 0
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            includer = path.relative_to(root)
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                directive = DIRECTIVE.match(line)
                if not directive:
                    continue
                count += 1
                why = breach_of(root, includer, directive.group(1).strip())
                if why:
                    found.append(f"{includer}:{number}: {line.strip()}: {why}")
    return found, count


def self_test():
    """Each line of this tree is an #include; those marked BREACH must be found, and no other."""
    tree = {
        "include/rapt/a.h": ["#include <vector>", '#include "rapt/b.h"', '#include "core/c.h"  // BREACH',
                             "#include <hwy/highway.h>  // BREACH", "#include <unistd.h>  // BREACH"],
        "include/rapt/b.h": ["#pragma once", "#include <cstdint>"],
        "src/core/c.h": ['#include "rapt/a.h"', "#include <sched.h>", "#include <sys/mman.h>",
                         '#include "attention/resolve.h"  // BREACH', '#include "reference/forward.h"  // BREACH',
                         "#include <fmt/format.h>  // BREACH", '#include "hwy/highway.h"  // BREACH'],
        "src/reference/engine.h": ["#pragma once"],
        "src/reference/forward.h": ['#include "core/c.h"', '#include "rapt/a.h"', '#include "cpu/engine.h"  // BREACH',
                                    '#include "io/npy.h"  // BREACH', "  #  include <sched.h>  // BREACH"],
        "src/cpu/engine.h": ['#include "core/c.h"', "#include <hwy/highway.h>", '#include "hwy/highway.h"',
                             '#include "reference/engine.h"  // BREACH', '#include "../io/npy.h"  // BREACH'],
        "src/cpu/kernel.h": ["#include SOME_MACRO  // BREACH"],
        "src/io/npy.h": ['#include "core/c.h"', "#include <fcntl.h>", "#include <zlib.h>", '#include "nn/mha.h"  // BREACH'],
        "src/attention/resolve.h": ['#include "core/c.h"', '#include "reference/engine.h"', '#include "cpu/engine.h"',
                                    '#include "reference/forward.h"  // BREACH', '#include "cpu/kernel.h"  // BREACH',
                                    '#include "nn/mha.h"  // BREACH'],
        "src/nn/mha.h": ['#include "attention/resolve.h"', '#include "io/npy.h"', '#include "core/c.h"',
                         '#include "reference/forward.h"  // BREACH', '#include "cases/list.h"  // BREACH'],
        "src/cases/list.h": ['#include "rapt/a.h"', '#include "reference/forward.h"  // BREACH',
                             '#include "core/c.h"  // BREACH', '#include "attention/resolve.h"  // BREACH'],
        "src/train/task.h": ['#include "rapt/a.h"', '#include "nn/mha.h"  // BREACH', "#include <unistd.h>  // BREACH"],
        "src/unknown/x.h": ["#include <vector>  // BREACH"],
        "bindings/python/src/module.cc": ["#include <nanobind/nanobind.h>", "#include <rapt/a.h>",
                                      '#include "core/c.h"  // BREACH', '#include "nn/mha.h"  // BREACH'],
        "cli/terminal/print.h": ["#include <fmt/format.h>", "#include <sys/ioctl.h>", '#include "bench/harness/timer.h"'],
        "cli/main.cc": ['#include "cli/terminal/print.h"', '#include "rapt/a.h"', "#include <CLI/CLI.hpp>", '#include "cases/list.h"',
                        '#include "attention/resolve.h"  // BREACH', '#include "absent.h"  // BREACH',
                        '#include "../tests/support/near.h"  // BREACH', '#include "support/near.h"  // BREACH',
                        "#include <torch/torch.h>  // BREACH"],
        "examples/first.cc": ['#include "rapt/a.h"', "#include <cstdio>", '#include "cases/list.h"  // BREACH',
                              '#include "bench/harness/timer.h"  // BREACH', "#include <core/c.h>  // BREACH"],
        "fuzz/check.h": ['#include "rapt/a.h"', '#include "io/npy.h"  // BREACH'],
        "bench/harness/timer.h": ["// #include <nothing>", "#include <fmt/format.h>", "#include <dlfcn.h>"],
        "bench/harness/rounds.cc": ['#include "bench/harness/timer.h"', '#include "rapt/a.h"', '#include "core/c.h"  // BREACH',
                                    '#include "cli/terminal/print.h"  // BREACH', "#include <nlohmann/json.hpp>  // BREACH"],
        "bench/peers/api.cc": ['#include "rapt/a.h"', '#include "bench/harness/timer.h"  // BREACH'],
        "tests/support/near.h": ['#include "core/c.h"', '#include "reference/forward.h"'],
    }
    return made_up_tree.self_test(tree, "// BREACH", lambda root: breaches(root)[0])


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = pathlib.Path(sys.argv[1])
    found, count = breaches(root)
    for breach in found:
        print(breach)
    if count == 0:
        print(f"{root}: no #include found; is this the project's root?")
        return 1
    print(f"{count} includes, {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
