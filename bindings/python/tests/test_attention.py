"""Inputs and outputs of rapt.attention beyond the cases with PyTorch's results (test_torch_vectors.py)."""

import inspect

import formula
import ml_dtypes
import numpy as np
import pytest
import rapt
from rapt._options import Options


def test_more_than_out_comes_as_a_named_tuple(qkv):
    q, k, v = qkv
    scores = formula.scores(q, k)
    weights = formula.softmax(scores)
    result = rapt.attention(q, k, v, return_lse=True, return_weights=True)
    assert isinstance(result, rapt.AttentionResult)
    assert result._fields == ("out", "lse", "weights", "captures")
    np.testing.assert_allclose(result.out, formula.attention(q, k, v), atol=1e-6)
    np.testing.assert_allclose(result.lse, np.log(np.exp(scores).sum(-1)), atol=1e-6)
    np.testing.assert_allclose(result.weights, weights, atol=1e-6)
    assert result.captures == ()


@pytest.mark.parametrize("function", [rapt.attention, rapt.attention_backward, rapt.MultiheadAttention.forward])
def test_options_have_the_keywords_of_a_call_in_their_order_with_their_defaults(function):
    of_caches = {"pages", "key_scales", "value_scales"} if function is rapt.MultiheadAttention.forward else set()
    keywords = inspect.signature(function).parameters
    wanted = {name: value for name, value in Options()._asdict().items() if name not in of_caches}
    assert [(name, each.default) for name, each in keywords.items() if name in wanted] == list(wanted.items())


def test_what_was_not_asked_for_is_none(qkv):
    assert rapt.attention(*qkv, return_lse=True).weights is None
    assert rapt.attention(*qkv, return_weights=True).lse is None
    assert isinstance(rapt.attention(*qkv, captures=[]), np.ndarray)


def test_the_mean_over_heads(qkv):
    weights = formula.softmax(formula.scores(*qkv[:2]))
    mean = rapt.attention(*qkv, return_weights="mean").weights
    np.testing.assert_allclose(mean, weights.mean(1), atol=1e-6)


def test_weights_and_captures_together(qkv):
    scores = formula.scores(*qkv[:2])
    result = rapt.attention(
        *qkv,
        return_weights=True,
        captures=[rapt.Capture("raw", heads=[3, 1]), rapt.Capture("weights", queries=np.array([4]), mean_over_heads=True)],
    )
    weights = formula.softmax(scores)
    np.testing.assert_allclose(result.weights, weights, atol=1e-6)
    np.testing.assert_allclose(result.captures[0], scores[:, [3, 1]], atol=1e-5)
    np.testing.assert_allclose(result.captures[1], weights.mean(1)[:, [4]], atol=1e-6)


def test_captures_of_sixteen_bits_have_the_queries_dtype_or_float32(qkv):
    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in qkv)
    wishes = [rapt.Capture(), rapt.Capture(dtype="float32"), rapt.Capture(dtype=np.float32)]
    captures = rapt.attention(q, k, v, captures=wishes).captures
    assert [x.dtype for x in captures] == [ml_dtypes.bfloat16, np.float32, np.float32]
    np.testing.assert_allclose(captures[1], formula.softmax(formula.scores(q, k)), atol=1e-6)


def test_a_capture_writes_to_the_array_it_is_given(qkv):
    memory = np.zeros((2, 4, 7, 5), np.float32)
    to = memory.swapaxes(2, 3)
    result = rapt.attention(*qkv, captures=rapt.Capture("raw", out=to))
    assert result.captures[0] is to
    np.testing.assert_allclose(to, formula.scores(*qkv[:2]), atol=1e-5)


@pytest.mark.parametrize("bias", ["bare", "listed", "named"])
def test_a_bare_float_mask_is_added(bias, qkv, rng):
    x = rng.standard_normal((5, 7), np.float32)
    mask = {"bare": x, "listed": [x], "named": rapt.Mask.add(x)}[bias]
    expected = formula.attend(formula.scores(*qkv[:2]) + x, qkv[2])
    np.testing.assert_allclose(rapt.attention(*qkv, mask=mask), expected, atol=1e-6)


@pytest.mark.parametrize("listed", [False, True])
def test_a_bare_bool_mask_is_refused_with_both_readings(listed, qkv):
    mask = np.ones((5, 7), bool)
    with pytest.raises(ValueError) as caught:
        rapt.attention(*qkv, mask=[mask] if listed else mask)
    assert "rapt.Mask.keep(mask) if True marks visible keys" in str(caught.value)
    assert "rapt.Mask.drop(mask) if True marks masked keys" in str(caught.value)


