"""attention as operators of PyTorch, rapt::attention and rapt::attention_backward: what compilers and autograd see.

Tensors have four dimensions here: query (B, Hq, Lq, D), key (B, Hkv, Lk, D), value (B, Hkv, Lk, Dv). The two masks
broadcast to (B, Hq, Lq, Lk); a bool one is True where a key is seen, another one is added. The seed of dropout is a
tensor, so that a compiler sees where it comes from. `weights` is "none", "mean" or "per_head".
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _rapt
from ..._options import Capture, Mask, WeightsGradient
from .calls import count_rapt
from .reach import plain, transformed, watched
from .twice import differentiable_gradients

_INPUTS = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? key_mask, Tensor? seed"
_OPTIONS = "float dropout_p, bool is_causal, float? scale, str weights"
_library = torch.library.Library("rapt", "DEF")
_library.define(f"attention({_INPUTS}, {_OPTIONS}) -> (Tensor out, Tensor lse, Tensor weights)")
_library.define(
    f"attention_backward(Tensor? dout, Tensor? dlse, Tensor? dweights, {_INPUTS}, Tensor out, Tensor lse, {_OPTIONS}, "
    "bool[5] wanted) -> (Tensor dquery, Tensor dkey, Tensor dvalue, Tensor dattn_mask, Tensor dkey_mask)"
)

_Forward = tuple[Tensor, Tensor, Tensor]
_Backward = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


# ---------------------------------------------------------------- the calls


def lent(x: Tensor) -> Tensor:
    """The same memory, as rapt reads it: without a graph, and with its signs in it."""
    return x.resolve_neg().detach()


def threads() -> int:
    """As many as both libraries are allowed."""
    return min(torch.get_num_threads(), _rapt.thread_count())


def _options(masks: Sequence[Mask], seed: Tensor | None, dropout_p: float, causal: bool, scale: float | None) -> tuple:
    """The tuple that rapt.attention makes of its keywords."""
    dropout = None if seed is None else (dropout_p, int(seed))
    alignment = "top_left" if causal else None
    return (masks or None, scale, 0.0, causal, None, alignment, None, None, None, None, None, None, None, dropout,
            "automatic", threads())  # fmt: skip


def as_mask(mask: Tensor) -> Mask:
    """A mask that says what it means."""
    return Mask("keep" if mask.dtype == torch.bool else "add", lent(mask))


def tokens_first(query: Tensor) -> bool:
    """Whether the memory layout is (B, L, H, D): then the result has the same layout."""
    return 0 < query.stride(1) < query.stride(2)


def new_out(query: Tensor, value: Tensor) -> Tensor:
    """Memory for the result, (B, Hq, Lq, Dv), laid out as the query."""
    batch, heads, queries, _ = query.shape
    size = value.shape[3]
    if tokens_first(query):
        return query.new_empty((batch, queries, heads, size)).transpose(1, 2)
    return query.new_empty((batch, heads, queries, size))


def _call(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, key_mask: Tensor | None, seed: Tensor | None,
    dropout_p: float, is_causal: bool, scale: float | None, weights: str,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """(out, lse, weights): None for weights that are not wanted."""
    masks = [as_mask(mask) for mask in (attn_mask, key_mask) if mask is not None]
    options = _options(masks, seed, dropout_p, is_causal, scale)
    query = lent(query)
    place = new_out(query, value) if tokens_first(query) else None
    wanted = () if weights == "none" else (Capture(mean_over_heads=weights == "mean"),)
    out, lse, captured = _rapt.attention(query, lent(key), lent(value), None, options, place, True, wanted)
    return out, lse, captured[0] if captured else None


def _attention(query: Tensor, *rest: Any) -> _Forward:
    """The operator, which must give three tensors."""
    out, lse, weights = _call(query, *rest)
    count_rapt()
    return out, lse, query.new_empty(0) if weights is None else weights


def _attention_backward(
    dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None,
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, key_mask: Tensor | None, seed: Tensor | None,
    out: Tensor, lse: Tensor, dropout_p: float, is_causal: bool, scale: float | None, weights: str,
    wanted: Sequence[bool],
) -> _Backward:  # fmt: skip
    given = [mask for mask in (attn_mask, key_mask) if mask is not None]
    options = _options([as_mask(mask) for mask in given], seed, dropout_p, is_causal, scale)
    names = [name for name, want in zip(("dquery", "dkey", "dvalue"), wanted) if want]
    if wanted[3] or wanted[4]:
        names.append("dmasks")
    at_weights = () if dweights is None else (WeightsGradient(lent(dweights), mean_over_heads=weights == "mean"),)
    arrived = [None if x is None else lent(x) for x in (dout, dlse)]
    *gradients, _, at_masks = _rapt.attention_backward(
        lent(query), lent(key), lent(value), options, (*arrived, at_weights, lent(out), lent(lse)), names
    )
    of_masks = iter(at_masks)
    gradients += [None if mask is None else next(of_masks, None) for mask in (attn_mask, key_mask)]
    return tuple(
        gradient if want and gradient is not None else query.new_empty(0) for gradient, want in zip(gradients, wanted)
    )  # type: ignore[return-value]


_library.impl("attention", _attention, "CPU")
_library.impl("attention_backward", _attention_backward, "CPU")


# ---------------------------------------------------------------- shapes, for compilers


@torch.library.register_fake("rapt::attention", lib=_library)
def _attention_shapes(
    query, key, value, attn_mask, key_mask, seed, dropout_p, is_causal, scale, weights
) -> _Forward:  # fmt: skip
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    lse = query.new_empty((batch, heads, queries), dtype=torch.promote_types(query.dtype, torch.float32))
    shapes = {"none": (0,), "mean": (batch, queries, keys), "per_head": (batch, heads, queries, keys)}
    return new_out(query, value), lse, query.new_empty(shapes[weights])


@torch.library.register_fake("rapt::attention_backward", lib=_library)
def _attention_backward_shapes(
    dout, dlse, dweights, query, key, value, attn_mask, key_mask, seed, out, lse, dropout_p, is_causal, scale, weights,
    wanted,
) -> _Backward:  # fmt: skip
    like = (query, key, value, attn_mask, key_mask)
    return tuple(
        query.new_empty(0) if x is None or not want or x.dtype == torch.bool else x.new_empty(x.shape)
        for x, want in zip(like, wanted)
    )  # type: ignore[return-value]


# ---------------------------------------------------------------- autograd


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor, Tensor | None]) -> None:
    """Saves what backward needs."""
    *tensors, ctx.dropout_p, ctx.is_causal, ctx.scale, ctx.weights = inputs
    ctx.save_for_backward(*tensors, output[0], output[1])
    ctx.set_materialize_grads(False)
    if ctx.weights == "none" and output[2] is not None:
        ctx.mark_non_differentiable(output[2])


def _gradients(
    ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None, call: Any, by_rapt: Any
) -> tuple:
    """One gradient for each input of attention; None for what has none, or is not wanted.

    PyTorch's operators compute them where they will be differentiated themselves (create_graph), where they arrive in
    batches (is_grads_batched) or with tangents, and where `by_rapt` says that rapt cannot read what arrived.
    """
    *inputs, out, lse = ctx.saved_tensors
    wanted = [*ctx.needs_input_grad[:5]]
    if ctx.weights == "none":
        dweights = None
    arrived = (dout, dlse, dweights)
    if all(x is None for x in arrived):
        return (None,) * len(ctx.needs_input_grad)
    options = (ctx.dropout_p, ctx.is_causal, ctx.scale, ctx.weights)
    if not torch.compiler.is_compiling() and (torch.is_grad_enabled() or transformed() or not by_rapt(arrived)):
        gradients = differentiable_gradients(arrived, inputs, options, wanted, _call)
    else:
        gradients = call(*arrived, *inputs, out, lse, *options, wanted)
    padding = [None] * (len(ctx.needs_input_grad) - len(wanted))
    return *(gradient if want else None for gradient, want in zip(gradients, wanted)), *padding


def _gradients_by_operator(ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None) -> tuple:
    return _gradients(ctx, dout, dlse, dweights, torch.ops.rapt.attention_backward, lambda arrived: True)


torch.library.register_autograd("rapt::attention", _gradients_by_operator, setup_context=_keep, lib=_library)


def _no_second(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError("rapt::attention_backward: a compiled graph has no second-order gradients; compute "
                              "them with rapt.torch.sdpa without torch.compile")


torch.library.register_autograd("rapt::attention_backward", _no_second, lib=_library)


def _all_plain(tensors: Sequence[Tensor | None]) -> bool:
    """Whether rapt can read them. Batched gradients look plain, and are another kind of batch than vmap's."""
    return all(x is None or plain(x) and not torch._C._functorch.is_legacy_batchedtensor(x) for x in tensors)


