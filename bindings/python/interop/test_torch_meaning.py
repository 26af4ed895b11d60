"""rapt.torch.sdpa has the semantics of torch.nn.functional.scaled_dot_product_attention, even for odd shapes and empty
rows.

All differences in behaviour, each with its test below:

- A NaN or +inf in a query makes its own rows NaN. PyTorch's fused kernel gives 0 for them; its plain one gives NaN too.
- An infinite scale is refused. PyTorch gives NaN.
- A value that is shorter than the key is refused. PyTorch's fused kernel reads past its end.
- Dropout draws other weights from the same seed, and the same ones for any number of threads.
- Wrong arguments raise ValueError (some of them RuntimeError, by PyTorch's own functions); PyTorch raises RuntimeError
  or IndexError.
- There are no forward-mode gradients: an error says so. PyTorch's fused kernel has none either.
"""

import itertools

import pytest
import rapt
import rapt.torch
import torch
import torch.nn.functional as F
from rapt import _rapt
from rapt.torch import sdpa
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_support import DTYPES, Errors, answers, as_double, kept, leaf


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


def assert_same_meaning(*args, **kwargs):
    """Checks that outputs and gradients are PyTorch's."""
    args = [x.detach().clone().requires_grad_(x.is_floating_point()) if isinstance(x, torch.Tensor) else x
            for x in args]  # fmt: skip
    errors = Errors(args[0].dtype)
    ours = answers(sdpa, args, kwargs)
    theirs = answers(F.scaled_dot_product_attention, leaf(args), kwargs)
    exact = answers(F.scaled_dot_product_attention, as_double(args), kwargs)
    for kind, *results in zip(("out", "gradient"), ours, theirs, exact):
        errors.add(str([getattr(x, "shape", x) for x in args]), kind, *results)


def x(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


# ---------------------------------------------------------------- shapes

SHAPES = {
    "two dimensions": ((3, 4), (5, 4), (5, 6)),
    "three": ((2, 3, 4), (2, 5, 4), (2, 5, 6)),
    "four": ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6)),
    "five": ((2, 3, 2, 4, 8), (2, 3, 2, 5, 8), (2, 3, 2, 5, 6)),
    "seven": ((1, 2, 1, 3, 2, 4, 8), (1, 2, 1, 3, 2, 5, 8), (1, 2, 1, 3, 2, 5, 6)),
    "one batch row of keys for all": ((3, 2, 4, 8), (1, 2, 5, 8), (1, 2, 5, 8)),
    "one batch row of queries for all": ((1, 2, 4, 8), (3, 2, 5, 8), (3, 2, 5, 8)),
    "fewer dimensions of queries": ((2, 4, 8), (3, 2, 5, 8), (3, 2, 5, 8)),
    "fewer dimensions of keys": ((3, 2, 4, 8), (2, 5, 8), (5, 8)),
    "one head of keys for all": ((2, 4, 3, 8), (2, 1, 5, 8), (2, 1, 5, 8)),
    "one head of keys, all of values": ((2, 4, 3, 8), (2, 1, 5, 8), (2, 4, 5, 8)),
    "one head of queries for all": ((2, 1, 3, 8), (2, 4, 5, 8), (2, 4, 5, 8)),
    "five, broadcast": ((2, 1, 2, 4, 8), (1, 3, 2, 5, 8), (3, 1, 5, 6)),
    "no keys": ((2, 2, 3, 4), (2, 2, 0, 4), (2, 2, 0, 4)),
    "no queries": ((2, 2, 0, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
    "no batch rows": ((0, 2, 3, 4), (0, 2, 3, 4), (0, 2, 3, 4)),
    "no heads": ((2, 0, 3, 4), (2, 0, 3, 4), (2, 0, 3, 4)),
    "heads of no numbers": ((2, 2, 3, 0), (2, 2, 5, 0), (2, 2, 5, 4)),
    "values of no numbers": ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 0)),
    "five, no batch rows": ((0, 3, 2, 4, 8), (0, 3, 2, 5, 8), (0, 3, 2, 5, 8)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_any_number_of_dimensions_that_broadcast(shapes, causal):
    assert_same_meaning(*(x(*shape) for shape in shapes), is_causal=causal)


@pytest.mark.parametrize("heads", [(6, 2, 2), (6, 2, 3), (6, 1, 1), (6, 6, 6), (6, 3, 6)])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_grouped_heads(heads, batch):
    q, k, v = (x(*batch, n, 4, 8) for n in heads)
    assert_same_meaning(q, k, v, enable_gqa=True)


@pytest.mark.parametrize("queries, keys", [(3, 3), (2, 5), (5, 2), (1, 4), (4, 1)])
def test_causal_is_top_left(queries, keys):
    assert_same_meaning(x(1, 2, queries, 4), x(1, 2, keys, 4), x(1, 2, keys, 4), is_causal=True)


@pytest.mark.parametrize("scale", [None, 0.0, 0.3, -1.0, 5, 1e-30])
def test_scales(scale):
    assert_same_meaning(x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4), scale=scale)


