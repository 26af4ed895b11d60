#!/usr/bin/env python3
"""The overhead of rapt.torch.sdpa: on a tiny input, and relative to rapt itself on larger ones.

    bench/python/torch_call.py [--rounds N] [--lengths N,N,…]

On a tiny input it prints the minimum time over many rounds, in µs, of rapt.torch.sdpa with and without recording for
gradients, of rapt.attention on the same tensors, and of PyTorch's own function. The limit for rapt.torch.sdpa is 40 µs,
the goal 15 µs.

On larger inputs it prints the time of rapt.torch.sdpa divided by that of the C++ call on the same memory, which the
extension module runs in its own loop. The two alternate on one thread, and the minimum CPU time of each counts, because
other load can only increase it. The limit is 1.05, from 512 tokens on.
"""

import argparse
import time

import rapt
import rapt.torch
import torch
import torch.nn.functional as F
from rapt import _rapt
from rapt._options import Options

CALLS = 300  # on a tiny input, in one round
TINY_BAR, TINY_GOAL, RATIO_BAR = 40.0, 15.0, 1.05


def tiny_calls():
    """Name and call, on one token of 16 numbers."""
    x = torch.zeros(1, 1, 1, 16)
    g = x.clone().requires_grad_()
    mask = torch.zeros(1, 1)
    yield "rapt.torch.sdpa", lambda: rapt.torch.sdpa(x, x, x)
    yield "rapt.torch.sdpa, causal", lambda: rapt.torch.sdpa(x, x, x, is_causal=True)
    yield "rapt.torch.sdpa, a mask", lambda: rapt.torch.sdpa(x, x, x, mask)
    yield "rapt.torch.sdpa, recording", lambda: rapt.torch.sdpa(g, g, g)
    yield "rapt.attention", lambda: rapt.attention(x, x, x)
    yield "PyTorch", lambda: F.scaled_dot_product_attention(x, x, x)
    yield "PyTorch, recording", lambda: F.scaled_dot_product_attention(g, g, g)


def tiny(rounds):
    """{name: µs of one call, the minimum over that many rounds}; the calls alternate."""
    calls, best = dict(tiny_calls()), {}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            took = (time.perf_counter() - began) / CALLS * 1e6
            best[name] = min(took, best.get(name, took))
    return best


def processor_seconds(call):
    began = time.process_time()
    call()
    return time.process_time() - began


def ratio(length, rounds, heads=8, size=64, causal=False):
    """(rapt.torch.sdpa's ms, the C++ call's ms), on one thread."""
    q, k, v = (torch.randn(1, heads, length, size) for _ in range(3))
    out = torch.empty_like(q)
    given = Options(causal=causal, alignment="top_left" if causal else None, threads=1)
    bridged, plain = [], []
    for _ in range(rounds):
        bridged.append(processor_seconds(lambda: rapt.torch.sdpa(q, k, v, is_causal=causal)))
        plain.append(processor_seconds(lambda: _rapt.time_attention(q, k, v, given, out, 1)))
    return min(bridged) * 1e3, min(plain) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--lengths", default="512,1024,2048")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rapt.set_thread_count(1)

    print("one call on (1, 1, 1, 16), float32")
    for name, took in tiny(arguments.rounds).items():
        ours = name.startswith("rapt.torch")
        verdict = "" if not ours else "goal met" if took <= TINY_GOAL else "bar met" if took <= TINY_BAR else "MISSED"
        print(f"  {name:28} {took:7.2f} µs  {verdict}".rstrip())
    print("rapt.torch.sdpa beside the C++ call, (1, 8, n, 64), float32, one thread")
    for length in map(int, arguments.lengths.split(",")):
        for causal in (False, True):
            bridged, plain = ratio(length, arguments.rounds, causal=causal)
            verdict = "bar met" if bridged <= RATIO_BAR * plain else "MISSED"
            print(f"  n = {length:5}{', causal' if causal else '':8} {bridged:8.2f} ms {plain:8.2f} ms  "
                  f"{bridged / plain:.3f}  {verdict}")


if __name__ == "__main__":
    main()
