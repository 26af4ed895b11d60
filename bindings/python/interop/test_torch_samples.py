"""PyTorch's own sample inputs, which its package contains for its tests, all computed by rapt: forward and gradients.

All samples are used, and their number is checked, so that none is lost with another version of PyTorch. The expected
results are PyTorch's in double; rapt's error may be twice that of PyTorch in the same dtype (torch_support.Errors).

Differences in behaviour are tested by name in test_torch_meaning.py. One of them affects these samples:

- Dropout draws other weights from the same seed. PyTorch's function is given the ones that rapt keeps.
"""

import warnings

import pytest
import rapt.torch
import torch
import torch.nn.functional as F
from torch_support import (
    DTYPES,
    Errors,
    answers,
    as_double,
    dropping,
    kept,
    leaf,
    require_gradients,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's warnings about its own test helpers
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

SEED = 5


def operator(name):
    (found,) = [op for op in op_db if op.name == name]
    return found


def samples(name, dtype, requires_grad):
    return list(operator(name).sample_inputs("cpu", dtype, requires_grad=requires_grad))


def seeded(function):
    def call(*args, **kwargs):
        torch.manual_seed(SEED)
        return function(*args, **kwargs)

    return call


# ---------------------------------------------------------------- nn.functional.scaled_dot_product_attention

SDPA = "nn.functional.scaled_dot_product_attention"


def their_sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, enable_gqa=False):
    """PyTorch's function; with dropout, the internal one that takes the weights to keep."""
    if dropout_p == 0.0:
        return F.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, enable_gqa=enable_gqa)
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*[1] * (2 - len(batch)), *batch, query.shape[-2], key.shape[-2])
    keep = kept(dropout_p, shape, SEED).reshape(*batch, *shape[2:])
    return torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, keep, enable_gqa=enable_gqa
    )[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:Dropout mask should only be used for testing")
def test_all_samples_of_scaled_dot_product_attention(dtype):
    found = samples(SDPA, dtype, requires_grad=True)
    assert len(found) == 25
    errors = Errors(dtype)
    for n, sample in enumerate(found):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        ours = answers(seeded(rapt.torch.sdpa), args, kwargs)
        theirs = answers(their_sdpa, leaf(args), leaf(kwargs))
        exact = answers(their_sdpa, as_double(args), as_double(kwargs))
        for kind, *results in zip(("out", "gradient"), ours, theirs, exact):
            errors.add(f"sample {n} ({sample.kwargs})", kind, *results)
    errors.check()


# ---------------------------------------------------------------- nn.functional.multi_head_attention_forward

LAYER = "nn.functional.multi_head_attention_forward"


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_samples_of_multi_head_attention_forward(dtype, monkeypatch):
    # The samples that PyTorch uses for gradients and the many more that it uses only for forward; gradients are tested
    # on all of them.
    found = samples(LAYER, dtype, requires_grad=True) + samples(LAYER, dtype, requires_grad=False)
    assert len(found) == 1 + 192
    errors = Errors(dtype)
    for n, sample in enumerate(found):
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        require_gradients([args, kwargs])
        ours = answers(seeded(rapt.torch.multi_head_attention_forward), args, kwargs)
        query, key, heads, rate = args[0], args[1], args[4], args[10]
        batch, keys = (query.shape[1] if query.dim() == 3 else 1), key.shape[0]
        more = (args[7] is not None) + bool(args[9])  # bias_k, add_zero_attn
        keep = kept(rate, (batch, heads, query.shape[0], keys + more), SEED)
        with dropping(keep, monkeypatch):
            theirs = answers(F.multi_head_attention_forward, leaf(args), leaf(kwargs))
            exact = answers(F.multi_head_attention_forward, as_double(args), as_double(kwargs))
        for kind, *results in zip(("out and weights", "gradient"), ours, theirs, exact):
            errors.add(f"sample {n}", kind, *results)
    errors.check()


# ---------------------------------------------------------------- nn.MultiheadAttention


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # those that PyTorch has
def test_all_samples_of_multihead_attention(dtype, training):
    (module,) = [module for module in module_db if module.module_cls is torch.nn.MultiheadAttention]
    assert set(module.dtypes) == {torch.float64, torch.float32}
    found = module.module_inputs_func(module, device="cpu", dtype=dtype, requires_grad=True, training=training)
    assert len(found) == 64
    errors = Errors(dtype)
    for n, sample in enumerate(found):
        made, call = sample.constructor_input, sample.forward_input
        torch.manual_seed(n)
        peer = torch.nn.MultiheadAttention(*made.args, **made.kwargs, dtype=dtype).train(training)
        mine = rapt.torch.MultiheadAttention(*made.args, **made.kwargs, dtype=dtype).train(training)
        mine.load_state_dict(peer.state_dict())
        double = torch.nn.MultiheadAttention(*made.args, **made.kwargs, dtype=torch.float64).train(training)
        double.load_state_dict(peer.state_dict())
        ours = answers(mine, call.args, call.kwargs, mine.parameters())
        theirs = answers(peer, leaf(call.args), leaf(call.kwargs), peer.parameters())
        exact = answers(double, as_double(call.args), as_double(call.kwargs), double.parameters())
        names = [name for name, _ in mine.named_parameters()]
        for kind, *results in zip(("out and weights", f"gradient, with {names}"), ours, theirs, exact):
            errors.add(f"sample {n} ({made.kwargs})", kind, *results)
    errors.check()
