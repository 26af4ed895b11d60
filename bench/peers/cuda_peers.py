#!/usr/bin/env python3
"""Times rapt on a GPU, PyTorch's attention (cuDNN, flash and Flex) and an 8192³ product, alternating in one process.

    cuda_peers.py time LIB [--rounds N] [--only REGEX] [--json FILE] [--one-chunk LIB]
    cuda_peers.py calls LIB ORDER [--only REGEX]        runs each call once, for ncu, and writes their order to ORDER
    cuda_peers.py behave LIB                            checks graphs, refusals, and a call after a CUDA error
    cuda_peers.py table [--times FILE] [--cycles NCU.csv --order ORDER] [--page FILE]

LIB is librapt_gpu_api.so. `time` first checks every answer against f64 (except with dropout), then measures medians of
alternating rounds. Goals are judged by cycles where these were measured: cycles repeat within 1 %, whereas the clock of
a card at its power limit varies.

    ncu --clock-control none --cache-control none --metrics sm__cycles_elapsed.max --csv --log-file ncu.csv \\
        python3 cuda_peers.py calls LIB order.json
"""

import argparse
import csv
import ctypes
import json
import random
import re
import statistics
import sys
import time

TOKENS = 16384
WIDTH = 2048  # heads × head size
SEPARATOR = "spin_kernel"  # the kernel of torch.cuda._sleep, which separates two calls

# A goal compares two contestants, of the same cell or of two cells, and has a floor and a target. It compares speeds:
# for "a over b", the time of b is divided by the time of a. Only a goal of kind "part" compares times: the time of a is
# divided by the time of b.
CELLS = []


class Cell:
    """A call of attention, and the contestants that compute it."""

    def __init__(self, name, peers, n=4096, d=128, dtype="bfloat16", causal=False, **more):
        self.name, self.peers, self.n, self.d, self.dtype, self.causal = name, peers, n, d, dtype, causal
        self.batch, self.heads = TOKENS // n, WIDTH // d
        self.spread, self.mask, self.window, self.dropout, self.lengths = 1.0, None, None, 0.0, None
        self.__dict__.update(more)

    def pairs(self):
        """Visible (query, key) pairs of all heads, ignoring masks."""
        lengths = self.lengths or [self.n] * self.batch
        if self.window:
            w = self.window
            each = [sum(min(i + 1, w + 1) for i in range(n)) for n in lengths]
        else:
            each = [n * (n + 1) / 2 if self.causal else n * n for n in lengths]
        return self.heads * sum(each)

    def flops(self):
        return 4 * self.d * self.pairs()


def cell(*given, **named):
    CELLS.append(Cell(*given, **named))
    return CELLS[-1].name


# (row of the table, "cell/contestant", the one that it is compared with, floor, target, "ratio", "rate" or "part")
GOALS = []


def goal(row, ours, beside, floor, target, kind="ratio"):
    GOALS.append((row, ours, beside, floor, target, kind))


def over_cudnn(d, causal, floors, targets, **more):
    for n, floor, target in zip((16384, 4096, 512), floors, targets):
        name = f"d{d} {'causal' if causal else 'full'} n{n}"
        cell(name, ["cudnn", "flash"], n=n, d=d, causal=causal, **more)
        goal(f"{name}, over cuDNN", f"{name}/rapt", f"{name}/cudnn", floor, target)


