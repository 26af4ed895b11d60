"""rapt.torch.enable: within a block of code, PyTorch's own functions run on rapt, or on PyTorch where rapt cannot."""

import threading

import pytest
import rapt.torch
import torch
import torch.nn.functional as F
from rapt import _rapt
from rapt.torch import enable, enabled

PRISTINE = F.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(23)
    yield
    assert not enabled()  # every test reverts its changes


@pytest.fixture
def calls(monkeypatch):
    """Records one entry for each call that reaches rapt."""
    seen, attention = [], _rapt.attention
    monkeypatch.setattr(_rapt, "attention", lambda *a: (seen.append(1), attention(*a))[1])
    return seen


@pytest.fixture
def q():
    return torch.randn(2, 3, 5, 8)


def sdpa(*args, **kwargs):
    return F.scaled_dot_product_attention(*args, **kwargs)


def test_a_block_goes_to_rapt_and_what_follows_does_not(calls, q):
    theirs = PRISTINE(q, q, q, is_causal=True)
    with enable():
        assert enabled()
        ours = sdpa(q, q, q, is_causal=True)
    assert len(calls) == 1
    assert torch.equal(ours, rapt.torch.sdpa(q, q, q, is_causal=True))
    calls.clear()
    assert torch.equal(sdpa(q, q, q, is_causal=True), theirs)
    assert calls == []


def test_blocks_nest_and_errors_end_them(calls, q):
    with pytest.raises(KeyError):
        with enable():
            with enable():
                sdpa(q, q, q)
            sdpa(q, q, q)
            raise KeyError
    sdpa(q, q, q)
    assert len(calls) == 2


def test_plain_calls_end_in_any_order_and_once_each(calls, q):
    first, second = enable(), enable()
    first.undo()
    first.undo()
    assert enabled()
    sdpa(q, q, q)
    second.undo()
    assert not enabled()
    assert len(calls) == 1


def in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_other_threads_are_left_alone_unless_all_are_meant():
    with enable():
        assert enabled() and not in_thread(enabled)
    with enable(all_threads=True):
        assert enabled() and in_thread(enabled)
        with enable():
            pass
        assert enabled()
    assert not in_thread(enabled)


def test_what_one_thread_began_another_may_undo():
    routing = in_thread(enable)
    routing.undo()
    here = enable()
    in_thread(here.undo)
    assert not enabled()


def test_many_threads_at_once(q):
    """Half of the threads enable rapt and half do not; each always gets the bits of its own implementation."""
    expected = {True: rapt.torch.sdpa(q, q, q), False: PRISTINE(q, q, q)}
    assert not torch.equal(*expected.values())
    wrong, ready = [], threading.Barrier(6)

    def work(routed):
        ready.wait()
        for _ in range(100):
            if routed:
                with enable():
                    out = sdpa(q, q, q)
            else:
                out = sdpa(q, q, q)
            if not torch.equal(out, expected[routed]):
                wrong.append(routed)

    threads = [threading.Thread(target=work, args=(n % 2 == 0,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---------------------------------------------------------------- callers of these functions


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_pytorchs_layer(calls, training, need_weights):
    layer = torch.nn.MultiheadAttention(12, 4, batch_first=True).train(training)
    x = torch.randn(2, 5, 12)
    with torch.set_grad_enabled(training):  # without gradients, PyTorch's fast path bypasses the functions
        theirs = layer(x, x, x, need_weights=need_weights)
        with enable():
            ours = layer(x, x, x, need_weights=need_weights)
    assert len(calls) == 1
    torch.testing.assert_close(ours, theirs)


def test_pytorchs_function_of_a_layer(calls):
    x, weight, out = torch.randn(5, 2, 8), torch.randn(24, 8), torch.randn(8, 8)
    arguments = (x, x, x, 8, 2, weight, None, None, None, True, 0.0, out, None)
    theirs = F.multi_head_attention_forward(*arguments)
    with enable():
        ours = F.multi_head_attention_forward(*arguments)
    assert len(calls) == 1
    torch.testing.assert_close(ours, theirs)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_pytorchs_encoder(calls, training, padded):
    layer = torch.nn.TransformerEncoderLayer(12, 4, 16, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).train(training)
    x = torch.randn(2, 5, 12)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if padded else None
    with torch.set_grad_enabled(training):
        theirs = model(x, src_key_padding_mask=padding)
        with enable():
            ours = model(x, src_key_padding_mask=padding)
    assert len(calls) == 2
    there = slice(None) if padding is None else ~padding  # PyTorch's fast path writes zeros for padding
    torch.testing.assert_close(ours[there], theirs[there])


def test_gradients_flow(calls):
    layer = torch.nn.MultiheadAttention(12, 4)
    x = torch.randn(5, 2, 12)
    gradients = []
    for routed in (False, True):
        if routed:
            with enable():
                loss = layer(x, x, x)[0].square().sum()
        else:
            loss = layer(x, x, x)[0].square().sum()
        gradients.append(torch.autograd.grad(loss, list(layer.parameters())))
    assert len(calls) == 1
    torch.testing.assert_close(*gradients)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of PyTorch's compiler
def test_compiled_code_follows_the_block_it_is_called_in(q):
    torch._dynamo.reset()
    compiled = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), fullgraph=True, backend="eager")
    plain = compiled(q)
    with enable():
        inside = compiled(q)
    assert torch.equal(inside, rapt.torch.sdpa(q, q, q))
    assert torch.equal(plain, PRISTINE(q, q, q)) and torch.equal(compiled(q), plain)


# ---------------------------------------------------------------- what stays PyTorch's

FALLBACKS = {
    "another device": lambda: [torch.empty(1, 2, 3, 4, device="meta")] * 3,
    "an infinite scale": lambda: [torch.randn(1, 2, 3, 4)] * 3 + [dict(scale=float("inf"))],
}


@pytest.mark.parametrize("case", FALLBACKS.values(), ids=FALLBACKS)
def test_what_rapt_cannot_do_goes_to_pytorch(calls, case):
    args = case()
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    theirs = PRISTINE(*args, **kwargs)
    with enable():
        ours = sdpa(*args, **kwargs)
    assert ours.shape == theirs.shape and ours.device == theirs.device
    if not ours.is_meta:
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_nested_tensors_go_to_pytorch(calls):
    x = torch.nested.nested_tensor([torch.randn(2, n, 4) for n in (3, 5)])
    with enable():
        out = sdpa(x, x, x)
    assert out.is_nested and calls == []


@pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented the batching rule")
def test_transforms_go_to_pytorch(calls, q):
    with enable():
        mapped = torch.func.vmap(lambda x: sdpa(x, x, x))(q)
        gradient = torch.func.grad(lambda x: sdpa(x, x, x).sum())(q)
    assert calls == []
    torch.testing.assert_close(mapped, PRISTINE(q, q, q))
    torch.testing.assert_close(gradient, torch.func.grad(lambda x: PRISTINE(x, x, x).sum())(q))


def test_subclasses_of_tensors_go_to_pytorch(calls, q):
    class Mine(torch.Tensor):
        pass

    with enable():
        out = sdpa(q.as_subclass(Mine), q, q)
    assert isinstance(out, Mine) and calls == []


def test_wrong_arguments_are_refused_in_pytorchs_words(q):
    with enable():
        with pytest.raises(RuntimeError, match="same dtype"):
            sdpa(q, q.half(), q)
        with pytest.raises(TypeError, match="scaled_dot_product_attention"):
            sdpa(q, q, q, wrong=1)
        with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set"):
            sdpa(q, q, q, torch.zeros(5, 5), is_causal=True)
