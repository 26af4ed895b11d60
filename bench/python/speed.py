#!/usr/bin/env python3
"""Whether rapt.attention is as fast from Python as it is in C++.

    bench/python/speed.py [--rounds N] [--cpu]

Python's call and the same call inside the extension module, on the same arrays, alternate; the minimum time of each
counts. A ratio of 1.00 means that Python adds no overhead. With --cpu, the CPU time of calls in one thread counts, for
a machine with other load.
"""

import argparse
import time

import numpy as np
import rapt
from rapt import _rapt
from rapt._options import Options

# Name, (B, H, Lq, D), Lk, options.
CASES = [
    ("prefill", (2, 12, 1024, 64), 1024, {}),
    ("prefill, causal", (2, 12, 1024, 64), 1024, {"causal": True}),
    ("decode, 8192 keys", (1, 16, 1, 128), 8192, {}),
    ("decode, batch of 8", (8, 16, 1, 128), 1024, {}),
]


def compare(shape, keys, options, rounds, clock):
    """(Python's time, C++'s time) of one call, in seconds."""
    rng = np.random.default_rng(1)
    query = rng.standard_normal(shape, np.float32)
    key, value = (rng.standard_normal((*shape[:2], keys, shape[3]), np.float32) for _ in range(2))
    out = np.empty_like(query)
    both = [[], []]
    tuple_of_options = Options(**options)
    for _ in range(rounds):
        began = clock()
        rapt.attention(query, key, value, out=out, **options)
        between = clock()
        _rapt.time_attention(query, key, value, tuple_of_options, out, 1)
        both[0].append(between - began)
        both[1].append(clock() - between)
    return min(both[0]), min(both[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    clock, options = (time.thread_time, {"threads": 1}) if given.cpu else (time.perf_counter, {})
    print(f"{'':20} {'Python':>10} {'C++':>10} {'ratio':>6}")
    for name, shape, keys, wanted in CASES:
        python, cpp = compare(shape, keys, wanted | options, given.rounds, clock)
        print(f"{name:20} {python * 1e3:7.3f} ms {cpp * 1e3:7.3f} ms {python / cpp:6.3f}")


if __name__ == "__main__":
    main()