over_cudnn(128, False, (1.03, 1.03, 1.00), (1.10, 1.12, 1.08))
over_cudnn(128, True, (1.12, 1.12, 0.95), (1.22, 1.24, 1.05))
over_cudnn(64, False, (0.95, 0.95, 0.85), (1.10, 1.10, 1.05))
over_cudnn(64, True, (0.95, 0.95, 0.85), (1.15, 1.15, 1.05))
over_cudnn(256, False, (0.85, 0.85, 0.80), (1.03, 1.03, 1.0))
over_cudnn(256, True, (0.88, 0.88, 0.80), (1.08, 1.08, 1.0))
FULL = "d128 full n4096"
cell("f16", ["cudnn"], dtype="float16")
goal("f16 over bf16", "f16/rapt", f"{FULL}/rapt", 0.95, 1.0)
cell("q times 10", ["cudnn"], spread=10.0)
goal("inputs whose row maximum keeps growing (q times 10), over cuDNN", "q times 10/rapt", "q times 10/cudnn", 0.75, 0.95)
cell("float mask", ["cudnn"], mask="float")
goal("float mask (4, 1, 4096, 4096), over cuDNN", "float mask/rapt", "float mask/cudnn", 1.3, 1.6)
cell("bool mask", [], mask="bool")
goal("bool mask, 30 % hidden, relative to rapt without a mask", "bool mask/rapt", f"{FULL}/rapt", 0.65, 0.80)
cell("diagonal blocks", [], mask="blocks")
goal("bool mask of 8 diagonal blocks, time relative to no mask", "diagonal blocks/rapt", f"{FULL}/rapt", 0.20, 0.155, "part")
cell("window", ["flex"], window=1024, causal=True)
goal("window 1024, causal, over Flex", "window/rapt", "window/flex", 1.4, 1.85)
cell("dropout", ["cudnn", "flash"], dropout=0.1)
goal("dropout 0.1, relative to rapt without dropout", "dropout/rapt", f"{FULL}/rapt", 0.40, 0.60)
goal("dropout 0.1, over PyTorch's fastest backend", "dropout/rapt", "dropout/best", 1.0, 1.2)
LENGTHS = [4096, 512, 2048, 1024, 3072, 1536, 2560, 1536]
assert sum(LENGTHS) == TOKENS
EVEN = 2688  # equal lengths with about as much work per key: Σ n² / Σ n, rounded up to tiles of 128
cell("packed", [], lengths=LENGTHS)
cell("even", [], lengths=[EVEN] * (TOKENS // EVEN))
goal("packed lengths 512 to 4096, relative to equal lengths with as much work", "packed/rapt", "even/rapt", 0.85, 0.95, "rate")


# ---------------------------------------------------------------- rapt


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4),
        ("type", ctypes.c_int32),
    ]


class Call(ctypes.Structure):
    _fields_ = [
        *((name, Tensor) for name in ("query", "key", "value", "out", "mask")),
        ("lse", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("starts", ctypes.POINTER(ctypes.c_int64)),
        ("starts_count", ctypes.c_int64),
        ("window_left", ctypes.c_int64),
        ("window_right", ctypes.c_int64),
        ("dropout", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("causal", ctypes.c_int32),
        ("device", ctypes.c_int32),
    ]


def library(path):
    lib = ctypes.CDLL(path)
    for function in (lib.rapt_gpu_attention, lib.rapt_gpu_workspace_bytes, lib.rapt_gpu_unavailable):
        function.restype = ctypes.c_char_p
    reason = lib.rapt_gpu_unavailable().decode()
    if reason:
        sys.exit(f"cuda_peers: {reason}")
    return lib


def lent(tensor):
    import torch

    types = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.bool: 3}
    return Tensor(
        tensor.data_ptr(), (ctypes.c_int64 * 4)(*tensor.shape), (ctypes.c_int64 * 4)(*tensor.stride()), types[tensor.dtype]
    )


def checked(message):
    if message is not None:
        raise RuntimeError(message.decode())


class Rapt:
    """A prepared call of rapt, which runs as one C call."""

    def __init__(self, lib, cell, q, k, v, mask):
        import torch

        self.lib, self.kept = lib, [q, k, v, mask]
        self.out = torch.empty_like(q)
        call = self.call = Call(lent(q), lent(k), lent(v), lent(self.out), window_left=-1, window_right=-1)
        if mask is not None:
            call.mask = lent(mask)
        if cell.window is not None:
            call.window_left, call.window_right = cell.window, 0
        if cell.lengths is not None:
            starts = [sum(cell.lengths[:n]) for n in range(len(cell.lengths) + 1)]
            self.starts = (ctypes.c_int64 * len(starts))(*starts)
            call.starts, call.starts_count = self.starts, len(starts)
        call.causal, call.dropout, call.seed = int(cell.causal), cell.dropout, 7
        call.stream = torch.cuda.current_stream().cuda_stream
        needed = ctypes.c_size_t()
        checked(lib.rapt_gpu_workspace_bytes(ctypes.byref(call), ctypes.byref(needed)))
        self.workspace = torch.empty(max(1, needed.value), dtype=torch.uint8, device="cuda")
        call.workspace, call.workspace_bytes = self.workspace.data_ptr(), needed.value
        self.given = ctypes.byref(call)

    def __call__(self):
        message = self.lib.rapt_gpu_attention(self.given)
        if message is not None:
            checked(message)
        return self.out


# ---------------------------------------------------------------- inputs, peers, the truth


def inputs(cell):
    import torch

    torch.manual_seed(1)
    dtype = getattr(torch, cell.dtype)
    if cell.lengths is not None:
        shape = (1, cell.heads, sum(cell.lengths), cell.d)
    else:
        shape = (cell.batch, cell.heads, cell.n, cell.d)
    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))
    q = q * cell.spread
    mask = None
    if cell.mask == "float":
        mask = torch.randn(cell.batch, 1, cell.n, cell.n, device="cuda", dtype=dtype)
    elif cell.mask == "bool":
        mask = torch.rand(cell.batch, 1, cell.n, cell.n, device="cuda") >= 0.3
    elif cell.mask == "blocks":
        block = torch.arange(cell.n, device="cuda") // (cell.n // 8)
        mask = (block[:, None] == block[None, :])[None, None]
    return q, k, v, mask


