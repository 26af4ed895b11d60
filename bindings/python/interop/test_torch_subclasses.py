"""Every kind of tensor inside rapt.torch.enable: rapt computes it correctly, or PyTorch computes it."""

import contextlib
import warnings

import numpy as np
import pytest
import rapt.torch
import torch
import torch.nn.functional as F
from rapt.torch import enable
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

PRISTINE = F.scaled_dot_product_attention


class Named(torch.Tensor):
    """A subclass with PyTorch's own __torch_function__."""


class Doubling(torch.Tensor):
    """Identifies the function like PyTorch's own subclasses: compares it with the one installed at the time of the
    call."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        return out * 2 if func is F.scaled_dot_product_attention else out


REGISTERED = {F.scaled_dot_product_attention: 3.0}


class Registered(torch.Tensor):
    """Identifies the function by a table that was created when the module was imported."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {})) * REGISTERED.get(func, 1.0)


class Wrapper(torch.Tensor):
    """Wraps another tensor and has no memory of its own; operators reach it through __torch_dispatch__."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=held.device)

    def __init__(self, held):
        self.held = held

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        opened = torch.utils._pytree.tree_map(lambda x: x.held if isinstance(x, Wrapper) else x, (args, kwargs or {}))
        out = func(*opened[0], **opened[1])
        return torch.utils._pytree.tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, out)


def masked(x):
    return torch.masked.masked_tensor(x, torch.ones_like(x, dtype=torch.bool))


def distributed(x):
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh

    return DTensor.from_local(x, init_device_mesh("cpu", (1,)), [Replicate()])


def fake(x):
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(x)


def uninitialized(x):
    return torch.nn.UninitializedParameter()


def quantized(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)


def jagged(x):
    return torch.nested.nested_tensor([x[0], x[1, :, :3]], layout=torch.jagged)


def negated(x):
    found = torch.complex(x, -x).conj().imag
    assert found.is_neg()
    return found


def batched(x):
    """A tensor that escaped from a finished transform."""
    kept = []
    torch.func.vmap(lambda row: (kept.append(row), row)[1])(x)
    return kept[0]


# The kind, how to create it from a plain tensor, and why PyTorch computes it: None if rapt does.
KINDS = {
    "plain": (lambda x: x, None),
    "parameter": (torch.nn.Parameter, None),
    "buffer": (torch.nn.Buffer, None),
    "inference tensor": (lambda x: torch.inference_mode()(x.clone)(), None),
    "view with the sign elsewhere": (negated, None),
    "transposed view": (lambda x: x.transpose(1, 2).contiguous().transpose(1, 2), None),
    "zeros without memory": (lambda x: torch._efficientzerotensor(x.shape), "arguments"),
    "functional wrapper": (torch._to_functional_tensor, "arguments"),
    "complex": (lambda x: torch.complex(x, x), "dtype"),
    "integers": (lambda x: x.long(), "dtype"),
    "quantized": (quantized, "dtype"),
    "nested, strided": (lambda x: torch.nested.nested_tensor([x[0], x[1]]), "nested"),
    "nested, jagged": (jagged, "nested"),
    "sparse": (lambda x: x.to_sparse(), "layout"),
    "mkldnn": (lambda x: x.to_mkldnn(), "layout"),
    "meta": (lambda x: x.to("meta"), "device"),
    "named subclass": (lambda x: x.as_subclass(Named), "subclass"),
    "subclass that asks for the function": (lambda x: x.as_subclass(Doubling), "subclass"),
    "subclass with a table of functions": (lambda x: x.as_subclass(Registered), "subclass"),
    "wrapper by __torch_dispatch__": (Wrapper, "subclass"),
    "masked": (masked, "subclass"),
    "distributed": (distributed, "subclass"),
    "fake": (fake, "subclass"),
    "uninitialized parameter": (uninitialized, "subclass"),
}


@pytest.fixture
def process_group():
    """DTensor requires a process group, here with only this process."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def outcome(function, *args, **kwargs):
    """The result of a call: a tensor, or the type of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error)


def assert_same(ours, theirs):
    """Equal within the tolerance between two libraries."""
    assert type(ours) is type(theirs)
    if isinstance(ours, type):
        assert ours is theirs
        return
    for name in ("held", "_local_tensor"):
        if hasattr(ours, name):
            ours, theirs = getattr(ours, name), getattr(theirs, name)
    if isinstance(ours, torch.masked.MaskedTensor):
        ours, theirs = ours.get_data(), theirs.get_data()
    if ours.is_nested:
        assert theirs.is_nested
        ours, theirs = ours.to_padded_tensor(0.0), theirs.to_padded_tensor(0.0)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype and ours.device == theirs.device
    if torch._is_functional_tensor(ours):
        ours, theirs = torch._from_functional_tensor(ours), torch._from_functional_tensor(theirs)
    if not ours.is_meta and not isinstance(ours, torch._subclasses.FakeTensor):
        torch.testing.assert_close(ours.to_dense(), theirs.to_dense())


@pytest.mark.filterwarnings("ignore")  # half of these kinds are prototypes, and warn about it
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["all", "query", "value"])
def test_a_kind_of_tensor_is_right_or_goes_to_pytorch(kind, which, request):
    make, reason = KINDS[kind]
    if kind == "distributed":
        request.getfixturevalue("process_group")
    torch.manual_seed(3)
    q, k, v = torch.randn(3, 2, 2, 4, 8)
    if which == "all":
        made = make(q)
        args = (made, made, made)
    else:
        args = (make(q), k, v) if which == "query" else (q, k, make(v))
    theirs = outcome(PRISTINE, *args)
    rapt.torch.calls(reset=True)
    with enable():
        ours = outcome(F.scaled_dot_product_attention, *args)
    found = rapt.torch.calls()
    assert_same(ours, theirs)
    if reason is None:
        assert (found.rapt, found.pytorch) == (1, {})
    elif which == "all":
        assert (found.rapt, found.pytorch) == (0, {reason: 1})
    else:  # mixed with plain tensors it may be rejected for another reason, but never by rapt
        assert found.rapt == 0 and sum(found.pytorch.values()) == 1


def test_a_tensor_of_a_transform_that_is_over_goes_to_pytorch():
    x = batched(torch.randn(3, 2, 2, 4, 8))
    rapt.torch.calls(reset=True)
    with enable():
        assert outcome(F.scaled_dot_product_attention, x, x, x) is outcome(PRISTINE, x, x, x)
    assert rapt.torch.calls().rapt == 0


@pytest.mark.filterwarnings("ignore")  # of PyTorch's compiler
def test_a_subclass_in_compiled_code_goes_to_pytorch():
    torch._dynamo.reset()
    x = torch.randn(2, 2, 4, 8).as_subclass(Named)
    theirs = PRISTINE(x, x, x)
    rapt.torch.calls(reset=True)
    with enable():
        ours = torch.compile(lambda x: F.scaled_dot_product_attention(x, x, x), backend="eager")(x)
    assert_same(ours, theirs)
    assert rapt.torch.calls().rapt == 0


@pytest.mark.parametrize("mask", [np.ones((4, 4), bool), "mask"], ids=["NumPy", "text"])
def test_what_is_no_tensor_is_refused_in_pytorchs_words(mask):
    q = torch.randn(1, 2, 4, 8)
    with enable():
        assert outcome(F.scaled_dot_product_attention, q, q, q, mask) is outcome(PRISTINE, q, q, q, mask)


# ---------------------------------------------------------------- CausalBias


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_layer_leaves_a_causal_bias_to_pytorch(make, batch):
    """A CausalBias has memory that is never initialized, and its shape may be that of a mask per head."""
    layer, x, bias = torch.nn.MultiheadAttention(8, 2 // batch, batch_first=True), torch.randn(batch, 4, 8), make(4, 4)
    for need_weights in (False, True):
        theirs = outcome(layer, x, x, x, attn_mask=bias, need_weights=need_weights)
        rapt.torch.calls(reset=True)
        with enable():
            ours = outcome(layer, x, x, x, attn_mask=bias, need_weights=need_weights)
        assert type(ours) is type(theirs) and rapt.torch.calls().rapt == 0
        if isinstance(ours, type):
            assert ours is theirs


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("sizes", [(4, 6), (6, 4), (5, 5), (1, 7)], ids=str)
@pytest.mark.parametrize("records", [False, True])
@pytest.mark.parametrize("named", [False, True], ids=["by its place", "by a name imported before"])
def test_a_causal_bias_is_understood(make, sizes, records, named):
    queries, keys = sizes
    q = torch.randn(2, 3, queries, 8, requires_grad=records)
    k, v = torch.randn(2, 3, keys, 8), torch.randn(2, 3, keys, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that see no key
        bias = make(queries, keys)
    mask = torch.ones(sizes, dtype=torch.bool).tril(keys - queries if make is causal_lower_right else 0)
    expected = PRISTINE(q, k, v, mask)
    torch.testing.assert_close(rapt.torch.sdpa(q, k, v, bias), expected)
    rapt.torch.calls(reset=True)
    with enable():
        ours = (PRISTINE if named else F.scaled_dot_product_attention)(q, k, v, attn_mask=bias)
    assert rapt.torch.calls().rapt == 1
    torch.testing.assert_close(ours, expected)
    if records:
        grads = [torch.autograd.grad(x.sum(), q)[0] for x in (ours, expected)]
        torch.testing.assert_close(*grads)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, bias), expected)  # after the block


def test_a_causal_bias_that_first_appears_inside_a_block():
    """Its module is imported in the block, and PyTorch's function was imported by name before."""
    code = """
import sys, torch, rapt.torch
from torch.nn.functional import scaled_dot_product_attention as named
assert "torch.nn.attention.bias" not in sys.modules
q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
finders = list(sys.meta_path)
with rapt.torch.enable():
    from torch.nn.attention.bias import causal_lower_right
    out = named(q, k, k, causal_lower_right(4, 6))
assert sys.meta_path == finders
torch.testing.assert_close(out, named(q, k, k, torch.ones(4, 6, dtype=torch.bool).tril(2)))
"""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize("wrong", ["is_causal", "sizes"])
def test_a_wrong_causal_bias_is_refused_in_pytorchs_words(wrong):
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
    bias, kwargs = (causal_upper_left(4, 6), dict(is_causal=True)) if wrong == "is_causal" else (
        causal_lower_right(3, 5), {})  # fmt: skip
    with enable():
        inside = outcome(F.scaled_dot_product_attention, q, k, k, bias, **kwargs)
    assert isinstance(inside, type) and inside is outcome(PRISTINE, q, k, k, bias, **kwargs)
    with pytest.raises(ValueError, match="CausalBias, which cannot be combined|causal for 3 queries and 5 keys"):
        rapt.torch.sdpa(q, k, k, bias, **kwargs)


# ---------------------------------------------------------------- modes


class Seen(torch.overrides.TorchFunctionMode):
    """Records whether attention is called, by comparing with the installed function."""

    seen = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen |= func is F.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


def test_a_function_mode_sees_the_call():
    q = torch.randn(1, 2, 4, 8)
    rapt.torch.calls(reset=True)
    with enable(), Seen() as mode:
        F.scaled_dot_product_attention(q, q, q)
    assert mode.seen and rapt.torch.calls().pytorch == {"mode": 1}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_default_device_changes_nothing(device):
    q = torch.randn(1, 2, 4, 8)
    rapt.torch.calls(reset=True)
    with enable(), torch.device(device):
        F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert rapt.torch.calls().rapt == 1


def test_a_dispatch_mode_sees_the_call():
    from torch.utils.flop_counter import FlopCounterMode

    q = torch.randn(1, 2, 4, 8)
    flops = []
    for block in (contextlib.nullcontext(), enable()):
        with block, FlopCounterMode(display=False) as counter:
            F.scaled_dot_product_attention(q, q, q)
        flops.append(counter.get_total_flops())
    assert flops[0] == flops[1] > 0
