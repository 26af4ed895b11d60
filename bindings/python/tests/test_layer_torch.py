"""rapt.MultiheadAttention compared with torch.nn.MultiheadAttention: the same calls, results and messages."""

import itertools

import numpy as np
import pytest
from layer_cases import CASES

import rapt

torch = pytest.importorskip("torch")

CONSTRUCTORS = [
    {"bias": bias, "add_bias_kv": kv, "add_zero_attn": zero, "batch_first": first, **sizes}
    for bias, kv, zero, first in itertools.product([True, False], repeat=4)
    for sizes in ({}, {"kdim": 5}, {"kdim": 12, "vdim": 7})
]


def pair(dtype=torch.float32, seed=0, **arguments):
    """A PyTorch layer with no parameter at its default, and ours with the same parameters."""
    torch.manual_seed(seed)
    theirs = torch.nn.MultiheadAttention(12, 3, **arguments, dtype=dtype).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.uniform_(-1, 1)
    ours = rapt.MultiheadAttention(12, 3, **arguments, dtype=dtype).eval()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def tokens(layer, rows, queries, keys, dtype=torch.float32):
    def draw(length, size):
        return torch.randn(*((rows, length) if layer.batch_first else (length, rows)), size, dtype=dtype)

    return draw(queries, 12), draw(keys, layer.kdim), draw(keys, layer.vdim)


def close(found, expected, bound):
    assert type(found) is torch.Tensor and found.shape == expected.shape
    error = (found.double() - expected.double()).norm() / expected.double().norm()
    assert error <= bound, float(error)


@pytest.mark.parametrize("arguments", CONSTRUCTORS, ids=str)
def test_every_way_to_make_one(arguments):
    theirs, ours = pair(**arguments)
    query, key, value = tokens(theirs, 2, 4, 6)
    for average in (True, False):
        with torch.no_grad():
            expected = theirs(query, key, value, average_attn_weights=average)
        for found, wanted in zip(ours(query, key, value, average_attn_weights=average), expected, strict=True):
            close(found, wanted, 2e-6)
    out, weights = ours(query, key, value, need_weights=False)
    assert weights is None
    close(out, expected[0], 2e-6)


def masks(kind, *shape):
    hidden = torch.rand(*shape) < 0.4
    hidden[..., 0] = False
    return hidden if kind == "bool" else torch.where(hidden, -torch.inf, torch.randn(*shape))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("attn_mask", [None, (4, 6), (2 * 3, 4, 6)])