# ---------------------------------------------------------------- masks

MASKS = [(3, 5), (1, 5), (3, 1), (1, 1), (2, 3, 5), (1, 3, 5), (4, 2, 3, 5), (4, 1, 3, 5), (1, 2, 3, 5), (4, 1, 1, 5),
         (1, 1, 1, 5), (4, 2, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_that_broadcast(shape, kind):
    mask = torch.rand(shape) > 0.4 if kind == "bool" else x(*shape)
    assert_same_meaning(x(4, 2, 3, 8), x(4, 2, 5, 8), x(4, 2, 5, 8), mask)


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (3, 1, 3, 5), (2, 1, 2, 3, 5), (2, 3, 1, 1, 5), (1, 1, 1, 3, 5)])
def test_masks_of_five_dimensions(shape):
    assert_same_meaning(x(2, 3, 2, 3, 8), x(2, 3, 2, 5, 8), x(2, 3, 2, 5, 8), x(*shape))


def test_masks_with_grouped_heads():
    assert_same_meaning(x(2, 6, 3, 8), x(2, 2, 5, 8), x(2, 2, 5, 8), x(2, 6, 3, 5), enable_gqa=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_of_float32_beside_every_dtype(dtype):
    q, k, mask = x(2, 2, 3, 8).to(dtype), x(2, 2, 5, 8).to(dtype), x(3, 5, dtype=torch.float32)
    exact = F.scaled_dot_product_attention(q.double(), k.double(), k.double(), mask.double())
    theirs = F.scaled_dot_product_attention(q, k, k, mask)
    errors = Errors(dtype)
    errors.add("mask", "out", [sdpa(q, k, k, mask)], [theirs], [exact])
    errors.check()


@pytest.mark.parametrize("backend", [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_row_that_sees_nothing_is_zero_and_has_zero_gradients(kind, backend):
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1] = False
    if kind == "float":
        mask = torch.zeros(3, 5, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    with sdpa_kernel(backend):
        q = x(1, 2, 3, 4).requires_grad_()
        k = x(1, 2, 5, 4).requires_grad_()
        theirs = F.scaled_dot_product_attention(q, k, k, mask)
        expected = torch.autograd.grad(theirs.sum(), (q, k))
    out = sdpa(q, k, k, mask)
    torch.testing.assert_close(out, theirs)
    assert (out[:, :, 1] == 0).all()
    gradients = torch.autograd.grad(out.sum(), (q, k))
    assert (gradients[0][:, :, 1] == 0).all()
    for mine, peer in zip(gradients, expected):
        torch.testing.assert_close(mine, peer)


def test_infinite_and_missing_numbers_in_masks_keys_and_values():
    for bad, place in itertools.product((torch.inf, -torch.inf, torch.nan), range(3)):
        q, k, v, mask = x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4), x(3, 5)
        (k, v, mask)[place].view(-1)[3] = bad
        with sdpa_kernel(SDPBackend.MATH):
            theirs = F.scaled_dot_product_attention(q, k, v, mask)
        torch.testing.assert_close(sdpa(q, k, v, mask), theirs, equal_nan=True)


# ---------------------------------------------------------------- differences


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_difference_a_query_that_is_not_finite_gives_nan(bad):
    q, k = x(1, 1, 3, 4, dtype=torch.float32), x(1, 1, 5, 4, dtype=torch.float32)
    q[0, 0, 1] = bad
    out = sdpa(q, k, k)
    with sdpa_kernel(SDPBackend.MATH):
        torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, k), equal_nan=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        fused = F.scaled_dot_product_attention(q, k, k)
    assert out[0, 0, 1].isnan().all() and not fused[0, 0, 1].isnan().any()


def test_difference_an_infinite_scale_is_refused():
    q = x(1, 1, 3, 4)
    assert F.scaled_dot_product_attention(q, q, q, scale=torch.inf).isnan().all()
    with pytest.raises(ValueError, match="scale is inf; it must be finite"):
        sdpa(q, q, q, scale=torch.inf)


def test_difference_a_value_shorter_than_the_key_is_refused():
    q = x(1, 1, 3, 4)
    with pytest.raises(ValueError, match="value has length 2, key has 3"):
        sdpa(q, q, q[:, :, :2])


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")  # PyTorch calls it itself
def test_difference_no_forward_mode_gradients():
    q = x(1, 1, 3, 4)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        with pytest.raises(NotImplementedError, match="no forward-mode gradients"):
            sdpa(dual, q, q)
        with pytest.raises(NotImplementedError, match="no forward-mode gradients"):
            sdpa(q, q, dual, torch.zeros(3, 3))


WRONG = {
    "sdpa: attn_mask and is_causal cannot be combined": lambda q: ((q, q, q, q[0, 0] @ q[0, 0].T), dict(is_causal=True)),
    "must have at least two dimensions": lambda q: ((q[0, 0, 0], q, q), {}),
    "key is torch.float32": lambda q: ((q, q.float(), q), {}),
    "query is torch.int64": lambda q: ((q.long(), q.long(), q.long(), q[0, 0, :, :3]), {}),
    "query is torch.int64; rapt computes": lambda q: ((q.long(), q.long(), q.long()), {}),
    "attn_mask is torch.int64": lambda q: ((q, q, q, torch.ones(3, 3).long()), {}),
    "attn_mask has 5 dimensions": lambda q: ((q, q, q, torch.ones(1, 1, 1, 3, 3)), {}),
    "does not broadcast to": lambda q: ((q, q, q, torch.ones(2, 3)), {}),
    "dropout_p is 1.5": lambda q: ((q, q, q), dict(dropout_p=1.5)),
    "dropout_p is -0.5": lambda q: ((q, q, q), dict(dropout_p=-0.5)),
    "key has 2 heads and value has 2": lambda q: ((q, q[:, :2], q[:, :2]), dict(enable_gqa=True)),
    "broadcast": lambda q: ((q, q[:, :2], q[:, :2]), {}),
    "key has head size 3": lambda q: ((q, q[..., :3], q), {}),
    "key on meta": lambda q: ((q, q.to("meta"), q), {}),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_pytorch_refuses_is_refused(text):
    args, kwargs = WRONG[text](x(1, 3, 3, 4))
    with pytest.raises((RuntimeError, IndexError, NotImplementedError)):
        F.scaled_dot_product_attention(*args, **kwargs)
    with pytest.raises((ValueError, RuntimeError), match=text):
        sdpa(*args, **kwargs)


# ---------------------------------------------------------------- dropout


def test_dropout_follows_manual_seed_and_the_way_back_drops_the_same():
    q, k, v = (x(2, 3, 7, 8).requires_grad_() for _ in range(3))
    outs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(sdpa(q, k, v, dropout_p=0.4))
    assert torch.equal(outs[0], outs[1]) and not torch.equal(outs[0], outs[2])
    after = sdpa(q, k, v, dropout_p=0.4)
    assert not torch.equal(outs[2], after)  # the generator advances

    keep = kept(0.4, (2, 3, 7, 7), seed=1)
    weights = torch.softmax(q @ k.mT / 8**0.5, -1) * keep / 0.6
    torch.testing.assert_close(outs[0], weights @ v)
    dout = x(2, 3, 7, 8)
    for mine, peer in zip(torch.autograd.grad(outs[0], (q, k, v), dout),
                          torch.autograd.grad(weights @ v, (q, k, v), dout)):  # fmt: skip
        torch.testing.assert_close(mine, peer)


def test_dropout_drops_as_many_as_it_should():
    q = torch.zeros(4, 8, 64, 4)
    kept_share = float((sdpa(q, q, torch.ones(4, 8, 64, 4), dropout_p=0.3)[..., 0] * 0.7).mean())
    assert abs(kept_share - 0.7) < 5 * (0.3 * 0.7 / (4 * 8 * 64 * 64)) ** 0.5


def test_at_rate_one_everything_is_dropped():
    assert_same_meaning(x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), None, 1.0)


def test_difference_dropout_is_the_same_for_any_number_of_threads():
    q = torch.randn(2, 4, 300, 16)
    outs, before = [], torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        outs.append(sdpa(q, q, q, dropout_p=0.2))
    torch.set_num_threads(before)
    assert torch.equal(*outs)


# ---------------------------------------------------------------- modes of PyTorch


def test_no_grad_and_inference_mode_record_nothing():
    q = x(1, 2, 3, 4).requires_grad_()
    expected = sdpa(q, q, q)
    assert expected.requires_grad
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            out = sdpa(q, q, q)
            masked = sdpa(q, q, q, torch.zeros(3, 3))
        assert not out.requires_grad and not masked.requires_grad
        assert out.is_inference() == (mode is torch.inference_mode)
        assert torch.equal(out, expected) and torch.equal(masked, expected)


def test_parameters_and_detached_tensors_mix():
    q, k = torch.nn.Parameter(x(1, 2, 3, 4)), x(1, 2, 3, 4)
    sdpa(q, k, k).sum().backward()
    assert q.grad is not None and k.grad is None
    mask = x(3, 3).requires_grad_()
    sdpa(k, k, k, mask).sum().backward()  # only the mask
    peer = mask.detach().clone().requires_grad_()
    F.scaled_dot_product_attention(k, k, k, peer).sum().backward()
    torch.testing.assert_close(mask.grad, peer.grad)


def test_autocast_casts_as_pytorchs_does():
    q = torch.randn(1, 2, 3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert F.scaled_dot_product_attention(q, q, q).dtype == torch.bfloat16
        out = sdpa(q, q, q, torch.zeros(3, 3))
        assert sdpa(q.double(), q.double(), q.double()).dtype == torch.float64
    assert out.dtype == torch.bfloat16
    half = q.bfloat16()
    assert torch.equal(out, sdpa(half, half, half))


def test_meta_tensors_give_shapes():
    q, k = torch.empty(2, 3, 4, 8, device="meta"), torch.empty(2, 3, 5, 8, device="meta")
    out = sdpa(q, k, k)
    assert out.shape == (2, 3, 4, 8) and out.is_meta


def test_views_with_turned_signs_are_read_right():
    z = torch.randn(1, 2, 3, 4, dtype=torch.complex64).conj().imag
    assert z.is_neg()
    assert torch.equal(sdpa(z, z, z), sdpa(z.clone(), z.clone(), z.clone()))


# ---------------------------------------------------------------- memory


@pytest.fixture
def handed(monkeypatch):
    """Records the arguments that reach the extension module."""
    seen, attention = [], _rapt.attention

    def spy(query, key, value, cache, options, *rest):
        masks = [mask.array for mask in options[0] or ()]
        seen.append([x.data_ptr() for x in (query, key, value, *masks)])
        return attention(query, key, value, cache, options, *rest)

    monkeypatch.setattr(_rapt, "attention", spy)
    return seen


@pytest.mark.parametrize("grad", [False, True])
def test_nothing_is_copied_up_to_four_dimensions(handed, grad):
    packed = torch.randn(2, 5, 3, 4, 8, requires_grad=grad)  # (B, L, 3, H, D), as one product writes them
    q, k, v = (packed[:, :, n].transpose(1, 2) for n in range(3))
    mask = torch.randn(7, 9)[1:6, 2:7]
    for args in ((q, k, v), (q, k, v, mask), (q[0], k[0], v[0]), (q[0, 0], k[0, 0], v[0, 0]), (q, k[:1], v[:1]),
                 (q, k[:, :1], v[:, :1], mask)):  # fmt: skip
        handed.clear()
        sdpa(*args)
        assert handed == [[x.data_ptr() for x in args]]


def test_the_result_lies_as_pytorchs_does():
    for q in (torch.randn(2, 3, 5, 8), torch.randn(2, 5, 3, 8).transpose(1, 2)):
        assert sdpa(q, q, q).stride() == F.scaled_dot_product_attention(q, q, q).stride()


def test_the_result_has_the_bits_of_rapt_attention():
    q, k = torch.randn(2, 4, 33, 16), torch.randn(2, 4, 70, 16)
    operands = (q, k, k, None, None, None, None, None, None)
    plain = rapt.attention(q, k, k)
    assert torch.equal(sdpa(q, k, k), plain)
    assert torch.equal(sdpa(q.clone().requires_grad_(), k, k), plain)
    assert torch.equal(torch.ops.rapt.attention(*operands, 0.0, False, None, "none", 0.0, None, None)[0], plain)
    turned = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(sdpa(turned, k, k), plain)


def test_threads_are_at_most_what_both_libraries_allow(monkeypatch):
    seen, attention = [], _rapt.attention
    monkeypatch.setattr(_rapt, "attention", lambda *a: (seen.append(a[4][-1]), attention(*a))[1])
    q, before = torch.randn(1, 1, 2, 4), (torch.get_num_threads(), rapt.thread_count())
    try:
        for theirs, ours in ((1, 2), (2, 1), (2, 2)):
            torch.set_num_threads(theirs)
            rapt.set_thread_count(ours)
            sdpa(q, q, q)
            sdpa(q, q, q, torch.zeros(2, 2))
    finally:
        torch.set_num_threads(before[0])
        rapt.set_thread_count(before[1])
    assert seen == [1, 1, 1, 1, 2, 2]
