#!/usr/bin/env python3
"""The overhead of calling rapt.attention from Python: its time minus that of the same call in C++.

    bench/python/overhead.py [--rounds N]

The input is so small that the call itself takes about a microsecond. Python's call and a loop of C++ calls inside the
extension module, on the same arrays, alternate; the minimum over many rounds counts, because other load can only
increase the time. The C++ call writes to existing memory; Python's call allocates its result unless `out` is given.
"""

import argparse
import sys
import time

import numpy as np
import rapt
from rapt import _rapt
from rapt._options import Options

CALLS = 500  # in one round, which takes much less than a time slice of the scheduler


def python_seconds(call, calls=CALLS):
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def overhead(query, call, rounds, **options):
    """(Python's time, C++'s time) of one call, in seconds: the minimum over that many rounds."""
    out = np.empty_like(query)
    both = [[], []]
    for _ in range(rounds):
        both[0].append(python_seconds(call))
        both[1].append(_rapt.time_attention(query, query, query, Options(**options), out, CALLS) / CALLS)
    return min(both[0]), min(both[1])


def cases():
    """Name, query, the call from Python, and the options of the C++ call that it is compared with."""
    x = np.zeros((1, 1, 1, 16), np.float32)
    yield "NumPy", x, lambda: rapt.attention(x, x, x), {}
    out = np.empty_like(x)
    yield "NumPy, out given", x, lambda: rapt.attention(x, x, x, out=out), {}
    yield "NumPy, causal and scale", x, lambda: rapt.attention(x, x, x, causal=True, scale=0.5), dict(causal=True, scale=0.5)
    mask = rapt.Mask.keep(np.ones((1, 1), bool))
    yield "NumPy, a mask", x, lambda: rapt.attention(x, x, x, mask=mask), dict(mask=mask)
    if "ml_dtypes" in sys.modules or _has("ml_dtypes"):
        import ml_dtypes

        h = x.astype(ml_dtypes.bfloat16)
        yield "NumPy, bfloat16", h, lambda: rapt.attention(h, h, h), {}
    view = memoryview(x)
    yield "memoryview", x, lambda: rapt.attention(view, view, view), {}
    if _has("torch"):
        import torch

        t = torch.zeros(1, 1, 1, 16)
        yield "PyTorch", x, lambda: rapt.attention(t, t, t), {}


def _has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    print(f"{'':24} {'Python':>9} {'C++':>9} {'overhead':>9}")
    for name, query, call, options in cases():
        python, cpp = overhead(query, call, rounds, **options)
        print(f"{name:24} {python * 1e6:6.2f} µs {cpp * 1e6:6.2f} µs {(python - cpp) * 1e6:6.2f} µs")


if __name__ == "__main__":
    main()