@pytest.mark.parametrize("key_padding_mask", [None, (2, 6)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_every_mask(batch_first, attn_mask, key_padding_mask, kind):
    theirs, ours = pair(batch_first=batch_first)
    query, key, value = tokens(theirs, 2, 4, 6)
    given = {
        "attn_mask": None if attn_mask is None else masks(kind, *attn_mask),
        "key_padding_mask": None if key_padding_mask is None else masks(kind, *key_padding_mask),
    }
    with torch.no_grad():
        expected = theirs(query, key, value, **given)
    for found, wanted in zip(ours(query, key, value, **given), expected, strict=True):
        close(found, wanted, 2e-6)


def test_without_a_batch():
    theirs, ours = pair()
    x = torch.randn(5, 12)
    given = {"attn_mask": masks("bool", 3, 5, 5), "key_padding_mask": masks("bool", 5)}
    for average in (True, False):
        with torch.no_grad():
            expected = theirs(x, x, x, **given, average_attn_weights=average)
        for found, wanted in zip(ours(x, x, x, **given, average_attn_weights=average), expected, strict=True):
            close(found, wanted, 2e-6)


def test_causal_with_the_mask_and_without():
    theirs, ours = pair()
    x = torch.randn(6, 2, 12)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6)
    for need_weights in (True, False):
        with torch.no_grad():
            expected, _ = theirs(x, x, x, attn_mask=mask, is_causal=True, need_weights=need_weights)
        close(ours(x, x, x, attn_mask=mask, is_causal=True, need_weights=need_weights)[0], expected, 2e-6)
        close(ours(x, x, x, is_causal=True, need_weights=need_weights)[0], expected, 2e-6)
        close(ours(x, x, x, causal=True, need_weights=need_weights)[0], expected, 2e-6)


@pytest.mark.parametrize("kind, bound", [("float64", 1e-13), ("float32", 2e-6), ("bfloat16", 1e-2), ("float16", 2e-3)])
def test_every_type(kind, bound):
    dtype = getattr(torch, kind)
    exact, _ = pair(torch.float64)
    _, ours = pair(dtype)
    assert ours.config.dtype == kind
    ours.load_state_dict(exact.state_dict())  # rounded to the layer's type
    x = torch.randn(5, 2, 12).to(dtype)
    with torch.no_grad():
        expected, _ = exact(x.double(), x.double(), x.double())
    out, weights = ours(x)
    assert out.dtype == dtype
    assert weights.dtype == (torch.float64 if kind == "float64" else torch.float32)
    close(out, expected, bound)


@pytest.mark.parametrize("arguments", CONSTRUCTORS, ids=str)
def test_state_dicts_go_both_ways(arguments):
    theirs, ours = pair(**arguments)
    state = ours.state_dict(library="torch")
    assert list(state) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        assert torch.equal(state[name], value)
    again = torch.nn.MultiheadAttention(12, 3, **arguments)
    assert again.load_state_dict(state).missing_keys == []
    fresh = rapt.MultiheadAttention(12, 3, **arguments, seed=5)
    fresh.load_state_dict(again.state_dict())
    for (name, one), (_, other) in zip(ours.named_parameters(), fresh.named_parameters(), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_parameters_of_pytorch_may_require_gradients():
    theirs, ours = pair()
    ours.load_state_dict(dict(theirs.named_parameters()))
    ours.set_parameter("in_proj_bias", theirs.in_proj_bias)


@pytest.mark.parametrize("change", ["missing", "unexpected", "both", "shape"])
def test_what_does_not_fit_is_said_as_pytorch_says_it(change):
    theirs, ours = pair()
    state = dict(theirs.state_dict())
    if change in ("missing", "both"):
        del state["out_proj.bias"], state["in_proj_weight"]
    if change in ("unexpected", "both"):
        state |= {"W_q.weight": torch.zeros(3), "W_k.weight": torch.zeros(3)}
    if change == "shape":
        state["out_proj.weight"] = torch.zeros(5, 12)
    before = ours.state_dict()
    with pytest.raises(RuntimeError) as expected:
        theirs.load_state_dict(state)
    with pytest.raises(RuntimeError) as found:
        ours.load_state_dict(state)
    assert isinstance(found.value, ValueError)
    words = str(expected.value).replace("torch.Size([5, 12])", "(5, 12)").replace("torch.Size([12, 12])", "(12, 12)")
    assert str(found.value) == words
    for name, value in ours.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    if change != "shape":
        loose, ours_loose = theirs.load_state_dict(state, strict=False), ours.load_state_dict(state, strict=False)
        assert (loose.missing_keys, loose.unexpected_keys) == tuple(ours_loose)


def test_constructor_and_forward_have_pytorchs_arguments_in_its_order():
    import inspect

    def positional(function):
        found = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        return {p.name: p.default for p in found}

    theirs = torch.nn.MultiheadAttention
    assert list(positional(rapt.MultiheadAttention.__init__).items()) == list(positional(theirs.__init__).items())
    ours = positional(rapt.MultiheadAttention.forward)
    expected = positional(theirs.forward)
    assert list(ours) == list(expected)
    assert {name: ours[name] for name in list(ours)[4:]} == {name: expected[name] for name in list(expected)[4:]}


def test_training_is_on_until_it_is_turned_off():
    theirs, ours = torch.nn.MultiheadAttention(4, 1, dropout=0.5), rapt.MultiheadAttention(4, 1, dropout=0.5)
    assert ours.training == theirs.training is True
    assert ours.eval() is ours and ours.training is False
    assert ours.train() is ours and ours.training is True
    assert ours.dropout == theirs.dropout


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("arguments", CONSTRUCTORS[::5], ids=str)
def test_gradients(arguments, average):
    theirs, ours = pair(torch.float64, **arguments)
    inputs = [x.requires_grad_() for x in tokens(theirs, 2, 4, 6, torch.float64)]
    mask = masks("float", 4, 6).double()
    out, weights = theirs(*inputs, attn_mask=mask, average_attn_weights=average)
    dout, dweights = torch.randn_like(out), torch.randn_like(weights)
    torch.autograd.backward([out, weights], [dout, dweights])
    ours(*(x.detach() for x in inputs), attn_mask=mask, average_attn_weights=average, keep=True)
    found = ours.backward(dout, dweights)
    for gradient, x in zip((found.dquery, found.dkey, found.dvalue), inputs, strict=True):
        close(gradient, x.grad, 1e-10)
    for name, parameter in theirs.named_parameters():
        close(torch.from_numpy(found.parameters[name]), parameter.grad, 1e-10)


def test_gradients_of_self_attention_are_all_the_querys():
    theirs, ours = pair(torch.float64)
    x = torch.randn(5, 2, 12, dtype=torch.float64, requires_grad=True)
    out, _ = theirs(x, x, x)
    dout = torch.randn_like(out)
    out.backward(dout)
    for call in (lambda x: ours(x, keep=True), lambda x: ours(x, x, x, keep=True)):
        call(x.detach())
        found = ours.backward(dout)
        assert found.dkey is None and found.dvalue is None
        close(found.dquery, x.grad, 1e-10)


def test_stored_calls_answer_alike_for_tensors():
    for case in CASES[::40]:
        layer = case.fill(rapt.MultiheadAttention(**case.args, dtype="float32"))
        numpy = case.run(layer, lambda x: x if x.dtype == bool else x.astype(np.float32))
        torch_ = case.run(layer, lambda x: torch.from_numpy(x if x.dtype == bool else x.astype(np.float32)))
        for one, other in zip(numpy, torch_, strict=True):
            if one is None:
                assert other is None
            else:
                assert type(other) is torch.Tensor
                np.testing.assert_array_equal(one, other.numpy())
