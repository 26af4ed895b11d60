"""PyTorch's tensors, where PyTorch is installed."""

import numpy as np
import pytest
import rapt
from conftest import behind
from rapt import _rapt

torch = pytest.importorskip("torch")


@pytest.fixture
def tensors():
    torch.manual_seed(3)
    return [torch.randn(2, 4, 6, 8) for _ in range(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_tensors_are_read_where_they_lie_and_give_tensors(dtype, tensors):
    q, k, v = (x.to(getattr(torch, dtype)) for x in tensors)
    for x in (q, q.transpose(1, 2), q[:, ::2, 1:], q[1:, 2:3]):
        assert _rapt.lent(x)[:3] == (x.data_ptr(), dtype, tuple(x.shape))
    out = rapt.attention(q, k, v)
    assert type(out) is torch.Tensor and out.dtype is q.dtype and out.is_contiguous()
    expected = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)))
    assert (out.double() - expected).abs().max() < {"float64": 1e-12, "float32": 1e-5}.get(dtype, 2e-2)


def test_strided_tensors_give_what_their_copies_give(tensors):
    packed = torch.randn(2, 6, 3, 4, 8)
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (rapt.attention(q, k, v, causal=True) - expected).abs().max() < 1e-5


def test_masks_of_both_kinds(tensors):
    q, k, v = tensors
    mask = torch.rand(6, 6) > 0.3
    mask[0] = True
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert (rapt.attention(q, k, v, mask=rapt.Mask.keep(mask)) - expected).abs().max() < 1e-5
    assert (rapt.attention(q, k, v, mask=rapt.Mask.drop(~mask)) - expected).abs().max() < 1e-5
    with pytest.raises(ValueError, match="does not say what True means"):
        rapt.attention(q, k, v, mask=mask)


def test_everything_that_comes_back_is_a_tensor(tensors):
    result = rapt.attention(*tensors, return_lse=True, return_weights=True, captures=[rapt.Capture("raw")])
    for x in (result.out, result.lse, result.weights, result.captures[0]):
        assert type(x) is torch.Tensor


def test_gradients_are_those_of_autograd(tensors):
    q, k, v = (x.double().requires_grad_() for x in tensors)
    bias = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    dout = torch.randn_like(out)
    out.backward(dout)
    detached = [x.detach() for x in (q, k, v)]
    gradients = rapt.attention_backward(*detached, dout, mask=bias.detach(), gradients=["dquery", "dkey", "dvalue", "dmasks"])
    for mine, x in zip((*gradients[:3], gradients.dmasks[0]), (q, k, v, bias)):
        assert type(mine) is torch.Tensor
        assert (mine - x.grad).abs().max() < 1e-12


WINDOWS = {
    "causal": (rapt.Window(left=3, first=2), True),
    "both sides": (rapt.Window(left=2, right=1, first=3), False),
    "right only": (rapt.Window(right=1, first=5), False),
    "all first": (rapt.Window(left=0, first=100), True),
    "no limit": (rapt.Window(first=4), True),
    "a chunk and more": (rapt.Window(left=20, first=300), True),
}


@pytest.mark.parametrize("lengths", [(11, 11), (1, 30), (7, 12), (400, 700)])
@pytest.mark.parametrize("name", WINDOWS)
def test_first_keys_of_a_window_are_those_of_a_mask(name, lengths):
    """Output and gradients are PyTorch's with the same keys as a mask: in float64, and in float32 on the CPU engine."""
    window, causal = WINDOWS[name]
    torch.manual_seed(5)
    q, k, v = (torch.randn(2, 4, n, 8, dtype=torch.float64, requires_grad=True) for n in (lengths[0], *2 * lengths[1:]))
    i = torch.arange(lengths[0])[:, None] + lengths[1] - lengths[0]
    j = torch.arange(lengths[1])
    seen = torch.ones(lengths, dtype=torch.bool)
    if window.left is not None:
        seen &= j >= i - window.left
    if window.right is not None:
        seen &= j <= i + window.right
    seen |= j < window.first
    if causal:
        seen &= j <= i
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    dout = torch.randn_like(expected)
    expected.backward(dout)
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        mine = [x.detach().to(dtype) for x in (q, k, v, dout)]
        options = {"window": window, "causal": causal, "alignment": "bottom_right"}
        assert (rapt.attention(*mine[:3], **options) - expected).abs().max() < bound
        for gradient, x in zip(rapt.attention_backward(*mine, **options), (q, k, v)):
            assert (gradient - x.grad).abs().max() < bound


