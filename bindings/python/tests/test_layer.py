"""rapt.MultiheadAttention beyond PyTorch's layer: its results, its own options, and its parameters."""

import numpy as np
import pytest
from layer_cases import CASES
from layer_support import drawn, filled, layer_and_tokens, relative_error

import rapt


# ---- What comes back ------------------------------------------------------------------------------------------------


def test_shapes_with_a_batch_and_without():
    layer, x = layer_and_tokens()
    memory = drawn(2, 7, 12)
    out, weights = layer(x, memory, memory)
    assert out.shape == (2, 5, 12) and weights.shape == (2, 5, 7)
    assert layer(x, memory, average_attn_weights=False)[1].shape == (2, 3, 5, 7)
    out, weights = layer(x[0], memory[0])
    assert out.shape == (5, 12) and weights.shape == (5, 7)
    assert layer(x[0], memory[0], average_attn_weights=False)[1].shape == (3, 5, 7)
    assert layer(x, need_weights=False)[1] is None
    other = filled(rapt.MultiheadAttention(12, 3))
    np.testing.assert_array_equal(other(x.transpose(1, 0, 2))[0].transpose(1, 0, 2), layer(x)[0])


def test_key_and_value_may_be_left_out():
    layer, x = layer_and_tokens()
    memory = drawn(2, 7, 12)
    np.testing.assert_array_equal(layer(x)[0], layer(x, x, x)[0])
    np.testing.assert_array_equal(layer(x, memory)[0], layer(x, memory, memory)[0])
    np.testing.assert_allclose(layer(x)[0], layer(x, x.copy(), x.copy())[0], atol=1e-5)


def test_output_goes_where_it_is_told():
    layer, x = layer_and_tokens()
    place = np.empty((2, 5, 12), np.float32)
    out, weights = layer(x, out=place)
    assert out is place
    np.testing.assert_array_equal(place, layer(x)[0])
    strided = np.empty((5, 2, 12), np.float32).transpose(1, 0, 2)
    layer(x, out=strided)
    np.testing.assert_array_equal(strided, place)
    with pytest.raises(ValueError, match="out has shape"):
        layer(x, out=np.empty((2, 5, 11), np.float32))


def test_scores_and_weights_on_request():
    layer, x = layer_and_tokens()
    result = layer(x, causal=True, return_lse=True, captures=[rapt.Capture("raw"), rapt.Capture("weights", heads=[2])])
    assert isinstance(result, rapt.LayerResult)
    raw, chosen = result.captures
    seen = np.where(np.tri(5, dtype=bool), raw.astype(np.float64), -np.inf)
    lse = np.log(np.exp(seen).sum(-1))
    np.testing.assert_allclose(result.lse, lse, rtol=1e-5)
    np.testing.assert_allclose(chosen, np.exp(seen - lse[..., None])[:, 2:3], atol=1e-6)
    np.testing.assert_allclose(result.weights, np.exp(seen - lse[..., None]).mean(1), atol=1e-6)


@pytest.mark.parametrize("kind", ["memoryview", "bfloat16", "jax"])
def test_outputs_are_of_the_querys_kind(kind):
    layer, x = layer_and_tokens()
    expected, _ = layer(x)
    if kind == "memoryview":
        out, _ = layer(memoryview(x))
        np.testing.assert_array_equal(np.asarray(out), expected)
    elif kind == "bfloat16":
        bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
        out, weights = layer(x.astype(bfloat16))
        assert out.dtype == bfloat16 and weights.dtype == np.float32
        assert relative_error(out.astype(np.float32), expected) < 1e-2
    else:
        jax = pytest.importorskip("jax")
        out, weights = layer(jax.numpy.asarray(x))
        assert isinstance(out, jax.Array) and isinstance(weights, jax.Array)
        np.testing.assert_array_equal(np.asarray(out), expected)


