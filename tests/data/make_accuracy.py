#!/usr/bin/env python3
"""Measures PyTorch's own f32 error on larger shapes, and writes it to tests/data/accuracy.json.

    make_accuracy.py        needs torch and numpy

Inputs come from a formula that tests/attention/accuracy_test.cc computes too, so only the errors are stored. An error
is the norm of the difference from the f64 answer, over the norm of that answer, as everywhere in the tests. Errors of
gradients are those of dq, dk and dv.
"""

import json
import math
import pathlib

import numpy
import torch

HERE = pathlib.Path(__file__).parent


def philox(counter, key):
    """Philox 4x32-10 on arrays of counters, as in include/rapt/random.h."""
    c = [x.astype(numpy.uint64) for x in counter]
    k = [numpy.uint64(key & 0xFFFFFFFF), numpy.uint64(key >> 32)]
    low = numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ k[0], p1 & low, (p0 >> numpy.uint64(32)) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + numpy.uint64(0x9E3779B9)) & low, (k[1] + numpy.uint64(0xBB67AE85)) & low]
    return c


def stream(seed, number, count):
    """The first `count` numbers of cases::Stream(seed, number)."""
    blocks = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    same = numpy.ones_like(blocks)
    words = philox([blocks & numpy.uint64(0xFFFFFFFF), blocks >> numpy.uint64(32), same * numpy.uint64(number),
                    same * numpy.uint64(0x72617074)], seed)
    return numpy.stack(words, axis=1).reshape(-1)[:count].astype(numpy.float64) * 2.0**-32


def bell(seed, number, count):
    """Approximately normal, mean 0 and variance 1: sums of four uniform numbers, which are exact on every machine."""
    parts = stream(seed, number, 4 * count).reshape(count, 4)
    return (((parts[:, 0] + parts[:, 1]) + parts[:, 2]) + parts[:, 3] - 2.0) * math.sqrt(3.0)


def inputs(seed, length, size, spread):
    """q, k, v and dout of (1, 2, L, D) in f32; q is `spread` times as wide, and so are the scores."""
    count = 2 * length * size
    values = [bell(seed, n, count) * (spread if n == 1 else 1.0) for n in (1, 2, 3, 4)]
    return [torch.from_numpy(x.astype(numpy.float32).reshape(1, 2, length, size)) for x in values]


def exact(q, k, v, causal):
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    largest = float(scores.abs().max())
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(scores, dim=-1) @ v, largest


def error(got, wanted):
    return float((got.double() - wanted).norm() / wanted.norm())


def gradients(attend, tensors, dout):
    """Gradients of q, k and v, for the upstream gradient of the output."""
    leaves = [each.detach().clone().requires_grad_() for each in tensors]
    return torch.autograd.grad(attend(*leaves), leaves, dout.to(leaves[0].dtype))


def gradient_errors(q, k, v, causal, dout):
    def fused(*tensors):
        return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

    def plain(*tensors):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return fused(*tensors)

    wanted = gradients(lambda *tensors: exact(*tensors, causal)[0], [each.double() for each in (q, k, v)], dout)
    return {name: [error(got, right) for got, right in zip(gradients(attend, (q, k, v), dout), wanted)]
            for name, attend in (("torch_fused_gradient_errors", fused), ("torch_plain_gradient_errors", plain))}


def main():
    cases = []
    for length in (256, 577, 1024):
        for size in (64, 128):
            for spread in (1.0, 20.0):
                for causal in (False, True):
                    seed = 1000 + len(cases)
                    q, k, v, dout = inputs(seed, length, size, spread)
                    wanted, largest = exact(q, k, v, causal)
                    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                        plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    cases.append({"seed": seed, "length": length, "size": size, "spread": spread, "causal": causal,
                                  "largest_score": round(largest, 1), "torch_fused_error": error(fused, wanted),
                                  "torch_plain_error": error(plain, wanted),
                                  **gradient_errors(q, k, v, causal, dout)})
    first = [float(x) for x in inputs(1000, 256, 64, 1.0)[0].flatten()[:4]]
    data = {"made_by": "tests/data/make_accuracy.py", "torch": torch.__version__, "first_inputs": first, "cases": cases}
    text = json.dumps(data).replace(", {\"seed\"", ",\n  {\"seed\"").replace("[{\"seed\"", "[\n  {\"seed\"")
    (HERE / "accuracy.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
