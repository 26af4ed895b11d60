"""Shared by several test files."""

import pathlib

import numpy as np
import pytest
import rapt

ROOT = pathlib.Path(__file__).resolve().parents[3]


def behind(x):
    """The rapt.Array that owns the memory of a NumPy array from a file."""
    while not isinstance(x, rapt.Array):
        x = x.obj if isinstance(x, memoryview) else x.base
    return x


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def qkv(rng):
    """query (2, 4, 5, 8), key (2, 2, 7, 8), value (2, 2, 7, 6), in float32."""
    return tuple(rng.standard_normal(shape, np.float32) for shape in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)))


@pytest.fixture
def root():
    return ROOT
