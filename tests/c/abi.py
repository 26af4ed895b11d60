#!/usr/bin/env python3
"""Checks the C interface against tests/c/abi.txt: every struct's layout, every constant, every function and the soname.

    abi.py layout INCLUDE CC SCRATCH [--update]   structs, constants and functions of rapt.h, as the C compiler sees them
    abi.py dlpack INCLUDE CC SCRATCH              the tensors of rapt.h beside those of <dlpack/dlpack.h>
    abi.py symbols INCLUDE LIBRARY                whether a library exports what the headers declare, and nothing else
    abi.py used INCLUDE OBJECT                    whether an object file calls every function

A compiled program runs with a newer library only if all changes of abi.txt are new functions or new fields at the end
of a struct. After such a change, `abi.py layout … --update` updates the file; after any other change, the soname must
change too.
"""

import pathlib
import re
import subprocess
import sys

WANTED = pathlib.Path(__file__).with_name("abi.txt")
SKIPPED = 77  # the exit code that CTest treats as "skipped"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.S)


class Header:
    """What rapt.h declares."""

    def __init__(self, include):
        text = without_comments((include / "rapt" / "rapt.h").read_text(encoding="utf-8"))
        self.structs = {}
        for tag, body, name in re.findall(r"typedef struct (\w*) ?\{(.*?)\} (\w+);", text, re.S):
            assert tag in ("", name)
            self.structs[name] = [re.search(r"(\w+)(\[\d+\])?$", field.strip()).group(1)
                                  for field in body.split(";") if field.strip()]
        self.constants = re.findall(r"\b((?:RAPT|kDL)\w+) = \d", text)
        self.functions = {}
        for words in re.findall(r"^((?:rapt_status|const char\*|void) rapt_\w+\([^;]*\));", text, re.M):
            self.functions[re.search(r"rapt_\w+(?=\()", words).group(0)] = " ".join(words.split())
        self.callbacks = [" ".join(words.split()) for words in re.findall(r"^typedef (void \(\*[^;]*);", text, re.M)]


def compiled_layout(header, include, compiler, scratch, first=""):
    """The lines of abi.txt for structs and constants, from a generated C99 program that is compiled and run."""
    lines = [first, '#include "rapt/rapt.h"', "#include <stdio.h>", "int main(void) {"]
    for name, fields in header.structs.items():
        lines.append(f'  printf("struct {name} %d\\n", (int)sizeof({name}));')
        lines += [f'  printf("  {field} %d %d\\n", (int)offsetof({name}, {field}), (int)sizeof((({name}*)0)->{field}));'
                  for field in fields]
    lines += [f'  printf("constant {name} %d\\n", (int){name});' for name in header.constants]
    scratch.mkdir(parents=True, exist_ok=True)
    source, program = scratch / "layout.c", scratch / "layout"
    source.write_text("\n".join(lines + ["  return 0;", "}"]) + "\n", encoding="utf-8")
    subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include, source, "-o",
                    program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def gaps(lines):
    """Structs with padding: the padding bytes of an older caller would be read as a newer field."""
    found, name, size, end = [], None, 0, 0
    for line in lines + ["constant"]:
        if not line.startswith("  "):
            if name and end != size:
                found.append(name)
            words = line.split()
            name, size, end = (words[1], int(words[2]), 0) if words[0] == "struct" else (None, 0, 0)
        elif name:
            _, at, width = line.split()
            if int(at) != end:
                found.append(f"{name} before {line.split()[0]}")
            end = int(at) + int(width)
    return found


def show_difference(wanted, got):
    for line in [line for line in wanted if line not in got]:
        print(f"was:  {line}")
    for line in [line for line in got if line not in wanted]:
        print(f"is:   {line}")
    if sorted(wanted) == sorted(got):
        print("the order changed")


