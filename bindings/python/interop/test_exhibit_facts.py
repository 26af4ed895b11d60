"""What the exhibits of `rapt explain` say about PyTorch is true of PyTorch.

tests/exhibits/statements_test.cc checks that the exhibits say it. Here are the same facts, each measured.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

INF = float("inf")


def turned():
    """(B, L, H, D) with the strides of (B, H, L, D), as when heads are combined."""
    return torch.randn(1, 2, 3, 4).transpose(1, 2)


# ---------------------------------------------------------------- 4, 18: rows of W_q, columns of W_o


def test_a_head_owns_rows_of_the_weight():
    linear = nn.Linear(8, 6)
    x = torch.randn(5, 8)
    assert linear.weight.shape == (6, 8)  # (out, in)
    torch.testing.assert_close(linear(x), x @ linear.weight.T + linear.bias)
    torch.testing.assert_close(linear(x)[:, 2:4], F.linear(x, linear.weight[2:4], linear.bias[2:4]))
    torch.testing.assert_close(x @ linear.weight.T, x[:, :4] @ linear.weight[:, :4].T + x[:, 4:] @ linear.weight[:, 4:].T)


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_heads_change_no_parameter(heads):
    layer = nn.MultiheadAttention(8, heads)
    assert sum(p.numel() for p in layer.parameters()) == 4 * 8 * 8 + 4 * 8


def test_heads_must_divide_the_embedding():
    with pytest.raises(AssertionError):
        nn.MultiheadAttention(24, 5)
    with pytest.raises(TypeError):
        nn.MultiheadAttention(24, 5, head_size=4)


# ---------------------------------------------------------------- 6: what true means


def test_true_hides_in_the_layer_and_shows_in_the_function():
    layer = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    x = torch.randn(2, 3, 4)
    last = torch.tensor([False, False, True])
    for masks in ({"key_padding_mask": last.expand(2, 3)}, {"attn_mask": last.expand(3, 3)},
                  {"attn_mask": last.expand(4, 3, 3)}):  # fmt: skip
        assert torch.all(layer(x, x, x, **masks)[1][..., 2] == 0)
    q, k, v = torch.randn(3, 2, 2, 3, 4).unbind()
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, attn_mask=~last.expand(3, 3)),
                               F.scaled_dot_product_attention(q, k[..., :2, :], v[..., :2, :]))  # fmt: skip


def test_the_code_of_the_triangles():
    upper = torch.full((3, 3), -torch.inf).triu(diagonal=1)
    assert upper.tolist() == [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]
    lower = torch.full((3, 3), -torch.inf).tril()
    assert lower.tolist() == [[-INF, 0, 0], [-INF, -INF, 0], [-INF, -INF, -INF]]


# ---------------------------------------------------------------- 7: ways to mask


def test_a_billion_does_not_fit_into_half():
    scores, mask = torch.zeros(2, 2), torch.tensor([[False, True], [True, True]])
    with pytest.raises(RuntimeError, match="value cannot be converted to type (c10|at)::Half without overflow"):
        scores.half().masked_fill(mask, -1e9)
    for dtype in (torch.float32, torch.bfloat16):
        assert scores.to(dtype).masked_fill(mask, -1e9).isfinite().all()
    assert [torch.tensor(-1e9).to(t).item() for t in (torch.float32, torch.bfloat16, torch.float16)] == [
        -1000000000, -998244352, -INF]  # fmt: skip
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert scores.to(dtype).masked_fill(mask, -torch.inf).isinf().sum() == 3
        filled = scores.to(dtype).masked_fill(mask, torch.finfo(dtype).min)
        assert filled.softmax(-1).tolist() == [[1, 0], [0.5, 0.5]]
    assert [f"{torch.finfo(t).min:.5g}" for t in (torch.float32, torch.bfloat16, torch.float16)] == [
        "-3.4028e+38", "-3.3895e+38", "-65504"]  # fmt: skip


def test_a_row_of_minus_infinity_is_nan_and_stays_nan_behind_a_mask():
    assert torch.full((3,), -torch.inf).softmax(0).isnan().all()
    values = torch.ones(2, 4)
    values[1] = torch.nan
    scores = (values @ values.T).masked_fill(torch.tensor([False, True]), -torch.inf)
    assert scores[0].softmax(0).tolist() == [1, 0]
    assert (scores.softmax(-1) @ values).isnan().all()


# ---------------------------------------------------------------- 10: the corner of the triangle


def test_is_causal_is_top_left():
    q, k, v = torch.randn(1, 3, 4), torch.randn(1, 7, 4), torch.randn(1, 7, 4)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0], v[:, 0])


# ---------------------------------------------------------------- 11, 15: views


def test_view_fails_where_reshape_and_contiguous_copy():
    x = turned()
    assert x.stride() == (24, 4, 12, 1)
    with pytest.raises(RuntimeError):
        x.view(1, 3, 8)
    for copied in (x.reshape(1, 3, 8), x.contiguous().view(1, 3, 8)):
        assert copied.data_ptr() != x.data_ptr()
        assert torch.equal(copied[0, :, 4:], x[0, :, 1])
    stored = x.contiguous()
    for same in (stored.view(1, 3, 8), stored.reshape(1, 3, 8), stored.contiguous().view(1, 3, 8)):
        assert same.data_ptr() == stored.data_ptr()
    assert torch.equal(stored.view(1, 3, 8).view(1, 2, 3, 4), stored.view(1, 3, 8).reshape(1, 2, 3, 4))


def test_permute_changes_only_strides():
    x = torch.arange(36).view(1, 3, 12)
    parts = x.view(1, 3, 3, 2, 2).permute(2, 0, 3, 1, 4)
    assert (parts.shape, parts.stride(), parts.data_ptr()) == ((3, 1, 2, 3, 2), (4, 36, 2, 12, 1), x.data_ptr())
    assert parts[2, 0, 1].tolist() == [[10, 11], [22, 23], [34, 35]]


# ---------------------------------------------------------------- 13: need_weights


def test_weights_are_averaged_and_dropped():
    layer = nn.MultiheadAttention(8, 2, dropout=0.25, batch_first=True)
    x = torch.randn(1, 4, 8)
    mean, per_head = (layer.eval()(x, x, x, average_attn_weights=average)[1] for average in (True, False))
    assert (mean.shape, per_head.shape) == ((1, 4, 4), (1, 2, 4, 4))
    torch.testing.assert_close(mean, per_head.mean(1))
    torch.testing.assert_close(mean.sum(-1), torch.ones(1, 4))
    assert layer(x, x, x, need_weights=False)[1] is None
    dropped = layer.train()(x, x, x, average_attn_weights=False)[1]
    ratio = dropped / per_head  # each weight is 0 or divided by 0.75
    assert torch.all((dropped == 0) | torch.isclose(ratio, torch.tensor(1 / 0.75)))


# ---------------------------------------------------------------- 14: batch_first


def test_batch_first_is_off_by_default_and_a_wrong_layout_is_no_error():
    torch.manual_seed(3)
    first, default = nn.MultiheadAttention(4, 1, batch_first=True), nn.MultiheadAttention(4, 1)
    default.load_state_dict(first.state_dict())
    assert not default.batch_first
    x = torch.randn(2, 3, 4)
    right, turned_back = first(x, x, x), default(*[x.transpose(0, 1)] * 3)
    torch.testing.assert_close(right[0], turned_back[0].transpose(0, 1))
    wrong = default(x, x, x)
    assert wrong[0].shape == right[0].shape and wrong[1].shape == (3, 2, 2)
    assert not torch.allclose(wrong[0], right[0], atol=0.01)


# ---------------------------------------------------------------- 17: register_buffer


def test_a_buffer_is_saved_and_moved_but_not_trained():
    layer = nn.Linear(2, 2)
    layer.register_buffer("saved", torch.zeros(2))
    layer.register_buffer("unsaved", torch.zeros(2), persistent=False)
    layer.plain = torch.zeros(2)
    assert {"saved", "unsaved", "plain"}.intersection(layer.state_dict()) == {"saved"}
    assert {"saved", "unsaved", "plain"}.isdisjoint(dict(layer.named_parameters()))
    layer.to(torch.float64)
    assert (layer.saved.dtype, layer.unsaved.dtype, layer.plain.dtype) == (torch.float64, torch.float64, torch.float32)


def test_minus_infinity_as_a_parameter_has_no_gradient_and_stays():
    mask = nn.Parameter(torch.full((3, 3), -torch.inf).triu(diagonal=1))
    scores, values = torch.randn(3, 3), torch.randn(3, 2)
    adam = torch.optim.Adam([mask], lr=0.05)
    for _ in range(3):
        adam.zero_grad()
        ((scores + mask).softmax(-1) @ values).square().sum().backward()
        adam.step()
    assert mask.isinf().sum() == 3 and not mask.isnan().any()
    assert mask.detach().tril().abs().max() > 0.05


# ---------------------------------------------------------------- 8: the scale


def test_the_function_divides_by_the_root_of_the_head_size():
    q, k, v = torch.randn(3, 1, 5, 64).unbind()
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v), (q @ k.mT / math.sqrt(64)).softmax(-1) @ v)
