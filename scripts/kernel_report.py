#!/usr/bin/env python3
"""Lists the CUDA kernels as compiled: registers, shared memory, stack frames, spills, remarks, counts of instructions.

    kernel_report.py BUILD            writes docs/cuda-kernels.md, from what a build with RAPT_CUDA left in BUILD
    kernel_report.py BUILD --check    compares with docs/cuda-kernels.md instead, and fails where a kernel is not as it
                                      should be: see problems()

The build keeps what ptxas says beside each object, in FILE.cu.o.ptxas (scripts/keep-remarks.sh). Counts of instructions
come from cuobjdump and nvdisasm: in the toolkit, on PATH, or from PyPI (`make cuda-report`). Without them --check leaves
those columns out.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "cuda-kernels.md"
# Names for the enumerators in template arguments.
VALUES = {"(DType)2": "bf16", "(DType)3": "f16", "(Major)0": "K-major", "(Major)1": "MN-major"}
TOOLS = [ROOT / "build" / "cuda-tools-venv", pathlib.Path("/usr/local/cuda/bin")]

# Kernels that are known to spill, and the most bytes that they may store. With head size 256, masks and other terms
# compete for registers with 160 accumulators.
KNOWN_SPILLS = {"rows_kernel<Bf16, 256, true>": 148, "rows_kernel<F16, 256, true>": 148}

HEAD = """\
# CUDA kernels as compiled

`make cuda-report` writes this page; a test compares it with every build that has `nvcc`. Kernels that multiply with
`wgmma` must not spill, and their `wgmma` instructions must not be serialized. Two of these kernels still spill
(`KNOWN_SPILLS` in `scripts/kernel_report.py`). Plain kernels may spill, because their registers are limited so that
four blocks fit on a multiprocessor.

Registers are per GPU thread; the rows kernel moves some of its registers between warpgroups at run time. Shared memory
is the amount that is declared in the source; the rows kernel requests more at launch. HGMMA counts tensor-core
instructions, UTMALDG counts instructions of the copy engine, and code is the size of the machine code in KB.

| kernel | registers | shared bytes | stack bytes | spilled bytes: stores, loads | HGMMA | UTMALDG | code |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


@dataclasses.dataclass
class Kernel:
    name: str  # demangled, without namespaces and parameters
    symbol: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    hgmma: int = None  # None: not disassembled
    utmaldg: int = None
    code: int = None

    def row(self):
        counts = ["–" if count is None else str(count) for count in (self.hgmma, self.utmaldg)]
        code = "–" if self.code is None else f"{self.code / 1024:.0f}"
        return (f"| `{self.name}` | {self.registers} | {self.shared} | {self.stack} "
                f"| {self.spill_stores}, {self.spill_loads} | {counts[0]} | {counts[1]} | {code} |")


def demangle(symbols):
    """Kernel names in readable form: rows_kernel<Bf16, 64, false>."""
    result = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    names = []
    for name in result.stdout.splitlines():
        name = re.sub(r"^void ", "", name)
        name = re.sub(r"\(anonymous namespace\)::|rapt::cuda::|rapt::", "", name)
        name = re.sub(r"_INTERNAL_\w+::|_GLOBAL__N__\w+::", "", name)
        for value, meaning in VALUES.items():
            name = name.replace(value, meaning)
        names.append(name[: matching(name)])
    return names


def matching(name):
    """Where the parameters of a demangled function begin: at the first parenthesis outside template arguments."""
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return at
    return len(name)


def read_log(text):
    """The kernels of one ptxas log, by symbol, and its remarks."""
    kernels, remarks, current = {}, [], None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for", line):
            current = kernels.setdefault(match[1], Kernel("", match[1]))
        elif match := re.search(r"Function properties for (\w+)", line):
            current = kernels.get(match[1], current)
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            current.stack, current.spill_stores, current.spill_loads = map(int, match.groups())
        elif match := re.search(r"Used (\d+) registers", line):
            current.registers = int(match[1])
            shared = re.search(r"(\d+) bytes smem", line)
            current.shared = int(shared[1]) if shared else 0
        elif re.search(r"\(C75\d\d\)", line):
            remarks.append(line.strip())
    return kernels, remarks


