#!/usr/bin/env python3
"""Times rapt, PyTorch and ONNX Runtime alternately on the same cases, and writes the results as JSON.

    compare.py LIBRARY RESULT.json [--rounds N] [--quick] [--only GROUP]

In every round each contestant is timed once on every case of a group, in an order that changes from round to round.
Results are compared before the rounds begin.
"""

import argparse
import datetime
import gc
import itertools
import json
import os
import sys
import time

import numpy

import cases
import contestants
import layers
import training

MOST_ERROR = {"f32": 1e-5, "bf16": 1e-2, "f16": 2e-3}  # in 16 bits: one rounding, or two if weights are rounded too
SHORTEST_SAMPLE = 0.01  # seconds; a faster call is repeated within a sample
LONG_CALL = 0.05  # seconds; a shorter call first runs once untimed, to warm the caches and wake its threads
# Threads of PyTorch and ONNX Runtime keep spinning for a while after a call. After this pause they sleep, and take no
# time from the next measurement. Their settings are not changed.
SETTLE = 0.1
SHORTEST_GROUP = 10.0  # seconds; a group that finishes sooner gets more rounds than requested


def timed(run, repeats=1):
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


class Entry:
    """One contestant on one case with one number of threads."""

    def __init__(self, contestant, case, inputs, threads):
        self.contestant, self.case, self.threads = contestant, case, threads
        self.seconds = []
        self.way = None
        prepared = contestant.prepare(case, inputs, threads)
        if isinstance(prepared, dict):
            best = {}
            for way, run in prepared.items():
                tries = 1 if timed(run) > LONG_CALL else 3  # a long call varies little
                best[way] = min(timed(run) for _ in range(tries))
            self.way = min(best, key=best.get)
            self.run = prepared[self.way]
        else:
            self.run = prepared
        answers = []
        one = timed(lambda: answers.append(self.run()))
        self.answer = contestant.array(answers[0])
        self.short = one < LONG_CALL
        if self.short:  # timed again with warm caches
            one = timed(self.run)
        self.repeats = max(1, round(SHORTEST_SAMPLE / one + 0.5)) if one < SHORTEST_SAMPLE else 1

    def sample(self):
        if self.short:
            self.run()
        self.seconds.append(timed(self.run, self.repeats))

    def settle(self):
        if self.threads > 1 and self.contestant.name != "rapt":
            time.sleep(SETTLE)


def require_agreement(entries):
    ours = next(entry for entry in entries if entry.contestant.name == "rapt")
    for entry in entries:
        if getattr(entry.case, "dropout", 0.0):  # each contestant drops different weights
            continue
        error = float(numpy.linalg.norm(entry.answer - ours.answer) / numpy.linalg.norm(ours.answer))
        if not error <= MOST_ERROR[entry.case.dtype]:
            sys.exit(f"compare: {entry.case.name}: {entry.contestant.name} and rapt differ by {error:.1e}")


def show_progress(now):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{now}", end="", file=sys.stderr, flush=True)


def run_group(group, everyone, rounds, cores, quick):
    entries = []
    for case in group.cases:
        inputs = case.inputs()
        of_case = [
            Entry(contestant, case, inputs, threads)
            for threads in group.threads if threads <= cores
            for contestant in everyone
            if type(case) is contestant.takes and contestant.name in ("rapt", *group.peers)
        ]
        require_agreement(of_case)
        for entry in of_case:
            entry.answer = None
            entry.settle()
        entries += of_case
    began = time.perf_counter()
    for turn in itertools.count():
        if turn >= rounds and (quick or time.perf_counter() - began > SHORTEST_GROUP):
            break
        first = turn * 5 % len(entries)
        for entry in itertools.chain(entries[first:], entries[:first]):
            entry.sample()
            entry.settle()
        show_progress(f"round {turn + 1} of {rounds} or more")
    show_progress("")
    return entries


def as_data(group, entries):
    return {
        "about": group.about,
        "cases": [case.name for case in group.cases],
        "entries": [
            {
                "case": entry.case.name,
                "length": entry.case.length,
                "dim": entry.case.dim,
                "dtype": entry.case.dtype,
                "causal": entry.case.causal,
                "contestant": entry.contestant.name,
                "way": entry.way,
                "threads": entry.threads,
                "flops": entry.case.flops,
                "bytes": entry.case.bytes,
                "ms": [1e3 * each for each in entry.seconds],
            }
            for entry in entries
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("result")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="small cases, to try the scripts")
    parser.add_argument("--only", help="time only the groups whose name begins with ONLY")
    arguments = parser.parse_args()

    cores = len(os.sched_getaffinity(0))
    ours = contestants.Rapt(arguments.library)
    peers = [contestants.PyTorch(), contestants.OnnxRuntime()]
    everyone = [ours, *peers, contestants.PyTorchFolded(), layers.RaptLayer(arguments.library), layers.PyTorchLayer(),
                layers.PyTorchSdpaClass(), layers.PyTorchPlainClass(), training.RaptBackward(arguments.library),
                training.PyTorchBackward(), training.RaptTraining(arguments.library), training.PyTorchTraining(),
                training.PyTorchSdpaTraining()]
    data = {
        "date": datetime.date.today().isoformat(),
        "cores": cores,
        "isa": ours.instruction_set,
        "versions": {each.name: each.version for each in peers},
        "groups": [],
    }
    for group in cases.groups(arguments.quick):
        if arguments.only and not group.about.startswith(arguments.only):
            continue
        print("; ".join(case.name for case in group.cases), file=sys.stderr)
        entries = run_group(group, everyone, min(arguments.rounds, group.most_rounds), cores, arguments.quick)
        data["groups"].append(as_data(group, entries))
        for entry in entries:
            print(f"  {entry.case.name:34} t{entry.threads} {entry.contestant.name:22}"
                  f"{1e3 * min(entry.seconds):10.3f} ms", file=sys.stderr)
        del entries
        gc.collect()
    with open(arguments.result, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)


if __name__ == "__main__":
    main()
