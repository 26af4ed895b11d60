"""rapt.torch.MultiheadAttention as a replacement for torch.nn.MultiheadAttention.

All differences in behaviour, each with its test below:

- A query that sees no key gives 0. PyTorch gives NaN if weights are requested, and 0 otherwise.
- Dropout draws other weights from the same seed.
- Wrong arguments raise ValueError; PyTorch raises AssertionError or RuntimeError.
"""

import copy
import io
import pickle

import pytest
import rapt.torch
import torch
from rapt import _rapt
from torch_support import Errors, answers, as_double, dropping, kept, leaf

SIZE, HEADS = 12, 3


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(22)


def pair(dtype=torch.float64, training=True, **options):
    """PyTorch's layer and ours, with the same parameters, none of which is zero."""
    theirs = torch.nn.MultiheadAttention(SIZE, HEADS, dtype=dtype, **options).train(training)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    ours = rapt.torch.MultiheadAttention(SIZE, HEADS, dtype=dtype, **options).train(training)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def assert_same_layer(theirs, ours, *args, **kwargs):
    """Compares outputs, weights and gradients, including those of the parameters."""
    results = [answers(layer, leaf(args), leaf(kwargs), layer.parameters()) for layer in (ours, theirs)]
    double = copy.deepcopy(theirs).double()
    exact = answers(double, as_double(args), as_double(kwargs), double.parameters())
    errors = Errors(args[0].dtype)
    for kind, *three in zip(("out", "gradient"), *results, exact):
        errors.add(str(kwargs), kind, *three)
    errors.check()