def test_an_offset_may_be_a_number_or_one_per_row(qkv):
    seen = np.arange(7) <= np.arange(5)[:, None] + np.array([1, 2])[:, None, None]
    expected = formula.attend(np.where(seen[:, None], formula.scores(*qkv[:2]), -np.inf), qkv[2])
    for offsets in ([1, 2], (1, 2), np.array([1, 2]), np.array([1, 2], np.uint8)):
        np.testing.assert_allclose(rapt.attention(*qkv, causal=True, alignment=offsets), expected, atol=1e-6)
    first = rapt.attention(*qkv, causal=True, alignment=1)
    np.testing.assert_array_equal(rapt.attention(*qkv, causal=True, alignment=np.int64(1)), first)
    np.testing.assert_array_equal(first[0], rapt.attention(*qkv, causal=True, alignment=[1, 2])[0])


def test_lists_of_numbers_may_be_arrays(qkv):
    slopes, lengths = [0.5, 0.25, 0.125, 1.0], [3, 7]
    expected = rapt.attention(*qkv, alibi_slopes=slopes, key_lengths=lengths, alignment="top_left")
    for kind in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        given = rapt.attention(
            *qkv, alibi_slopes=np.array(slopes, kind), key_lengths=np.array(lengths), alignment="top_left"
        )
        np.testing.assert_array_equal(given, expected)


def test_plain_tuples_stand_for_named_ones(qkv):
    q, k, v = (x[:1] for x in qkv)
    pairs = [
        ({"window": (1, None), "alignment": 0}, {"window": rapt.Window(left=1), "alignment": 0}),
        ({"packed": ([0, 2, 5], [0, 3, 7])}, {"packed": rapt.PackedSequences([0, 2, 5], [0, 3, 7])}),
        ({"dropout": (0.5, 3)}, {"dropout": rapt.Dropout(0.5, seed=3)}),
    ]
    plain = rapt.attention(q, k, v)
    for one, other in pairs:
        np.testing.assert_array_equal(rapt.attention(q, k, v, **one), rapt.attention(q, k, v, **other))
        assert (rapt.attention(q, k, v, **one) != plain).any()


def pages_of(x, size, order):
    """(1, H, L, D) split into pages of `size` tokens, stored in this order."""
    length = -(-x.shape[2] // size) * size
    padded = np.zeros((*x.shape[:2], length, x.shape[3]), x.dtype)
    padded[:, :, : x.shape[2]] = x
    pages = padded[0].reshape(x.shape[1], -1, size, x.shape[3]).swapaxes(0, 1)
    return pages[np.argsort(order)]


@pytest.mark.parametrize("table", [[[2, 0, 1]], np.array([[2, 0, 1]], np.int32), np.array([[2, 0, 1]])],
                         ids=["list", "int32", "int64"])
def test_keys_in_pages_have_the_bits_of_one_piece(table, rng):
    q = rng.standard_normal((1, 4, 3, 8), np.float32)
    k, v = (rng.standard_normal((1, 2, 40, 8), np.float32) for _ in range(2))
    paged = rapt.attention(
        q, pages_of(k, 16, [2, 0, 1]), pages_of(v, 16, [2, 0, 1]), pages=rapt.Pages(table), key_lengths=[40]
    )
    np.testing.assert_array_equal(paged, rapt.attention(q, k, v))


def test_weights_of_pages_have_as_many_keys_as_are_named(rng):
    q = rng.standard_normal((1, 2, 3, 8), np.float32)
    pages = rng.standard_normal((3, 2, 16, 8), np.float32)
    for keys, count in ((0, 48), (40, 40)):
        result = rapt.attention(q, pages, pages, pages=rapt.Pages([[0, 1, 2]], keys), key_lengths=[40], return_weights=True)
        assert result.weights.shape == (1, 2, 3, count)
    with pytest.raises(ValueError, match="attention: pages.keys is -1"):
        rapt.attention(q, pages, pages, pages=rapt.Pages([[0, 1, 2]], -1), key_lengths=[40], return_weights=True)


def test_int8_keys_count_times_their_scales(qkv, rng):
    q = qkv[0]
    k, v = (rng.integers(-127, 128, (2, 2, 7, 8), np.int8) for _ in range(2))
    scales = rng.uniform(0.01, 0.02, (2, 2, 7)).astype(np.float32), rng.uniform(0.01, 0.02, (2, 2, 7)).astype(np.float32)
    expected = formula.attention(q, k * scales[0][..., None], v * scales[1][..., None])
    np.testing.assert_allclose(rapt.attention(q, k, v, key_scales=scales[0], value_scales=scales[1]), expected, atol=1e-5)


def test_the_engine_is_a_choice(qkv):
    np.testing.assert_allclose(rapt.attention(*qkv, engine="reference"), rapt.attention(*qkv, engine="cpu"), atol=1e-6)
    with pytest.raises(ValueError, match="engine is 'gpu'; it may be 'automatic', 'reference' or 'cpu'"):
        rapt.attention(*qkv, engine="gpu")


def test_threads_change_no_bit(rng):
    q, k, v = (rng.standard_normal((2, 4, 300, 16), np.float32) for _ in range(3))
    expected = rapt.attention(q, k, v, threads=1)
    for threads in (2, 3, 0):
        np.testing.assert_array_equal(rapt.attention(q, k, v, threads=threads), expected)


def test_empty_calls_give_empty_or_zero(qkv):
    q, k, v = qkv
    assert rapt.attention(q[:0], k[:0], v[:0]).shape == (0, 4, 5, 6)
    assert rapt.attention(q[:, :, :0], k, v).shape == (2, 4, 0, 6)
    np.testing.assert_array_equal(rapt.attention(q, k[:, :, :0], v[:, :, :0]), np.zeros((2, 4, 5, 6)))


def test_numbers_may_be_those_of_numpy(qkv):
    plain = rapt.attention(*qkv, scale=0.5, softcap=2.0, causal=True, alignment="top_left", threads=1)
    given = rapt.attention(
        *qkv, scale=np.float32(0.5), softcap=np.float64(2), causal=np.True_, alignment="top_left", threads=np.int64(1)
    )
    np.testing.assert_array_equal(given, plain)


def test_heads_are_split_and_combined_without_a_copy(rng):
    x = rng.standard_normal((2, 5, 12), np.float32)
    heads = rapt.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4) and np.shares_memory(heads, x)
    np.testing.assert_array_equal(heads[1, 2], x[1, :, 8:])
    combined = rapt.combine_heads(heads)
    assert np.shares_memory(combined, x)
    np.testing.assert_array_equal(combined, x)
    np.testing.assert_array_equal(rapt.combine_heads(heads.copy()), x)
    with pytest.raises(ValueError, match="embedding size 12 cannot be divided into 5 heads"):
        rapt.split_heads(x, 5)