def peer(name, cell, q, k, v, mask):
    """A function that calls one backend of PyTorch. It raises an error if the backend does not support the call."""
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if name == "flex":
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        window = cell.window

        def visible(b, h, i, j):
            return (j <= i) & (j >= i - window)

        blocks = create_block_mask(visible, None, None, cell.n, cell.n, device="cuda")
        compiled = torch.compile(flex_attention)
        return lambda: compiled(q, k, v, block_mask=blocks)
    backend = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[name]

    def run():
        with sdpa_kernel([backend]):
            return F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=cell.dropout, is_causal=cell.causal
            )

    return run


def truth(cell, q, k, v, mask, b, h):
    """The output of one head in f64, computed 2048 queries at a time."""
    import torch

    q, k, v = (x[b, h].double() for x in (q, k, v))
    n = k.shape[0]
    keys = torch.arange(n, device="cuda")
    starts = None
    if cell.lengths is not None:
        starts = torch.repeat_interleave(
            torch.arange(len(cell.lengths), device="cuda"), torch.tensor(cell.lengths, device="cuda")
        )
    parts = []
    for first in range(0, n, 2048):
        rows = torch.arange(first, min(first + 2048, n), device="cuda")
        s = q[rows] @ k.T * cell.d**-0.5
        if cell.causal or cell.window:
            s = s.masked_fill(keys[None] > rows[:, None], float("-inf"))
        if cell.window:
            s = s.masked_fill(keys[None] < rows[:, None] - cell.window, float("-inf"))
        if starts is not None:
            s = s.masked_fill(starts[None] != starts[rows][:, None], float("-inf"))
        if mask is not None:
            m = mask[min(b, mask.shape[0] - 1), 0, rows]
            s = s.masked_fill(~m, float("-inf")) if m.dtype == torch.bool else s + m.double()
        parts.append(s.softmax(-1) @ v)
    return torch.cat(parts)


def contestants(cell, libs):
    """The contestants as functions by name, the reasons why others are missing, and the inputs."""
    import torch

    q, k, v, mask = inputs(cell)
    runs, missing = {}, {}
    for name, lib in libs.items():
        runs[name] = Rapt(lib, cell, q, k, v, mask)
    for name in cell.peers:
        try:
            run = peer(name, cell, q, k, v, mask)
            run()
            torch.cuda.synchronize()
            runs[name] = run
        except Exception as error:  # each backend has its own error for an unsupported call
            missing[name] = str(error).splitlines()[0][:120]
    return runs, missing, (q, k, v, mask)


def errors(cell, runs, tensors):
    """The relative error of each contestant, the larger one of two heads. Empty with dropout, where results differ."""
    if cell.dropout:
        return {}
    found = {}
    for b, h in ((0, 0), (tensors[0].shape[0] - 1, cell.heads - 1)):
        right = truth(cell, *tensors, b, h)
        for name, run in runs.items():
            got = run()[b, h].double()
            found[name] = max(found.get(name, 0.0), float((got - right).norm() / right.norm()))
    return found


