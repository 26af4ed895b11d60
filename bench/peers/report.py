#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the two results of a run.

    report.py OWN.json PEERS.json PAGE.md

OWN.json is what `rapt bench attention --baseline --json` printed, PEERS.json what compare.py wrote.
"""

import json
import statistics
import sys

import goals

PAGE = """# Benchmarks

Written by `make bench` on {date}. Numbers belong to the machine they were measured on: run it on yours.

| | |
|---|---|
| CPU | {cpu}, {cores} cores |
| rapt | {version}, {isa} kernels |
| sgemm | {sgemm} |
{peers}

All in f32, forward. GFLOP/s count useful work: 4·D operations for every (query, key) pair that causal and window leave
visible, so causal counts half. Whatever is compared took turns in one run, every answer was checked before it was timed,
and every ratio is the median of ratios within a round: {own_rounds} rounds for the first table, {peer_rounds} for the
others.

## Over the matrix product

How near attention comes to a plain sgemm of 2048³ on the same threads, and to the machine's FMA peak.

{own}

{baseline}

## Over PyTorch and ONNX Runtime

PyTorch through `scaled_dot_product_attention`, ONNX Runtime through the faster of its `Attention` and
`MultiHeadAttention` operators, each in its own default settings. rapt and ONNX Runtime write to memory they are given;
PyTorch returns new memory, as its call does. Above 1, rapt is faster.

{peer_table}

A window is a bool mask to `scaled_dot_product_attention`, which takes no window.

## Masks, window, threads

{own_ratios}

## Against our goals

The worst of the cases that each line speaks of.

{goal_table}
"""


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratio(value):
    return "–" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def threads_word(count):
    return "1 thread" if count == 1 else f"{count} threads"


def own_table(own):
    threads = sorted({case["threads"] for case in own["cases"]})
    header = ["case"]
    for count in threads:
        header += [f"{threads_word(count)}, GFLOP/s", "over sgemm", "over FMA peak"]
    rows = {}
    for case in own["cases"]:
        name = case["name"].removesuffix(f" t{case['threads']}")
        rows.setdefault(name, [name]).extend(
            [f"{case['gflops']:.0f}", ratio(case["over_sgemm"]), ratio(case["over_fma"])])
    return table(header, rows.values())


def baseline_table(own):
    rows = []
    for each in own["baselines"]:
        sgemm = "none found" if each["sgemm_gflops"] is None else f"{each['sgemm_gflops']:.0f} ({each['sgemm_library']})"
        rows.append([threads_word(each["threads"]), sgemm, f"{each['fma_gflops']:.0f}", f"{each['stream_gbps']:.1f}"])
    return table(["the machine itself", "sgemm, GFLOP/s", "FMA peak, GFLOP/s", "memory stream, GB/s"], rows)


def peer_table(peers):
    names = list(peers["versions"])
    header = ["case", "threads", "rapt, ms"]
    for name in names:
        header += [f"{name}, ms", "rapt is faster by"]
    rows, seen = [], set()
    for group, ours in goals.entries_of(peers, contestant="rapt"):
        if (ours["case"], ours["threads"]) in seen:  # the plain case of a group that is there for its masks
            continue
        seen.add((ours["case"], ours["threads"]))
        row = [ours["case"], str(ours["threads"]), f"{statistics.median(ours['ms']):.2f}"]
        for name in names:
            other = goals.twin_of(group, ours, contestant=name)
            row += ["–", "–"] if other is None else [f"{statistics.median(other['ms']):.2f}",
                                                    ratio(goals.paired(other, ours))]
        rows.append(row)
    return table(header, rows)


def own_ratios(peers):
    rows = []
    for group, ours in goals.entries_of(peers, contestant="rapt"):
        first = goals.twin_of(group, ours, case=group["cases"][0])
        second = goals.twin_of(group, ours, threads=2)
        if "mask" in ours["case"] or "window" in ours["case"]:
            rows.append([ours["case"], "time over the same without", ratio(goals.paired(ours, first))])
        elif ours["threads"] == 1 and second:
            rows.append([ours["case"], "rate of 2 threads over 1", ratio(goals.paired(ours, second))])
    return table(["case", "", "ratio"], [[case, what, value] for case, what, value in rows])


def goal_table(own, peers):
    rows = []
    for what, floor, target, found, more in goals.goals(own, peers):
        verdict = "–"
        if found is not None:
            reached = (lambda mark: found >= mark) if more else (lambda mark: found <= mark)
            verdict = "target" if reached(target) else "floor" if reached(floor) else "**missed**"
        sign = "≥" if more else "≤"
        rows.append([what, f"{sign} {floor:.2f}", f"{sign} {target:.2f}", ratio(found), verdict])
    return table(["", "floor", "target", "measured", "reached"], rows)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        own = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        peers = json.load(file)
    libraries = sorted({each["sgemm_library"] or "none found" for each in own["baselines"]})
    page = PAGE.format(
        date=peers["date"],
        cpu=own["machine"]["cpu"],
        cores=own["machine"]["cores"],
        version=own["machine"]["version"],
        isa=own["machine"]["isa"],
        sgemm=", ".join(libraries),
        peers="\n".join(f"| {name} | {version} |" for name, version in peers["versions"].items()),
        own_rounds=own["cases"][0]["rounds"],
        peer_rounds=peers["rounds"],
        own=own_table(own),
        baseline=baseline_table(own),
        peer_table=peer_table(peers),
        own_ratios=own_ratios(peers),
        goal_table=goal_table(own, peers),
    )
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
