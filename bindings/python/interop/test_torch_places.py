"""Which functions replace PyTorch's inside rapt.torch.enable, and after it; kernels that users select."""

import contextlib
import io
import itertools
import pickle
import sys
import threading

import pytest
import rapt.torch
import torch
import torch.nn.functional as F
from rapt.torch import calls, enable
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import CausalBias, causal_upper_left

PLACES = [
    (F, "scaled_dot_product_attention"),
    (F, "multi_head_attention_forward"),
    (torch.backends.mha, "get_fastpath_enabled"),
    (CausalBias, "__torch_function__"),
]
PRISTINE = [vars(owner)[name] for owner, name in PLACES]


def standing():
    return [vars(owner)[name] for owner, name in PLACES]


def restored():
    return all(ours is theirs for ours, theirs in zip(standing(), PRISTINE))


@pytest.fixture(autouse=True)
def counted():
    torch.manual_seed(5)
    calls(reset=True)
    yield
    assert restored()


@pytest.fixture
def q():
    return torch.randn(2, 3, 5, 8)


# ---------------------------------------------------------------- places


@pytest.mark.parametrize("all_threads", [False, True])
def test_a_block_replaces_the_functions_and_its_end_restores_them(all_threads):
    with enable(all_threads=all_threads):
        assert not any(ours is theirs for ours, theirs in zip(standing(), PRISTINE))
    assert restored()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_the_last_of_several_blocks_restores_them(order):
    blocks = [enable(), enable(all_threads=True), enable()]
    for place in order:
        assert not restored()
        blocks[place].undo()
        blocks[place].undo()
    assert restored()


def test_the_last_block_of_all_threads_restores_them(q):
    opened, close = threading.Event(), threading.Event()

    def work():
        with enable():
            opened.set()
            close.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    opened.wait(60)
    with enable():
        pass
    assert not restored()  # the other thread's block is open
    F.scaled_dot_product_attention(q, q, q)
    assert calls() == rapt.torch.Calls()  # which does not affect this thread
    close.set()
    thread.join()
    assert restored()


def test_a_wrapper_that_somebody_else_put_around_stays_and_works(q, monkeypatch):
    seen = []
    block = enable()
    ours = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *args: (seen.append(1), ours(*args))[1])
    block.undo()
    assert torch.equal(F.scaled_dot_product_attention(q, q, q), PRISTINE[0](q, q, q))
    with enable():
        F.scaled_dot_product_attention(q, q, q)
    assert calls().rapt == 1 and len(seen) == 1
    monkeypatch.undo()
    assert F.scaled_dot_product_attention is ours  # what the patch found
    assert torch.equal(F.scaled_dot_product_attention(q, q, q), PRISTINE[0](q, q, q))
    # A CausalBias compares the function with the one that is currently installed.
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    bias = causal_upper_left(q.shape[-2], q.shape[-2])
    torch.testing.assert_close(F.scaled_dot_product_attention(q, q, q, bias), PRISTINE[0](q, q, q, mask))
    with enable():
        F.scaled_dot_product_attention(q, q, q)
    assert restored() and calls().rapt == 2


def test_a_reset_of_the_import_system_does_not_keep_a_block_from_ending(q):
    finders = list(sys.meta_path)
    block = enable()
    sys.meta_path[:] = finders
    block.undo()
    assert restored()
    with enable():
        F.scaled_dot_product_attention(q, q, q)
    assert restored() and sys.meta_path == finders and calls().rapt == 1


@pytest.mark.parametrize("inside", [False, True])
def test_functions_and_modules_are_pickled(q, inside):
    with enable():
        pass  # a finished block leaves nothing behind
    with enable() if inside else contextlib.nullcontext():
        layer = torch.nn.MultiheadAttention(8, 2)
        layer.function = F.scaled_dot_product_attention
        kept = pickle.dumps([F.scaled_dot_product_attention, F.multi_head_attention_forward, layer])
    *functions, copy = pickle.loads(kept)
    assert functions == list(PRISTINE[:2]) and copy.function is PRISTINE[0]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

    def forward(self, x):
        x = self.encoder(self.attention(x, x, x)[0])
        return F.scaled_dot_product_attention(x, x, x)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning", "ignore:.*torch.jit", "ignore:.*TorchScript")
@pytest.mark.parametrize("inside", [False, True])
def test_models_are_scripted(inside):
    torch.jit._state._clear_class_state()
    model, x = Model().eval(), torch.randn(2, 5, 8)
    block = enable()
    if not inside:
        block.undo()
    scripted = torch.jit.script(model)
    written = io.BytesIO()
    torch.jit.save(scripted, written)
    block.undo()
    written.seek(0)
    torch.testing.assert_close(scripted(x), model(x))
    torch.testing.assert_close(torch.jit.load(written)(x), model(x))


