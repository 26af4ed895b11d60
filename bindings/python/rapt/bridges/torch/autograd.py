"""rapt.attention as a step that PyTorch's autograd records."""

from typing import NamedTuple

import torch

from ..._attention import attention, attention_backward
from ..._options import Capture, Mask, WeightsGradient


class _Call(NamedTuple):
    """The arguments of a call that have no gradient, kept for backward."""

    masks: tuple  # of rapt.Mask; those that are added stand without their array, which is a tensor of the call
    options: dict  # keywords of rapt.attention
    return_weights: bool
    heads_first: bool


def differentiable_attention(
    query, key, value, *, masks=(), sinks=None, return_weights=False, heads_first=True, **options
):
    """(out, weights) of rapt.attention. Gradients flow to query, key, value, sinks and the arrays of Mask.add.

    query is (B, Hq, Lq, D) and so on; out is (B, Hq, Lq, Dv), or (B, Lq, Hq, Dv) in one piece where heads_first is
    False. weights are those after dropout, None unless asked for. The options are keywords of rapt.attention. Where
    nothing wants a gradient, nothing is kept. Gradients of gradients are refused by PyTorch.
    """
    biases = [mask.array for mask in masks if mask.kind == "add"]
    tensors = (query, key, value, sinks, *biases)
    wanted = any(x is not None and x.requires_grad for x in tensors)
    call = _Call(masks, options, return_weights, heads_first)
    if not wanted:
        return _forward(call, tensors, return_lse=False)[:2]
    if torch.is_grad_enabled():
        without_arrays = tuple(Mask.add(None) if mask.kind == "add" else mask for mask in masks)
        return _Attention.apply(call._replace(masks=without_arrays), *tensors)
    return _forward(call, _detached(tensors), return_lse=False)[:2]


def _detached(tensors):
    return [x if x is None else x.detach() for x in tensors]


def _forward(call, tensors, return_lse):
    """(out, weights, lse) of tensors without a history."""
    query, key, value, sinks, *biases = tensors
    batch, heads, length, _ = query.shape
    if call.heads_first:
        out = written = query.new_empty((batch, heads, length, value.shape[3]))
    else:
        out = query.new_empty((batch, length, heads, value.shape[3]))
        written = out.transpose(1, 2)
    captures = [Capture("dropped_weights")] if call.return_weights else None
    result = attention(
        query, key, value, mask=_with_arrays(call.masks, biases), sinks=sinks, out=written, return_lse=return_lse,
        captures=captures, **call.options,
    )  # fmt: skip
    if not (return_lse or captures):
        return out, None, None
    return out, result.captures[0] if captures else None, result.lse


def _with_arrays(masks, biases):
    left = iter(biases)
    return [Mask.add(next(left)) if mask.kind == "add" else mask for mask in masks] or None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        tensors = _detached(tensors)
        out, weights, lse = _forward(call, tensors, return_lse=True)
        ctx.call = call
        ctx.set_materialize_grads(False)  # one that does not arrive is not made up of zeros
        ctx.save_for_backward(out, lse, *tensors)
        return out, weights

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout, dweights):
        if dout is None and dweights is None:
            return (None,) * len(ctx.needs_input_grad)
        call = ctx.call
        out, lse, query, key, value, sinks, *biases = _detached(ctx.saved_tensors)
        if not call.heads_first:
            out = out.transpose(1, 2)
            dout = None if dout is None else dout.transpose(1, 2)
        needs = ctx.needs_input_grad[1:]
        wanted = [name for name, need in zip(("dquery", "dkey", "dvalue", "dsinks"), needs) if need]
        if any(needs[4:]):
            wanted.append("dmasks")
        found = attention_backward(
            query, key, value, dout, out=out, lse=lse, gradients=wanted, sinks=sinks,
            dweights=None if dweights is None else WeightsGradient(dweights), mask=_with_arrays(call.masks, biases),
            **call.options,
        )  # fmt: skip
        dbiases = [d for d, mask in zip(found.dmasks, call.masks) if mask.kind == "add"] or [None] * len(biases)
        return None, *found[:4], *(d if need else None for d, need in zip(dbiases, needs[4:]))