def test_stored_calls_do_not_depend_on_where_memory_lies():
    for case in CASES[::25]:
        layer = case.fill(rapt.MultiheadAttention(**case.args))

        def spread(x):
            wide = np.zeros((*x.shape, 3), x.dtype if x.dtype == bool else np.float32)
            wide[..., 1] = x
            return wide[..., 1]

        plain = case.run(layer, lambda x: x if x.dtype == bool else x.astype(np.float32))
        for one, other in zip(plain, case.run(layer, spread), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_array_equal(one, other)


# ---- What PyTorch's layer does not have -----------------------------------------------------------------------------


def by_hand(layer, x, *, causal=False, scale=None, softcap=0.0, slopes=None):
    """Self-attention of one batch row by the formula, in double."""
    config = layer.config
    q, k, v = (part for part in np.split(
        x.astype(np.float64) @ layer.in_proj_weight.astype(np.float64).T + layer.in_proj_bias,
        np.cumsum([config.heads * config.head_size, config.kv_heads * config.head_size]), axis=-1))
    heads = []
    for h in range(config.heads):
        own = np.s_[h * config.head_size : (h + 1) * config.head_size]
        kv = h // (config.heads // config.kv_heads)
        shared = np.s_[kv * config.head_size : (kv + 1) * config.head_size]
        s = (scale or config.head_size**-0.5) * (q[:, own] @ k[:, shared].T)
        if softcap:
            s = softcap * np.tanh(s / softcap)
        if slopes is not None:
            s = s - slopes[h] * np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
        if causal:
            s = np.where(np.tri(len(x), dtype=bool), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        heads.append(p / p.sum(-1, keepdims=True) @ v[:, shared])
    return np.concatenate(heads, -1) @ layer.out_proj.weight.astype(np.float64).T + layer.out_proj.bias


def test_fewer_kv_heads_and_sizes_of_their_own():
    layer = filled(rapt.MultiheadAttention(12, 4, kv_heads=2, head_size=5, output_size=7, batch_first=True))
    x = drawn(1, 6, 12)
    assert layer.in_proj_weight.shape == ((4 + 2 * 2) * 5, 12) and layer.out_proj.weight.shape == (7, 20)
    assert relative_error(layer(x)[0][0], by_hand(layer, x[0])) < 1e-6


def test_options_of_attention():
    layer, x = layer_and_tokens()
    for options in ({"causal": True}, {"scale": 0.2}, {"softcap": 1.5}):
        assert relative_error(layer(x, **options)[0][1], by_hand(layer, x[1], **options)) < 1e-6
    slopes = [0.5, 0.25, 0.125]
    assert relative_error(layer(x, alibi_slopes=slopes)[0][1], by_hand(layer, x[1], slopes=slopes)) < 1e-6
    hidden = np.tri(5, k=-1, dtype=bool).T
    causal, _ = layer(x, causal=True)
    np.testing.assert_array_equal(layer(x, mask=rapt.Mask.drop(hidden))[0], causal)
    np.testing.assert_array_equal(layer(x, attn_mask=hidden)[0], causal)
    np.testing.assert_array_equal(layer(x, window=(None, 0))[0], causal)
    padding = np.array([[False] * 3 + [True] * 2, [False] * 5])
    np.testing.assert_array_equal(layer(x, key_lengths=[3, 5])[0], layer(x, key_padding_mask=padding)[0])
    reference, _ = layer(x, engine="reference", threads=1)
    assert relative_error(reference, layer(x)[0].astype(np.float64)) < 1e-6


def test_masks_of_all_kinds_combine():
    layer, x = layer_and_tokens()
    rng = np.random.default_rng(3)
    keep, bias = rng.random((5, 5)) < 0.8, rng.standard_normal((2 * 3, 5, 5)).astype(np.float32)
    padding = np.array([[False] * 4 + [True], [False] * 5])
    together, _ = layer(x, mask=[rapt.Mask.keep(keep)], attn_mask=bias, key_padding_mask=padding)
    one = np.where(keep & ~padding[:, None, None, :], bias.reshape(2, 3, 5, 5), -np.inf).astype(np.float32)
    np.testing.assert_allclose(together, layer(x, mask=one)[0], atol=1e-5)


def test_a_query_that_sees_no_key_gives_the_output_bias():
    layer, x = layer_and_tokens()
    mask = np.zeros((5, 5), bool)
    mask[2] = True
    out, weights = layer(x, attn_mask=mask)
    np.testing.assert_array_equal(out[:, 2], np.broadcast_to(layer.out_proj.bias, (2, 12)))
    assert not weights[:, 2].any() and np.isfinite(out).all()


def test_a_stored_causal_mask_is_cut_to_the_sequence():
    layer, x = layer_and_tokens(context_length=6)
    plain, _ = layer_and_tokens()
    np.testing.assert_array_equal(layer(x)[0], plain(x, causal=True)[0])
    with pytest.raises(ValueError, match="the sequence has 7 tokens, the stored causal mask is for 6; "):
        layer(drawn(2, 7, 12))


def test_rotary_embedding_sees_only_distances():
    layer, x = layer_and_tokens(rotary=True)
    plain, _ = layer_and_tokens()
    assert relative_error(layer(x)[0], plain(x)[0].astype(np.float64)) > 0.01
    assert relative_error(layer(x, position=1000)[0], layer(x)[0].astype(np.float64)) < 1e-4
    assert layer.config.rotary == rapt.RotaryOptions(scaling=rapt.RotaryScaling())


def turned(x, rotary):
    """Rotary embedding of (L, D) by its definition, in double; scaling is linear, or none."""
    factor = rotary.scaling.factor if rotary.scaling else 1.0
    half = (rotary.size or x.shape[-1]) // 2
    angles = np.arange(len(x))[:, None] / factor * rotary.base ** (-np.arange(half) / half)
    first, second = (np.s_[: 2 * half : 2], np.s_[1 : 2 * half : 2]) if rotary.pairs == "interleaved" else (
        np.s_[:half], np.s_[half : 2 * half])
    result = x.astype(np.float64)
    a, b = result[:, first].copy(), result[:, second].copy()
    result[:, first] = a * np.cos(angles) - b * np.sin(angles)
    result[:, second] = b * np.cos(angles) + a * np.sin(angles)
    return result


@pytest.mark.parametrize("rotary", [
    rapt.RotaryOptions(),
    rapt.RotaryOptions(base=50.0, size=4, pairs="interleaved", max_positions=3),
    rapt.RotaryOptions(size=2, scaling=rapt.RotaryScaling.linear(4.0)),
], ids=str)
def test_rotary_embedding_by_its_definition(rotary):
    layer = filled(rapt.MultiheadAttention(6, 1, batch_first=True, bias=False, rotary=rotary))
    x = drawn(1, 5, 6)
    q, k, _ = np.split(x[0].astype(np.float64) @ layer.in_proj_weight.astype(np.float64).T, 3, axis=-1)
    (scores,) = layer(x, captures=[rapt.Capture("raw")]).captures
    assert relative_error(scores[0, 0], turned(q, rotary) @ turned(k, rotary).T / np.sqrt(6)) < 1e-6


def test_every_rotary_option_arrives():
    scalings = [
        rapt.RotaryScaling.linear(2.0),
        rapt.RotaryScaling.ntk(3.0),
        rapt.RotaryScaling.dynamic(2.0, 16, 32),
        rapt.RotaryScaling.yarn(4.0, 16, beta_fast=20.0, attention_factor=1.5, truncate=False),
        rapt.RotaryScaling.llama3(8.0, 16, 1.5, 3.0),
    ]
    for scaling in scalings:
        rotary = rapt.RotaryOptions(base=500.0, size=4, pairs="interleaved", scaling=scaling, max_positions=8)
        layer, x = layer_and_tokens(rotary=rotary)
        assert layer.config.rotary == rotary
        assert np.isfinite(layer(x)[0]).all()


def test_slices_of_the_heads_add_up():
    layer = filled(rapt.MultiheadAttention(12, 6, kv_heads=2, head_size=4, batch_first=True))
    x = drawn(2, 5, 12)
    parts = [layer.slice(index, 2) for index in range(2)]
    assert [part.config.slice for part in parts] == [(0, 2), (1, 2)]
    assert relative_error(sum(part(x)[0] for part in parts), layer(x)[0].astype(np.float64)) < 1e-6
    per_head = [part(x, average_attn_weights=False)[1] for part in parts]
    np.testing.assert_allclose(np.concatenate(per_head, 1), layer(x, average_attn_weights=False)[1], atol=1e-6)
    made = rapt.MultiheadAttention(12, 6, kv_heads=2, head_size=4, slice=(1, 2), seed=4)
    whole = rapt.MultiheadAttention(12, 6, kv_heads=2, head_size=4, seed=4)
    np.testing.assert_array_equal(made.out_proj.weight, whole.slice(1, 2).out_proj.weight)


# ---- Parameters -----------------------------------------------------------------------------------------------------


def test_parameters_are_lent_and_state_dicts_are_copies():
    layer, _ = layer_and_tokens()
    lent, copied = layer.in_proj_weight, layer.state_dict()["in_proj_weight"]
    with pytest.raises(ValueError):
        lent[0, 0] = 1.0
    layer.set_parameter("in_proj_weight", np.zeros(lent.shape))
    assert not lent.any() and copied.any()
    copied[:] = 5.0
    assert not layer.in_proj_weight.any()
    del layer
    assert not lent.any()  # the memory lives as long as a view of it


def test_parameters_have_pytorchs_attributes():
    layer = rapt.MultiheadAttention(6, 2, kdim=4, vdim=5, add_bias_kv=True)
    assert layer.in_proj_weight is None
    assert [layer.q_proj_weight.shape, layer.k_proj_weight.shape, layer.v_proj_weight.shape] == [(6, 6), (6, 4), (6, 5)]
    assert layer.bias_k.shape == layer.bias_v.shape == (1, 1, 6)
    assert (layer.embed_dim, layer.num_heads, layer.head_dim, layer.kdim, layer.vdim) == (6, 2, 3, 4, 5)
    assert [p.shape for p in layer.parameters()] == [v.shape for v in layer.state_dict().values()]


def test_the_same_seed_gives_the_same_layer():
    one, same, other = (rapt.MultiheadAttention(8, 2, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.in_proj_weight, same.in_proj_weight)
    assert (one.in_proj_weight != other.in_proj_weight).any()


def test_a_layer_writes_itself_as_it_was_made():
    for text in ("rapt.MultiheadAttention(8, 2)", "rapt.MultiheadAttention(8, 2, kv_heads=1, batch_first=True)",
                 "rapt.MultiheadAttention(8, 2, kdim=4, bias=False, add_zero_attn=True, dropout=0.5)",
                 "rapt.MultiheadAttention(8, 2, output_bias=False, separate_projections=True, dtype='float16')"):
        assert repr(eval(text)) == text