def find_tool(name):
    for folder in TOOLS:
        for found in sorted(folder.rglob(name)) if folder.is_dir() else []:
            if os.access(found, os.X_OK) and found.is_file():
                return str(found)
    return shutil.which(name)


def disassemble(objects, kernels):
    """Counts instructions of the kernels in these objects. False without a disassembler."""
    cuobjdump, nvdisasm = find_tool("cuobjdump"), find_tool("nvdisasm")
    if not cuobjdump or not nvdisasm:
        return False
    environment = {**os.environ, "PATH": f"{pathlib.Path(nvdisasm).parent}:{os.environ.get('PATH', '')}"}
    for path in objects:
        text = subprocess.run([cuobjdump, "-sass", str(path)], capture_output=True, text=True, check=True,
                              env=environment).stdout
        current = None
        for line in text.splitlines():
            if match := re.search(r"Function : (\w+)", line):
                current = kernels.get(match[1])
                if current:
                    current.hgmma = current.utmaldg = current.code = 0
            elif current and (match := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d+\s+)?(\w+)", line)):
                current.code = int(match[1], 16) + 16
                current.hgmma += match[2] == "HGMMA"
                current.utmaldg += match[2] == "UTMALDG"
    return True


def read_build(build):
    """All kernels of a build, sorted by name, and the remarks."""
    logs = sorted(pathlib.Path(build).rglob("*.cu.o.ptxas"))
    if not logs:
        sys.exit(f"kernel report: no *.cu.o.ptxas in {build}; build the library with RAPT_CUDA there")
    kernels, remarks = {}, []
    for log in logs:
        found, said = read_log(log.read_text(encoding="utf-8"))
        kernels.update(found)
        remarks += said
    if kernels:
        for kernel, name in zip(kernels.values(), demangle(kernels)):
            kernel.name = name
    disassembled = disassemble([log.with_suffix("") for log in logs], kernels)
    return sorted(kernels.values(), key=lambda kernel: kernel.name), remarks, disassembled


def multiplies(kernel):
    """Whether a kernel uses Hopper's tensor cores."""
    return kernel.name.startswith(("rows_kernel<", "run_wgmma<"))


def problems(kernels, remarks):
    """What is wrong with the kernels, regardless of the table."""
    found = [f"instructions are serialized: {remark}" for remark in remarks]
    for kernel in filter(multiplies, kernels):
        known = kernel.spill_stores <= KNOWN_SPILLS.get(kernel.name, 0)
        if not known or (kernel.name not in KNOWN_SPILLS and (kernel.stack or kernel.spill_loads)):
            found.append(f"{kernel.name} has a stack frame of {kernel.stack} bytes, spills {kernel.spill_stores} bytes "
                         f"and loads {kernel.spill_loads}")
        if kernel.hgmma == 0:
            found.append(f"{kernel.name} has no HGMMA")
    return found


def table_of(kernels):
    return HEAD + "\n".join(kernel.row() for kernel in kernels) + "\n"


def comparable(text, disassembled):
    """The rows of a table; without the columns of the disassembly if there is none. The size of code is not compared."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [tuple(row[:7] if disassembled else row[:5]) for row in rows]


def check(kernels, remarks, disassembled, table):
    found = problems(kernels, remarks)
    wanted, recorded = comparable(table_of(kernels), disassembled), comparable(table, disassembled)
    for row in recorded:
        if row not in wanted:
            found.append(f"{TABLE.name} says {' | '.join(row)}")
    for row in wanted:
        if row not in recorded:
            found.append(f"the build has {' | '.join(row)}")
    return found


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    kernels, remarks, disassembled = read_build(arguments[0])
    if "--check" in sys.argv:
        found = check(kernels, remarks, disassembled, TABLE.read_text(encoding="utf-8"))
        print("\n".join(found) if found else f"{len(kernels)} kernels are as {TABLE.name} says")
        if found:
            print("make cuda-report writes the table anew")
        return 1 if found else 0
    if not disassembled:
        sys.exit("kernel report: cuobjdump and nvdisasm were not found; make cuda-report installs them")
    TABLE.write_text(table_of(kernels), encoding="utf-8")
    print(f"{TABLE}: {len(kernels)} kernels")
    for problem in problems(kernels, remarks):
        print(problem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