# ---------------------------------------------------------------- what is measured


def milliseconds(runs, rounds, sample=0.03):
    """The samples of each contestant. Every round takes one sample of each, in a random order."""
    import torch

    repeats = {}
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        repeats[name] = max(1, round(sample / ((time.perf_counter() - began) / 3)))
    events = {name: [] for name in runs}
    for _ in range(rounds):
        names = list(runs)
        random.shuffle(names)
        for name in names:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            runs[name]()
            begin.record()
            for _ in range(repeats[name]):
                runs[name]()
            end.record()
            events[name].append((begin, end))
    torch.cuda.synchronize()
    return {name: [b.elapsed_time(e) / repeats[name] for b, e in each] for name, each in events.items()}


def host_microseconds(lib):
    """The time that the host needs to enqueue a small call, without waiting for the device."""
    import torch

    small = Cell("small", [], n=128, d=128, batch=1, heads=1)
    run = Rapt(lib, small, *inputs(small))
    samples = []
    for _ in range(20):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(200):
            run()
        samples.append((time.perf_counter() - began) / 200)
    torch.cuda.synchronize()
    return 1e6 * statistics.median(samples)


def chosen(only):
    return [each for each in CELLS if re.search(only, each.name)]


def run_time(args):
    import torch

    libs = {"rapt": library(args.lib)}
    if args.one_chunk:
        libs["one chunk"] = library(args.one_chunk)
    result = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "rounds": args.rounds,
        "cells": {},
    }
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    good = True
    for each in chosen(args.only):
        runs, missing, tensors = contestants(each, libs)
        wrong = errors(each, runs, tensors)
        peers = [wrong[name] for name in each.peers if name in wrong]
        limit = 1.1 * min(peers) if peers else {"bfloat16": 4e-3, "float16": 5e-4}[each.dtype]
        if wrong.get("rapt", 0.0) > max(limit, 1e-4):
            good = False
            print(f"{each.name}: rapt's error {wrong['rapt']:.2e} exceeds {limit:.2e}", flush=True)
        times = milliseconds({**runs, "gemm": lambda: torch.mm(a, b, out=c)}, args.rounds)
        medians = {name: statistics.median(samples) for name, samples in times.items()}
        result["cells"][each.name] = {"ms": medians, "flops": each.flops(), "error": wrong, "missing": missing}
        rates = {name: each.flops() / ms / 1e9 for name, ms in medians.items() if name != "gemm"}
        rates["gemm"] = 2 * 8192**3 / medians["gemm"] / 1e9
        line = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
        line += "".join(f"; no {name}: {why}" for name, why in missing.items())
        line += "; error " + ", ".join(f"{name} {value:.2e}" for name, value in wrong.items())
        print(f"{each.name}: TFLOP/s {line}", flush=True)
        del runs, tensors
    result["host_us"] = host_microseconds(libs["rapt"])
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    print()
    print(table(result, None))
    return 0 if good else 1


def run_calls(args):
    """Runs every call once, each after a separator kernel, for ncu to profile."""
    import torch

    libs = {"rapt": library(args.lib)}
    order = []
    for each in chosen(args.only):
        runs, _, tensors = contestants(each, libs)
        for name, run in runs.items():
            torch.cuda.synchronize()
            order.append(f"{each.name}/{name}")
            torch.cuda._sleep(1)
            run()
        torch.cuda._sleep(1)
        order.append("")  # stands for the kernels that prepare the next cell
        del runs, tensors
    torch.cuda.synchronize()
    with open(args.order, "w", encoding="utf-8") as file:
        json.dump(order, file)
    return 0


def cycles_of(path, order):
    """The cycles of each call: the sum over its kernels."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(line for line in file if line.startswith('"')))
    head = rows[0]
    columns = {name: head.index(name) for name in ("ID", "Kernel Name", "Metric Name", "Metric Value")}
    found, place = {}, -1
    for row in rows[1:]:
        if row[columns["Metric Name"]] != "sm__cycles_elapsed.max":
            continue
        if SEPARATOR in row[columns["Kernel Name"]]:
            place += 1
        elif 0 <= place < len(order) and order[place]:
            found[order[place]] = found.get(order[place], 0.0) + float(row[columns["Metric Value"]].replace(",", ""))
    if place + 1 != len(order):
        sys.exit(f"cuda_peers: {path} has {place + 1} separators, {len(order)} were launched")
    return found


# ---------------------------------------------------------------- behaviour


def refusal(run):
    try:
        run()
        return ""
    except RuntimeError as error:
        return str(error)


def captured(run):
    """Captures a call in a CUDA graph, and returns the graph."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run.call.stream = torch.cuda.current_stream().cuda_stream
        run()
    run.call.stream = torch.cuda.current_stream().cuda_stream
    return graph