class Attention(torch.autograd.Function):
    """rapt::attention for tensors that require gradients, without the dispatcher: the same code, in less time."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """The results of the operator. (A setup_context apart would double the time of a small call.)"""
        output = _call(*arguments)
        count_rapt()
        _keep(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None) -> tuple:
        """The gradients that are wanted, one for each argument."""
        return _gradients(ctx, dout, dlse, dweights, _attention_backward, _all_plain)


# ---------------------------------------------------------------- which way a call goes


def _refuse_tangents(tensors: Sequence[Tensor]) -> None:
    """Raises an error: forward-mode gradients would be lost silently."""
    if torch.compiler.is_compiling() or torch.autograd.forward_ad._current_level < 0:
        return
    if any(torch.autograd.forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise NotImplementedError("rapt.torch: attention has no forward-mode gradients, only backward ones")


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    key_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    weights: str = "none",
) -> tuple[Tensor, Any]:
    """(out, weights), by the fastest path that records what autograd needs. Seeds come from PyTorch's generator."""
    seed = torch.randint(2**63 - 1, (), device="cpu") if dropout_p > 0.0 else None
    arguments = (query, key, value, attn_mask, key_mask, seed, dropout_p, is_causal, scale, weights)
    tensors = [x for x in arguments[:5] if x is not None]
    if watched():
        _refuse_tangents(tensors)
        out, _, captured = torch.ops.rapt.attention(*arguments)
    elif not all(type(x) in (Tensor, torch.nn.Parameter) and x.is_cpu for x in tensors):
        out, _, captured = torch.ops.rapt.attention(*arguments)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        out, _, captured = Attention.apply(*arguments)
    else:
        out, _, captured = _call(*arguments)
        count_rapt()
    return out, captured