# ---------------------------------------------------------------- the layers' fast path


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("kind", [torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer])
def test_nested_tensors_keep_the_layers_fast_path(kind):
    if kind is torch.nn.MultiheadAttention:
        layer = kind(8, 2, batch_first=True).eval()
        call = lambda x: layer(x, x, x, need_weights=False)[0]  # noqa: E731
    else:
        call = kind(8, 2, 16, batch_first=True).eval()
    x = torch.nested.nested_tensor([torch.randn(n, 8) for n in (3, 5)])
    with torch.no_grad():
        theirs = call(x)
        with enable():
            ours = call(x)
    assert ours.is_nested and calls().rapt == 0
    assert torch.equal(ours.to_padded_tensor(0.0), theirs.to_padded_tensor(0.0))


def test_the_users_setting_of_the_fast_path_is_what_is_reported():
    with enable():
        assert torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            assert not torch.backends.mha.get_fastpath_enabled()
        finally:
            torch.backends.mha.set_fastpath_enabled(True)


# ---------------------------------------------------------------- kernels that users select


@pytest.mark.parametrize("chosen", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_a_chosen_kernel_computes(q, chosen):
    with sdpa_kernel(chosen):
        theirs = F.scaled_dot_product_attention(q, q, q)
        with enable():
            ours = F.scaled_dot_product_attention(q, q, q)
    assert torch.equal(ours, theirs)
    assert calls() == rapt.torch.Calls(0, {"backend": 1})
    with enable(), sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):  # all kernels on the CPU
        F.scaled_dot_product_attention(q, q, q)
    assert calls().rapt == 1


def test_a_switched_off_kernel_is_a_choice_too(q):
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        with enable():
            out = F.scaled_dot_product_attention(q, q, q)
    finally:
        torch.backends.cuda.enable_flash_sdp(True)
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.equal(out, PRISTINE[0](q, q, q))
    assert calls().pytorch == {"backend": 1}


def test_no_kernel_at_all_is_refused_in_pytorchs_words(q):
    with enable(), sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        with pytest.raises(RuntimeError, match="No viable backend|No available kernel"):
            F.scaled_dot_product_attention(q, q, q)


@pytest.mark.parametrize("chosen", [None, SDPBackend.MATH])
def test_a_layer_follows_the_choice(chosen):
    layer, x = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 5, 8)
    with torch.no_grad(), sdpa_kernel(chosen or [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        theirs = layer(x, x, x)
        with enable():
            ours = layer(x, x, x)
    torch.testing.assert_close(ours, theirs)
    assert calls().rapt == (chosen is None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of PyTorch's compiler
def test_a_chosen_kernel_is_left_alone_in_compiled_code(q):
    torch._dynamo.reset()

    def attend(q):
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, q, q)

    with enable():
        out = torch.compile(attend, fullgraph=True, backend="eager")(q)
    assert calls().rapt == 0 and torch.equal(out, attend(q))


# ---------------------------------------------------------------- calls


@pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented")
def test_calls_are_counted_by_where_they_went(q):
    with enable():
        F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q.to("meta"), q.to("meta"), q.to("meta"))
        F.scaled_dot_product_attention(q, q, q, scale=float("inf"))
        torch.func.vmap(lambda x: F.scaled_dot_product_attention(x, x, x))(q)
        layer = torch.nn.MultiheadAttention(8, 2)
        layer(q[0], q[0], q[0])
    F.scaled_dot_product_attention(q, q, q)
    assert calls() == rapt.torch.Calls(2, {"device": 1, "arguments": 1, "transform": 1})
    rapt.torch.sdpa(q, q, q)
    rapt.torch.MultiheadAttention(8, 2)(q[0], q[0], q[0])
    assert calls().rapt == 4
    assert repr(calls(reset=True)) == "Calls(rapt=4, pytorch={'device': 1, 'arguments': 1, 'transform': 1})"
    assert calls() == rapt.torch.Calls()


def test_a_call_with_gradients_counts_once(q):
    q.requires_grad_()
    with enable():
        out = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        (first,) = torch.autograd.grad(out.sum(), q, create_graph=True)
        first.sum().backward()
    assert calls() == rapt.torch.Calls(1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_calls_are_counted(q):
    torch._dynamo.reset()
    compiled = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), fullgraph=True, backend="eager")
    with enable():
        for _ in range(3):
            compiled(q)
    assert calls() == rapt.torch.Calls(3)


def test_no_call_of_many_threads_is_lost(q):
    def work():
        for _ in range(200):
            F.scaled_dot_product_attention(q, q, q)
            F.scaled_dot_product_attention(q, q, q, scale=float("inf"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    with enable(all_threads=True):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls() == rapt.torch.Calls(1200, {"arguments": 1200})