def run_behave(args):
    """Checks that need another user of CUDA in the process."""
    import torch

    lib = library(args.lib)
    failures = []

    def check(what, good, found=""):
        print(f"{'ok  ' if good else 'FAIL'} {what}{': ' + str(found) if found and not good else ''}", flush=True)
        if not good:
            failures.append(what)

    for cell in (
        Cell("causal", [], n=1024, batch=2, causal=True),
        Cell("packed", [], lengths=[100, 700, 224] * 40),  # a list too long for the arguments of a kernel
        Cell("dropout", [], n=512, batch=2, dropout=0.1),
    ):
        run = Rapt(lib, cell, *inputs(cell))
        wanted = run().clone()
        torch.cuda.synchronize()
        graph = captured(run)
        for _ in range(3):
            run.out.fill_(float("nan"))
            graph.replay()
        torch.cuda.synchronize()
        check(f"{cell.name}: a captured call replays with the same bits", torch.equal(run.out, wanted))
        run.call.workspace, run.call.workspace_bytes = None, 0
        run.out.fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        check(f"{cell.name}: without a workspace of the caller, the same bits", torch.equal(run.out, wanted))

    cell = Cell("refused", [], n=1024, batch=1)
    good = Rapt(lib, cell, *inputs(cell))
    bad = Rapt(lib, cell, *inputs(cell))
    wanted = good().clone()
    host = torch.zeros(good.out.shape, dtype=torch.bfloat16)
    bad.call.query.data = host.data_ptr()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        bad.call.stream = good.call.stream = torch.cuda.current_stream().cuda_stream
        words = refusal(bad)
        good()
    check("host memory is refused with a reason", "it is in host memory" in words, words)
    good.out.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    check("a refusal while capturing leaves the capture whole", torch.equal(good.out, wanted))
    if torch.cuda.device_count() > 1:
        bad.call.query.data = torch.zeros(good.out.shape, dtype=torch.bfloat16, device="cuda:1").data_ptr()
        words = refusal(bad)
        check("memory of another GPU is refused with a reason", "its memory is on cuda:1" in words, words)

    # This comes last, because a failed assertion on the device ends the use of CUDA in this process.
    good.call.stream = torch.cuda.current_stream().cuda_stream
    torch.zeros(4, device="cuda")[torch.full((1,), 1000, device="cuda")]
    time.sleep(1)
    words = refusal(good)
    check("an earlier error is said to be one", "work of an earlier call failed" in words, words)
    return 1 if failures else 0


# ---------------------------------------------------------------- the table