# ---------------------------------------------------------------- gradients


def test_gradients_are_those_of_the_formula(rng):
    """Central differences of the formula, in float64."""
    q, k, v = (rng.standard_normal((1, 2, 3, 4)) for _ in range(3))
    dout = rng.standard_normal((1, 2, 3, 4))
    gradients = rapt.attention_backward(q, k, v, dout)
    assert isinstance(gradients, rapt.AttentionGradients)
    for x, gradient in zip((q, k, v), gradients):
        for at in np.ndindex(x.shape):
            kept, step = x[at], 1e-6
            sums = []
            for x[at] in (kept + step, kept - step):
                sums.append((formula.attention(q, k, v) * dout).sum())
            x[at] = kept
            assert abs((sums[0] - sums[1]) / (2 * step) - gradient[at]) < 1e-7


def test_only_the_gradients_asked_for_are_made(qkv, rng):
    dout = rng.standard_normal((2, 4, 5, 6), np.float32)
    full = rapt.attention_backward(*qkv, dout)
    assert full.dsinks is None and full.dmasks == ()
    one = rapt.attention_backward(*qkv, dout, gradients="dkey")
    assert one.dquery is None and one.dvalue is None
    np.testing.assert_array_equal(one.dkey, full.dkey)


def test_forwards_results_spare_work_and_change_little(qkv, rng):
    dout = rng.standard_normal((2, 4, 5, 6), np.float32)
    forward = rapt.attention(*qkv, return_lse=True)
    plain = rapt.attention_backward(*qkv, dout)
    given = rapt.attention_backward(*qkv, dout, out=forward.out, lse=forward.lse)
    for a, b in zip(plain[:3], given[:3]):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_gradient_of_weights_may_be_an_array_or_named(qkv, rng):
    dweights = rng.standard_normal((2, 4, 5, 7), np.float32)
    forms = [dweights, rapt.WeightsGradient(dweights), [rapt.WeightsGradient(dweights)]]
    bare, named, listed = (rapt.attention_backward(*qkv, dweights=form) for form in forms)
    assert np.abs(bare.dquery).max() > 0
    for a, b, c in zip(bare[:3], named[:3], listed[:3]):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_gradients_have_the_types_of_what_they_belong_to(qkv, rng):
    q, k, v = qkv[0], *(x.astype(ml_dtypes.bfloat16) for x in qkv[1:])
    gradients = rapt.attention_backward(q, k, v, rng.standard_normal((2, 4, 5, 6), np.float32))
    assert [g.dtype for g in gradients[:3]] == [np.float32, ml_dtypes.bfloat16, ml_dtypes.bfloat16]


# ---------------------------------------------------------------- about the library


def test_threads_and_instruction_sets_are_said():
    assert rapt.thread_count() >= 1
    before = rapt.thread_count()
    rapt.set_thread_count(3)
    assert rapt.thread_count() == 3
    rapt.set_thread_count(0)
    assert rapt.thread_count() == before
    names = rapt.instruction_sets()
    assert rapt.instruction_set() in names
    rapt.use_instruction_set(names[-1])
    assert rapt.instruction_set() == names[-1]
    rapt.use_instruction_set("")
    assert rapt.instruction_set() == names[0]
    with pytest.raises(ValueError, match="mmx"):
        rapt.use_instruction_set("mmx")
