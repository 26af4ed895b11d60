"""JAX's arrays, where JAX is installed."""

import numpy as np
import pytest
import rapt
from rapt import _rapt

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture
def arrays():
    keys = jax.random.split(jax.random.key(3), 3)
    return [jax.random.normal(key, (2, 4, 6, 8)) for key in keys]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_arrays_are_read_where_they_lie_and_give_arrays(dtype, arrays):
    q, k, v = (x.astype(dtype) for x in arrays)
    assert _rapt.lent(q)[:3] == (q.unsafe_buffer_pointer(), dtype, q.shape)
    out = rapt.attention(q, k, v)
    assert isinstance(out, jax.Array) and out.dtype == q.dtype
    expected = jax.nn.dot_product_attention(*(x.swapaxes(1, 2).astype("float32") for x in (q, k, v))).swapaxes(1, 2)
    assert jnp.abs(out.astype("float32") - expected).max() < {"float32": 1e-5}.get(dtype, 2e-2)


def test_everything_that_comes_back_is_an_array_of_jax(arrays):
    result = rapt.attention(*arrays, return_lse=True, return_weights="mean")
    gradients = rapt.attention_backward(*arrays, arrays[0])
    for x in (*result[:3], *gradients[:3]):
        assert isinstance(x, jax.Array)
    assert jnp.allclose(result.weights.sum(-1), 1, atol=1e-5)


def test_masks_and_lengths_may_be_jaxs(arrays):
    mask = jnp.tri(6, dtype=bool)
    np.testing.assert_array_equal(rapt.attention(*arrays, mask=rapt.Mask.keep(mask)), rapt.attention(*arrays, causal=True))
    np.testing.assert_array_equal(
        rapt.attention(*arrays, key_lengths=jnp.array([3, 6])), rapt.attention(*arrays, key_lengths=[3, 6])
    )


def test_arrays_of_jax_are_never_written(arrays):
    with pytest.raises(ValueError, match="out is a JAX array, which cannot be written"):
        rapt.attention(*arrays, out=jnp.zeros((2, 4, 6, 8)))
