"""The overhead of a call relative to C++, and scaling with Python's threads."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import rapt
from conftest import ROOT
from rapt import _rapt
from rapt._options import Options

sys.path.insert(0, str(ROOT / "bench/python"))
import overhead  # noqa: E402

FLOOR = 10e-6  # seconds; the aim is 4e-6


@pytest.mark.parametrize("case", list(overhead.cases()), ids=lambda case: case[0])
def test_a_tiny_call_costs_little_more_than_in_cpp(case):
    _, query, call, options = case
    for _ in range(5):  # another process may be using the machine
        python, cpp = overhead.overhead(query, call, 40, **options)
        if python - cpp < FLOOR:
            break
    assert python - cpp < FLOOR


def seconds(work, threads, calls):
    """The time for that many calls, divided among threads."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))  # threads start
        began = time.perf_counter()
        list(pool.map(work, range(calls)))
        return time.perf_counter() - began


def test_eight_threads_are_as_fast_as_the_librarys_own_loop():
    """Each of eight threads makes single-threaded calls, from Python, and in a C++ loop without Python."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((1, 2, 128, 32), np.float32) for _ in range(3))
    outs = [np.empty_like(q) for _ in range(80)]
    options = Options(threads=1)

    def from_python(n):
        for _ in range(10):
            rapt.attention(q, k, v, threads=1, out=outs[n])

    def in_cpp(n):
        _rapt.time_attention(q, k, v, options, outs[n], 10)

    ratios = []
    for _ in range(10):
        ratios.append(seconds(from_python, 8, 80) / seconds(in_cpp, 8, 80))
        if min(ratios) < 1.1:
            break
    assert min(ratios) < 1.1, ratios