def tokens(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


LAYERS = {
    "plain": {},
    "no bias": dict(bias=False),
    "batch first": dict(batch_first=True),
    "other sizes": dict(kdim=5, vdim=7),
    "key size alone": dict(kdim=5, bias=False),
    "more keys": dict(add_bias_kv=True, add_zero_attn=True),
    "a key of zeros": dict(add_zero_attn=True, batch_first=True),
    "biases and sizes": dict(add_bias_kv=True, kdim=4, vdim=4, batch_first=True),
}
WEIGHTS = {
    "no weights": dict(need_weights=False),
    "mean": dict(need_weights=True),
    "per head": dict(need_weights=True, average_attn_weights=False),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_every_option_with_a_batch_and_without(options, weights, training):
    theirs, ours = pair(training=training, **options)
    queries, keys, batch = 4, 6, 2
    sizes = (SIZE, options.get("kdim", SIZE), options.get("vdim", SIZE))
    lengths = (queries, keys, keys)
    for shape in ([(batch, n) if options.get("batch_first") else (n, batch) for n in lengths], [(n,) for n in lengths]):
        assert_same_layer(theirs, ours, *(tokens(*n, size) for n, size in zip(shape, sizes)), **weights)
    if sizes == (SIZE, SIZE, SIZE):
        x, y = tokens(5, 5, SIZE), tokens(5, 5, SIZE)
        assert_same_layer(theirs, ours, x, x, x, **weights)  # self-attention
        assert_same_layer(theirs, ours, x, y, y, **weights)
        assert_same_layer(theirs, ours, x, y, x, **weights)


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask and attn_mask is deprecated")
@pytest.mark.parametrize("options", [{}, dict(add_bias_kv=True, add_zero_attn=True, batch_first=True)])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_masks_of_every_kind(options, weights):
    theirs, ours = pair(**options)
    queries, keys, batch = 4, 6, 2
    shape = (batch, -1) if options else (-1, batch)
    x, y = (tokens(*(n if size < 0 else size for size in shape), SIZE) for n in (queries, keys))
    hidden = torch.rand(queries, keys) > 0.6
    hidden[:, 0] = False
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    added, per_head = tokens(queries, keys), tokens(batch * HEADS, queries, keys)
    for attn_mask in (None, hidden, added, per_head, hidden.expand(batch * HEADS, queries, keys), added.detach()[:, :]):
        for key_padding_mask in (None, padding, tokens(batch, keys)):
            assert_same_layer(theirs, ours, x, y, y, attn_mask=attn_mask, key_padding_mask=key_padding_mask, **weights)


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask and attn_mask is deprecated")
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_masks_without_a_batch(weights):
    theirs, ours = pair()
    x = tokens(5, SIZE)
    padding = torch.tensor([False, False, True, False, True])
    assert_same_layer(theirs, ours, x, x, x, key_padding_mask=padding, attn_mask=tokens(HEADS, 5, 5), **weights)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("padded", [False, True])
def test_is_causal_is_a_hint_about_the_mask(weights, padded):
    theirs, ours = pair()
    x = tokens(5, 2, SIZE)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    padding = torch.tensor([[0.0] * 5, [0.0] * 4 + [-torch.inf]], dtype=torch.float64) if padded else None
    assert_same_layer(theirs, ours, x, x, x, attn_mask=mask, is_causal=True, key_padding_mask=padding, **weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_dtype(dtype):
    theirs, ours = pair(dtype)
    x = tokens(33, 4, SIZE, dtype=dtype)
    assert_same_layer(theirs, ours, x, x, x, need_weights=False)


# ---------------------------------------------------------------- differences


def test_difference_a_query_that_sees_no_key_gives_zero():
    theirs, ours = pair(bias=False, training=False)
    x, hidden = tokens(3, 1, SIZE), torch.zeros(3, 3, dtype=torch.bool)
    hidden[1] = True
    assert theirs(x, x, x, attn_mask=hidden)[0][1].isnan().all()
    out, weights = ours(x, x, x, attn_mask=hidden)
    assert (out[1] == 0).all() and (weights[0, 1] == 0).all()
    torch.testing.assert_close(out, theirs(x, x, x, attn_mask=hidden, need_weights=False)[0])
    out.sum().backward()
    assert x.grad.isfinite().all()


def test_difference_dropout_draws_other_weights(monkeypatch):
    theirs, ours = pair(dropout=0.4)
    x = tokens(5, 2, SIZE)
    keep = kept(0.4, (2, HEADS, 5, 5), seed=9)
    torch.manual_seed(9)
    mine = answers(ours, (x, x, x), dict(average_attn_weights=False), ours.parameters())
    with dropping(keep, monkeypatch):
        peer = answers(theirs, (x, x, x), dict(average_attn_weights=False), theirs.parameters())
    for a, b in zip((*mine[0], *mine[1]), (*peer[0], *peer[1])):
        torch.testing.assert_close(a, b)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(x, x, x), theirs(x, x, x))


def test_everything_dropped():
    theirs, ours = pair(dropout=1.0)
    x = tokens(5, 2, SIZE)
    torch.testing.assert_close(ours(x, x, x), theirs(x, x, x))


WRONG = {
    "they must have three": lambda layer, x: layer(x[0], x, x),
    "is a hint about attn_mask": lambda layer, x: layer(x, x, x, is_causal=True),
    "attn_mask is (5, 4)": lambda layer, x: layer(x, x, x, attn_mask=torch.zeros(5, 4)),
    "key_padding_mask is (2, 4)": lambda layer, x: layer(x, x, x, key_padding_mask=torch.zeros(2, 4) > 0),
    "a mask is torch.int64": lambda layer, x: layer(x, x, x, attn_mask=torch.zeros(5, 5).long()),
    "query has embedding size 4": lambda layer, x: layer(x[..., :4], x, x),
    "must agree in length": lambda layer, x: layer(x, x, x[:3]),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_pytorch_refuses_is_refused(text):
    theirs, ours = pair()
    with pytest.raises((AssertionError, RuntimeError)):
        WRONG[text](theirs, tokens(5, 2, SIZE))
    with pytest.raises(ValueError) as error:
        WRONG[text](ours, tokens(5, 2, SIZE))
    assert text in str(error.value)


# ---------------------------------------------------------------- a module among modules


@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_the_state_dict_and_the_first_values_are_pytorchs(options):
    def made(kind):
        torch.manual_seed(4)
        return kind(SIZE, HEADS, **options)

    def values(layer):
        return {name: x.clone() for name, x in layer.state_dict().items()}

    layers = [made(kind) for kind in (torch.nn.MultiheadAttention, rapt.torch.MultiheadAttention)]
    first = [values(layer) for layer in layers]
    for layer in layers:
        torch.manual_seed(5)
        layer._reset_parameters()
    second = [values(layer) for layer in layers]
    for theirs, ours in (first, second):
        assert list(ours) == list(theirs)
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_it_is_copied_pickled_and_saved():
    _, layer = pair(training=False)
    x = tokens(3, 2, SIZE)
    expected = layer(x, x, x)[0]
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), torch.load(file, weights_only=False)):
        assert type(other) is rapt.torch.MultiheadAttention
        assert torch.equal(other(x, x, x)[0], expected)


@pytest.fixture
def calls(monkeypatch):
    seen, attention = [], _rapt.attention
    monkeypatch.setattr(_rapt, "attention", lambda *a: (seen.append(1), attention(*a))[1])
    return seen


@pytest.mark.parametrize("training", [True, False])
def test_within_an_encoder_layer_it_is_called_in_training_and_evaluation(calls, training):
    theirs = torch.nn.TransformerEncoderLayer(SIZE, 4, 16, dropout=0.0, batch_first=True).train(training)
    ours = copy.deepcopy(theirs)
    ours.self_attn = rapt.torch.MultiheadAttention(SIZE, 4, batch_first=True).train(training)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 5, SIZE)
    with torch.set_grad_enabled(training):
        torch.testing.assert_close(ours(x), theirs(x))
    assert len(calls) == 1


