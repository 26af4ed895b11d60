"""rapt.KvCache: sequences that grow, fork and shrink."""

import ml_dtypes
import numpy as np
import pytest
import rapt

PLAIN = {"length": 64}
PAGED = {"page_size": 16, "pages": 24}
ROOMS = pytest.mark.parametrize("room", [PLAIN, PAGED], ids=["plain", "paged"])


def tokens(rng, batch, length, dtype=np.float32):
    return tuple(rng.standard_normal((batch, 2, length, size), np.float32).astype(dtype) for size in (8, 6))


def cache_of(room, **options):
    return rapt.KvCache(kv_heads=2, head_size=8, value_size=6, sequences=4, **room, **options)


@ROOMS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_decoding_has_the_bits_of_one_pass(room, dtype, rng):
    stored = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    k, v = tokens(rng, 2, 40, stored)
    q = rng.standard_normal((2, 4, 40, 8), np.float32)
    expected = rapt.attention(q, k, v, causal=True)

    cache = cache_of(room, dtype=dtype)
    ids = [cache.add(), cache.add()]
    for i in range(40):
        cache.append(ids, k[:, :, i : i + 1], v[:, :, i : i + 1])
        out = rapt.attention(q[:, :, i : i + 1], cache=cache.view(ids), causal=True, alignment="bottom_right")
        np.testing.assert_array_equal(out, expected[:, :, i : i + 1])


@ROOMS
def test_a_view_is_the_cache_itself(room, rng):
    k, v = tokens(rng, 2, 20)
    cache = cache_of(room)
    ids = [cache.add(), cache.add()]
    cache.append(ids, k, v, counts=[20, 5])
    seen = cache.view(ids)
    assert (seen.key_lengths, seen.keys) == ([20, 5], 20)
    assert seen.key_scales is None and seen.value_scales is None
    assert not seen.key.flags.writeable
    if room is PAGED:
        assert seen.key.shape == (24, 2, 16, 8)
        for row, length in enumerate(seen.key_lengths):
            stored = np.concatenate([seen.key[page] for page in seen.page_table[row]], axis=1)
            np.testing.assert_array_equal(stored[:, :length], k[row, :, :length])
    else:
        assert seen.page_table is None
        np.testing.assert_array_equal(seen.value[0], v[0])
        np.testing.assert_array_equal(seen.value[1, :, :5], v[1, :, :5])
    assert seen.key.__array_interface__["data"] == cache.view(ids).key.__array_interface__["data"]

    q = rng.standard_normal((2, 2, 3, 8), np.float32)
    spelled = {"pages": rapt.Pages(seen.page_table, seen.keys)} if room is PAGED else {}
    np.testing.assert_array_equal(
        rapt.attention(q, cache=seen), rapt.attention(q, seen.key, seen.value, key_lengths=seen.key_lengths, **spelled)
    )


@ROOMS
def test_int8_is_within_half_a_step(room, rng):
    k, v = tokens(rng, 1, 20)
    cache = cache_of(room, dtype="int8")
    cache.append([cache.add()], k, v)
    seen = cache.view([0])
    assert seen.key.dtype == np.int8 and seen.key_scales.dtype == np.float32
    if room is PLAIN:
        restored = seen.key[0, :, :20] * seen.key_scales[0, :, :20, None]
        step = np.abs(k[0]).max(-1, keepdims=True) / 127
        assert (np.abs(restored - k[0]) <= step * 0.5001).all()
    q = rng.standard_normal((1, 2, 3, 8), np.float32)
    np.testing.assert_allclose(rapt.attention(q, cache=seen), rapt.attention(q, k, v), atol=0.05)


@ROOMS
def test_sequences_fork_shrink_and_go(room, rng):
    k, v = tokens(rng, 1, 20)
    cache = cache_of(room)
    first = cache.add()
    cache.append([first], k, v)
    part, whole = cache.fork(first, 18), cache.fork(first)
    assert [cache.length(n) for n in (first, part, whole)] == [20, 18, 20]
    assert cache.sequence_count == 3
    if room is PAGED:
        assert cache.free_pages == 22  # all three share two pages
        assert cache.room(part) > 0
    cache.append([part], k[:, :, :1], v[:, :, :1])
    cache.truncate(first, 3)
    cache.remove(whole)
    assert (cache.length(first), cache.length(part), cache.sequence_count) == (3, 19, 2)
    q = rng.standard_normal((1, 2, 1, 8), np.float32)
    joined = (np.concatenate([x[:, :, :18], x[:, :, :1]], axis=2) for x in (k, v))
    np.testing.assert_array_equal(rapt.attention(q, cache=cache.view([part])), rapt.attention(q, *joined))


def test_it_says_what_it_is():
    cache = rapt.KvCache(kv_heads=2, head_size=8, dtype=np.float16, length=10, sequences=3)
    assert (cache.kv_heads, cache.head_size, cache.value_size, cache.dtype) == (2, 8, 8, "float16")
    assert cache.bytes == 2 * 3 * 2 * 10 * 8 * 2
    assert cache.free_pages == 0


def test_views_keep_the_cache_alive(rng):
    k, v = tokens(rng, 1, 5)
    cache = cache_of(PLAIN)
    cache.append([cache.add()], k, v)
    seen = cache.view([0])
    key = seen.key
    del cache
    q = rng.standard_normal((1, 2, 1, 8), np.float32)
    np.testing.assert_array_equal(rapt.attention(q, cache=seen), rapt.attention(q, k, v))
    del seen
    np.testing.assert_array_equal(key[0], k[0])


def test_refusals_have_the_librarys_words(rng):
    k, v = tokens(rng, 1, 5)
    cache = cache_of(PLAIN)
    cache.add()
    with pytest.raises(ValueError, match="KvCache: head_size is 0; it must be positive"):
        rapt.KvCache(head_size=0, length=3)
    with pytest.raises(ValueError, match="KvCache: dtype is float64"):
        rapt.KvCache(head_size=4, length=3, dtype="float64")
    with pytest.raises(ValueError, match="KvCache.append: sequence 0 is listed twice"):
        cache.append([0, 0], np.concatenate([k, k]), np.concatenate([v, v]))
    with pytest.raises(ValueError, match="KvCache.length: "):
        cache.length(3)
    assert cache.length(0) == 0


def test_wrong_keywords_and_types_are_type_errors(rng):
    cache = cache_of(PLAIN)
    cache.append([cache.add()], *tokens(rng, 1, 5))
    with pytest.raises(TypeError, match="heads"):
        rapt.KvCache(heads=3, head_size=4, length=1)
    with pytest.raises(TypeError, match="head_size"):
        rapt.KvCache(head_size="4", length=1)
    with pytest.raises(ValueError, match="KvCache: dtype is 'float3'; it may be 'float32'"):
        rapt.KvCache(head_size=4, length=1, dtype="float3")
    with pytest.raises(TypeError, match="KvCache.append: ids must be an integer, not str"):
        cache.append(["a"], *tokens(rng, 1, 5))
    q = rng.standard_normal((1, 2, 1, 8), np.float32)
    with pytest.raises(TypeError, match="attention: cache must be the result of KvCache.view, not rapt.KvCache"):
        rapt.attention(q, cache=cache)
    with pytest.raises(TypeError, match="attention: cache provides keys and values"):
        rapt.attention(q, q, q, cache=cache.view([0]))
    with pytest.raises(ValueError, match="attention: cache provides key_lengths"):
        rapt.attention(q, cache=cache.view([0]), key_lengths=[1])
    with pytest.raises(TypeError, match="attention: key or value is None; give both, or cache="):
        rapt.attention(q, q)