def table(times, cycles):
    """A row for each goal: the ratio in cycles and in time, the floor, the target and the verdict."""
    measured = [("cycles", cycles or {})]
    if times:
        flat = {f"{name}/{who}": ms for name, each in times["cells"].items() for who, ms in each["ms"].items()}
        measured.append(("time", flat))

    def ratio(costs, ours, beside, kind):
        name, who = beside.split("/")
        if who == "best":
            peers = [cost for key, cost in costs.items() if key.startswith(name + "/") and not key.endswith(("rapt", "gemm"))]
            other = min(peers, default=None)
        else:
            other = costs.get(beside)
        mine = costs.get(ours)
        if mine is None or other is None:
            return None
        if kind == "part":
            return mine / other
        if kind == "rate":  # per unit of work
            work = {each.name: each.flops() for each in CELLS}
            return (other / work[name]) / (mine / work[ours.split("/")[0]])
        return other / mine

    lines = ["| | " + " | ".join(kind for kind, _ in measured) + " | floor | target | |", "|---|" + "---:|" * (len(measured) + 2) + "---|"]

    def add(row, values, floor, target, smaller):
        decisive = next((value for value in values if value is not None), None)
        if decisive is None:
            verdict = "not measured"
        else:
            reaches = (lambda bar: decisive <= bar) if smaller else (lambda bar: decisive >= bar)
            verdict = "target" if reaches(target) else "floor" if reaches(floor) else "missed"
        shown = " | ".join("–" if value is None else f"{value:.3f}" for value in values)
        lines.append(f"| {row} | {shown} | {floor} | {target} | {verdict} |")

    for row, ours, beside, floor, target, kind in GOALS:
        add(row, [ratio(costs, ours, beside, kind) for _, costs in measured], floor, target, kind == "part")
    full = times["cells"].get(FULL, {"ms": {}})["ms"] if times else {}
    if "one chunk" in full:
        price = full["rapt"] / full["one chunk"]
        add("price of the bits: time over one chunk for all keys", [None] * (len(measured) - 1) + [price], 1.09, 1.06, True)
    if times and "host_us" in times:
        add("host time of a call, µs", [None] * (len(measured) - 1) + [times["host_us"]], 12, 6, True)
    return "\n".join(lines)


def run_table(args):
    times = cycles = None
    if args.times:
        with open(args.times, encoding="utf-8") as file:
            times = json.load(file)
    if args.cycles:
        with open(args.order, encoding="utf-8") as file:
            cycles = cycles_of(args.cycles, json.load(file))
    text = table(times, cycles)
    if args.page:
        with open(args.page, "w", encoding="utf-8") as file:
            file.write(page(times, text))
    print(text)
    return 0


def page(times, text):
    lines = ["# Attention on a GPU, compared with PyTorch", ""]
    if times:
        lines += [
            f"{times['gpu']}, PyTorch {times['torch']}, cuDNN {times['cudnn']}. The numbers are medians of {times['rounds']} alternating rounds on",
            "random data, all in one process. Every result except those with dropout was checked before it was timed. In a row",
            "“a over b” or “a relative to b”, the columns *cycles* and *time* give the speed of a divided by the speed of b; a is",
            "rapt if it is not named. Above 1, a is faster. Two rows give a cost instead, of which less is better: the mask of",
            "diagonal blocks, and the host time. Each case has a target and a floor; a case that does not reach its floor is",
            "*missed*. Cases are judged by cycles where they were measured, because time varies by up to 20 %: the GPU lowers its",
            "clock at the power limit.",
            "",
        ]
    lines += [text, ""]
    if times:
        lines += [
            "Sustained TFLOP/s of useful work, which is the work for keys that the causal mask and the window leave visible. Rows",
            "without sizes are d128 n4096, except *packed*, and *even*, the equal lengths that *packed* is compared with.",
            "",
        ]
        lines += ["| | rapt | cuDNN | flash | Flex | gemm 8192³ |", "|---|---:|---:|---:|---:|---:|"]
        for name, each in times["cells"].items():
            rate = {who: each["flops"] / ms / 1e9 for who, ms in each["ms"].items()}
            rate["gemm"] = 2 * 8192**3 / each["ms"]["gemm"] / 1e9
            shown = " | ".join(f"{rate[who]:.0f}" if who in rate else "–" for who in ("rapt", "cudnn", "flash", "flex", "gemm"))
            lines.append(f"| {name} | {shown} |")
        lines += ["", "bench/peers/cuda_peers.py takes these measurements and writes this page.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    timed = commands.add_parser("time")
    timed.add_argument("lib")
    timed.add_argument("--rounds", type=int, default=11)
    timed.add_argument("--only", default="")
    timed.add_argument("--json")
    timed.add_argument("--one-chunk")
    timed.set_defaults(run=run_time)
    calls = commands.add_parser("calls")
    calls.add_argument("lib")
    calls.add_argument("order")
    calls.add_argument("--only", default="")
    calls.set_defaults(run=run_calls)
    behaves = commands.add_parser("behave")
    behaves.add_argument("lib")
    behaves.set_defaults(run=run_behave)
    shown = commands.add_parser("table")
    shown.add_argument("--times")
    shown.add_argument("--cycles")
    shown.add_argument("--order")
    shown.add_argument("--page")
    shown.set_defaults(run=run_table)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