@pytest.mark.parametrize("kdim", [None, 6])
def test_it_says_whether_its_projections_are_packed(kdim):
    layer = rapt.torch.MultiheadAttention(SIZE, HEADS, kdim=kdim)
    assert layer._qkv_same_embed_dim == (layer.in_proj_weight is not None) == (kdim is None)
    layer._reset_parameters()
    assert len(layer.out_proj._forward_pre_hooks) == 1  # a hook, which disables PyTorch's fast path


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("replaced", ["before", "after"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("passed", ["as it is", "by deepcopy", "by pickle"])
def test_within_an_encoder_in_evaluation_it_is_called(calls, padded, replaced, passed):
    """The encoder converts padded tokens to nested tensors. (It has a fast path only for an even number of heads.)"""
    layer = torch.nn.TransformerEncoderLayer(SIZE, 4, 16, batch_first=True)
    theirs = torch.nn.TransformerEncoder(layer, 2).eval()
    if replaced == "before":
        layer.self_attn = rapt.torch.MultiheadAttention(SIZE, 4, batch_first=True)
    ours = torch.nn.TransformerEncoder(layer, 2).eval()
    if replaced == "after":
        for layer in ours.layers:
            layer.self_attn = rapt.torch.MultiheadAttention(SIZE, 4, batch_first=True).eval()
    ours.load_state_dict(theirs.state_dict())
    if passed == "by deepcopy":
        ours = copy.deepcopy(ours)
    elif passed == "by pickle":
        ours = pickle.loads(pickle.dumps(ours))
    x = torch.randn(2, 5, SIZE)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if padded else None
    with torch.no_grad():
        expected = theirs(x, src_key_padding_mask=padding)
        assert calls == []
        torch.testing.assert_close(ours(x, src_key_padding_mask=padding), expected)
    assert len(calls) == 2


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_of_nested_tensors_with_weights_pytorch_decides(calls):
    theirs = torch.nn.MultiheadAttention(SIZE, 4, batch_first=True).eval()
    ours = rapt.torch.MultiheadAttention(SIZE, 4, batch_first=True).eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.nested.nested_tensor([torch.randn(n, SIZE) for n in (3, 5)])
    with torch.no_grad():
        for mine, peer in zip(ours(x, x, x), theirs(x, x, x)):
            torch.testing.assert_close(mine.to_padded_tensor(0.0) if mine.is_nested else mine,
                                       peer.to_padded_tensor(0.0) if peer.is_nested else peer)  # fmt: skip
    assert calls == []


def test_self_attention_reads_what_one_product_left(calls):
    """q, k and v are views of one tensor: rapt gets them without a copy."""
    _, layer = pair(training=False, batch_first=True)
    pointers, attention = [], _rapt.attention

    def spy(query, key, value, *rest):
        pointers.extend(x.untyped_storage().data_ptr() for x in (query, key, value))
        return attention(query, key, value, *rest)

    x = tokens(2, 5, SIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rapt, "attention", spy)
        layer(x, x, x)
    assert len(set(pointers)) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of PyTorch's compiler
def test_compiled_it_gives_its_eager_bits():
    torch._dynamo.reset()
    _, layer = pair(torch.float32, batch_first=True)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 5, SIZE)
    for mine, eager in zip(compiled(x, x, x), layer(x, x, x)):
        assert torch.equal(mine, eager)


def test_a_small_transformer_learns_the_same_with_either_layer():
    losses = []
    for kind in (torch.nn.MultiheadAttention, rapt.torch.MultiheadAttention):
        torch.manual_seed(6)
        layer, head = kind(SIZE, HEADS, batch_first=True, dtype=torch.float64), torch.nn.Linear(SIZE, 3).double()
        x, goal = torch.randn(4, 7, SIZE, dtype=torch.float64), torch.randint(3, (4,))
        steps = torch.optim.Adam([*layer.parameters(), *head.parameters()], 1e-2)
        losses.append([])
        for _ in range(20):
            loss = torch.nn.functional.cross_entropy(head(layer(x, x, x, need_weights=False)[0].mean(1)), goal)
            losses[-1].append(float(loss.detach()))
            steps.zero_grad()
            loss.backward()
            steps.step()
    assert losses[1] == pytest.approx(losses[0], rel=1e-9) and losses[1][-1] < 0.8 * losses[1][0]