def layout(include, compiler, scratch, update):
    header = Header(include)
    lines = compiled_layout(header, include, compiler, scratch)
    broken = gaps(lines)
    for name in broken:
        print(f"{name}: has a gap; fill it with a field called reserved")
    got = lines + [f"callback {words}" for words in header.callbacks]
    got += [f"function {words}" for words in header.functions.values()]
    wanted = WANTED.read_text(encoding="utf-8").splitlines() if WANTED.exists() else []
    soname = [line for line in wanted if line.startswith("soname")]
    if update:
        WANTED.write_text("\n".join(soname + got) + "\n", encoding="utf-8")
    elif wanted != soname + got:
        show_difference(wanted, soname + got)
        print(f"rapt.h is not what {WANTED.name} says")
        return 1
    print(f"{len(header.structs)} structs, {len(header.constants)} constants, {len(header.functions)} functions")
    return 1 if broken else 0


def dlpack(include, compiler, scratch):
    """Compiles rapt.h after <dlpack/dlpack.h>, whose tensors must have the layout of rapt.h's own."""
    found = subprocess.run([compiler, "-E", "-x", "c", "-"], input="#include <dlpack/dlpack.h>\n", capture_output=True,
                           text=True)
    if found.returncode != 0:
        print("there is no <dlpack/dlpack.h> here")
        return SKIPPED
    header = Header(include)
    header.structs = {name: fields for name, fields in header.structs.items() if name.startswith("DL")}
    header.constants = [name for name in header.constants if re.search(rf"\b{name}\b", found.stdout)]
    theirs = compiled_layout(header, include, compiler, scratch, first="#include <dlpack/dlpack.h>")
    ours = compiled_layout(header, include, compiler, scratch)
    if ours != theirs:
        show_difference(theirs, ours)
        return 1
    print(f"{len(ours)} lines agree")
    return 0 if header.structs and header.constants else 1


def symbols(include, library):
    header = Header(include)
    text = " ".join(without_comments(path.read_text(encoding="utf-8")) for path in (include / "rapt").glob("*.h"))
    public = set(re.findall(r"\w+", text))
    insides = set(re.findall(r'visibility\("hidden"\)\]\] (\w+)', text))  # declared, but not part of the interface
    shown, leaks = set(), []
    output = subprocess.run(["nm", "--dynamic", "--defined-only", "--demangle", library], check=True,
                            capture_output=True, text=True).stdout
    for line in output.splitlines():
        kind, name = re.match(r"[0-9a-f]* (\w) (.*)", line).groups()
        if name.startswith("rapt_"):
            shown.add(name)
            continue
        # Weak symbols belong to templates or inline functions of the standard library or of a public header.
        own = re.findall(r"\brapt::((?:\w+::)*\w+)", name)
        hidden = [word for place in own for word in place.split("::") if word not in public]
        inside = insides & set(re.findall(r"(\w+)::", name.split("(")[0]))
        if hidden or inside or "hwy::" in name or (not own and kind not in "VWuv"):
            leaks.append(name)
    for name in leaks:
        print(f"shown, and in no public header: {name}")
    for name in sorted(shown ^ set(header.functions)):
        print(f"{'shown, and not in rapt.h' if name in shown else 'in rapt.h, and not shown'}: {name}")
    dynamic = subprocess.run(["readelf", "--dynamic", "--wide", library], check=True, capture_output=True,
                             text=True).stdout
    soname = "soname " + re.search(r"\(SONAME\).*\[(.*)\]", dynamic).group(1)
    wrong = soname not in WANTED.read_text(encoding="utf-8").splitlines()
    if wrong:
        print(f"{WANTED.name} does not say: {soname}")
    print(f"{len(shown)} functions of C, {len(output.splitlines())} symbols in all")
    return 1 if leaks or wrong or shown != set(header.functions) else 0


def used(include, program):
    calls = subprocess.run(["nm", "--undefined-only", program], check=True, capture_output=True, text=True).stdout
    missing = set(Header(include).functions) - set(calls.split())
    for name in sorted(missing):
        print(f"never called: {name}")
    return 1 if missing else 0


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    if len(arguments) < 3:
        print(__doc__)
        return 2
    what, include, rest = arguments[0], pathlib.Path(arguments[1]), arguments[2:]
    if what == "layout":
        return layout(include, rest[0], pathlib.Path(rest[1]), "--update" in sys.argv)
    if what == "dlpack":
        return dlpack(include, rest[0], pathlib.Path(rest[1]))
    return {"symbols": symbols, "used": used}[what](include, rest[0])


if __name__ == "__main__":
    sys.exit(main())