def test_what_requires_grad_is_refused_with_the_way_out(tensors):
    q, k, v = tensors
    for name, changed in (("query", q), ("key", k)):
        changed.requires_grad_()
        with pytest.raises(ValueError) as caught:
            rapt.attention(q, k, v)
        assert str(caught.value).startswith(f"attention: {name} requires grad")
        assert f"pass {name}.detach()" in str(caught.value)
        changed.requires_grad_(False)


def test_turned_signs_are_refused_with_the_way_out(tensors):
    q, k, v = tensors
    turned = torch.complex(q, q).conj().imag
    with pytest.raises(ValueError, match=r"query is a view with the negative bit set; pass query.resolve_neg\(\)"):
        rapt.attention(turned, k, v)
    assert torch.equal(rapt.attention(turned.resolve_neg(), k, v), rapt.attention(-q, k, v))


def test_subclasses_are_read_too(tensors):
    parameter = torch.nn.Parameter(tensors[0], requires_grad=False)
    assert _rapt.lent(parameter)[0] == tensors[0].data_ptr()


def test_out_is_written_in_place(tensors):
    out = torch.empty(2, 6, 4, 8).transpose(1, 2)
    assert rapt.attention(*tensors, out=out) is out
    assert torch.equal(out, rapt.attention(*tensors))


def test_tensors_and_arrays_may_be_mixed(tensors):
    q, k, v = tensors
    expected = rapt.attention(q, k, v)
    assert torch.equal(rapt.attention(q, k.numpy(), v), expected)
    np.testing.assert_array_equal(rapt.attention(q.numpy(), k, v), expected.numpy())
    lengths = torch.tensor([3, 6])
    assert torch.equal(rapt.attention(q, k, v, key_lengths=lengths), rapt.attention(q, k, v, key_lengths=[3, 6]))


def test_what_cannot_be_lent_is_refused(tensors):
    q, k, v = tensors
    for bad in (q.to("meta"), q.to_sparse()):
        with pytest.raises(ValueError, match="attention: query"):
            rapt.attention(bad, k, v)
    with pytest.raises(ValueError, match="query holds int64; rapt computes with"):
        rapt.attention(q.long(), k, v)
    with pytest.raises(ValueError, match="query holds complex64"):
        rapt.attention(torch.view_as_complex(q.reshape(2, 4, 6, 4, 2).contiguous()), k, v)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_tensor_on_a_cuda_device_is_refused(tensors):
    q, k, v = tensors
    with pytest.raises(ValueError, match="query is on cuda:0; rapt computes on the CPU"):
        rapt.attention(q.cuda(), k, v)


def test_results_lie_on_the_cpu_whatever_the_default_device(tensors):
    with torch.device("meta"):
        out = rapt.attention(*tensors)
    assert out.device.type == "cpu"


def test_reference_counts_come_back(tensors):
    import sys

    rapt.attention(*tensors)
    before = [sys.getrefcount(x) for x in tensors]
    for _ in range(10):
        rapt.attention(*tensors, return_lse=True)
    assert [sys.getrefcount(x) for x in tensors] == before


def test_heads_are_split_without_a_copy():
    x = torch.randn(2, 5, 12)
    heads = rapt.split_heads(x, 3)
    assert heads.data_ptr() == x.data_ptr() and heads.shape == (2, 3, 5, 4)
    assert torch.equal(rapt.combine_heads(heads), x)


def test_arrays_of_ours_become_tensors_without_a_copy(tmp_path):
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    rapt.save(tmp_path / "x.safetensors", {"x": x})
    ours = behind(rapt.load(tmp_path / "x.safetensors")["x"])
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == _rapt.lent(ours)[0]
    assert torch.equal(theirs, x)
