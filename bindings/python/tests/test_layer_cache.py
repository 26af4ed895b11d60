"""A rapt.MultiheadAttention that decodes through a rapt.KvCache."""

import threading

import numpy as np
import pytest
from layer_support import drawn, filled, relative_error

import rapt


def decoder(**arguments):
    layer = filled(rapt.MultiheadAttention(16, 4, kv_heads=2, rotary=True, batch_first=True, **arguments))
    return layer.eval()


def cache_for(layer, **arguments):
    config = layer.config
    return rapt.KvCache(kv_heads=config.kv_heads, head_size=config.head_size, **arguments)


@pytest.mark.parametrize("pages", [{"length": 32}, {"page_size": 16, "pages": 8}])
@pytest.mark.parametrize("need_weights", [True, False])
def test_token_by_token_gives_the_bits_of_one_pass(pages, need_weights):
    layer, x = decoder(), drawn(2, 20, 16)
    whole, weights = layer(x, causal=True, average_attn_weights=False)
    cache = cache_for(layer, sequences=2, **pages)
    assert [cache.add(), cache.add()] == [0, 1]
    steps = [layer(x[:, :7], causal=True, cache=cache, need_weights=need_weights)]
    for n in range(7, 20):
        steps.append(layer(x[:, n : n + 1], causal=True, cache=cache, need_weights=need_weights,
                           average_attn_weights=False))
        assert cache.length(0) == cache.length(1) == n + 1
    np.testing.assert_array_equal(np.concatenate([out for out, _ in steps], 1), whole)
    if need_weights:
        assert steps[-1][1].shape == (2, 4, 1, 20)
        np.testing.assert_array_equal(steps[-1][1], weights[:, :, 19:])
    else:
        assert steps[-1][1] is None


def test_rows_belong_to_the_sequences_they_name():
    layer, x = decoder(), drawn(3, 6, 16)
    cache = cache_for(layer, sequences=4, page_size=16, pages=8)
    ids = [cache.add() for _ in range(4)]
    layer(x[:2], causal=True, cache=cache, sequences=[ids[3], ids[1]], key_lengths=[4, 6])
    assert [cache.length(n) for n in ids] == [0, 6, 0, 4]
    whole, _ = layer(x[0:1], causal=True)
    rest, _ = layer(x[0:1, 4:], causal=True, cache=cache, sequences=[ids[3]])
    np.testing.assert_array_equal(rest, whole[:, 4:])


def test_a_fork_goes_its_own_way():
    layer, x = decoder(), drawn(1, 24, 16)
    cache = cache_for(layer, sequences=2, page_size=16, pages=8)
    trunk = cache.add()
    layer(x[:, :20], causal=True, cache=cache, sequences=[trunk])
    branch = cache.fork(trunk)
    other = drawn(1, 4, 16, seed=9)
    one, _ = layer(x[:, 20:], causal=True, cache=cache, sequences=[trunk])
    two, _ = layer(other, causal=True, cache=cache, sequences=[branch])
    np.testing.assert_array_equal(one, layer(x, causal=True)[0][:, 20:])
    np.testing.assert_array_equal(two, layer(np.concatenate([x[:, :20], other], 1), causal=True)[0][:, 20:])


@pytest.mark.parametrize("dtype, bound", [("bfloat16", 1e-2), ("float16", 1e-3), ("int8", 3e-2)])
def test_a_cache_of_fewer_bits(dtype, bound):
    layer, x = decoder(), drawn(1, 12, 16)
    cache = cache_for(layer, length=16, dtype=dtype)
    cache.add()
    out, _ = layer(x, causal=True, cache=cache)
    assert relative_error(out, layer(x, causal=True)[0]) < bound


def test_a_call_that_is_refused_leaves_the_cache_as_it_was():
    layer, x = decoder(), drawn(1, 3, 16)
    cache = cache_for(layer, length=4)
    cache.add()
    layer(x, causal=True, cache=cache)
    for refused in (lambda: layer(x, causal=True, cache=cache),  # no room for three more
                    lambda: layer(x[:, :1], x[:, :1].copy(), cache=cache),
                    lambda: layer(x[:, :1], cache=cache, position=3),
                    lambda: layer(x[:, :1], cache=cache, attn_mask=np.zeros((1, 2), bool)),
                    lambda: layer(x[:, :1], cache=cache, sequences=[5])):
        with pytest.raises(ValueError):
            refused()
        assert cache.length(0) == 3
    with pytest.raises(TypeError, match="cache must be a rapt.KvCache, not dict"):
        layer(x, cache={})


def test_threads_share_a_cache():
    layer, x = decoder(), drawn(8, 30, 16)
    whole, _ = layer(x, causal=True)
    cache = cache_for(layer, sequences=8, page_size=16, pages=16)
    ids = [cache.add() for _ in range(8)]
    wrong = []

    def decode(row):
        for n in range(30):
            out, _ = layer(x[row : row + 1, n : n + 1], causal=True, cache=cache, sequences=[ids[row]])
            if not np.array_equal(out[:, 0], whole[row : row + 1, n]):
                wrong.append((row, n))

    threads = [threading.Thread(target=decode, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
