"""A layer with no parameter at its default, and tokens for it."""

import numpy as np

import rapt


def drawn(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def filled(layer, seed=7):
    for n, (name, value) in enumerate(layer.named_parameters()):
        layer.set_parameter(name, np.random.default_rng(seed + n).uniform(-1, 1, value.shape))
    return layer


def layer_and_tokens(**arguments):
    return filled(rapt.MultiheadAttention(12, 3, batch_first=True, **arguments)), drawn(2, 5, 12)


def relative_error(found, expected):
    """|found - expected| / |expected|, in double."""
    expected = np.asarray(expected, np.float64)
    norm = np.linalg.norm(expected)
    difference = np.linalg.norm(np.asarray(found, np.float64) - expected)
    return difference / norm if norm > 0 else difference
