"""Attention as PyTorch operators, rapt::attention and rapt::attention_backward, for compilers and autograd.

Tensors have four dimensions here: query (B, Hq, Lq, D), key (B, Hkv, Lk, D), value (B, Hkv, Lk, Dv). The two masks
broadcast to (B, Hq, Lq, Lk); a bool mask is True where a key is seen, a float mask is added. sinks is (Hq). Values that
may change between calls of a compiled model are tensors, read when the operator runs: the seed of dropout, alignment
(the position of query 0 among the keys; None: 0) and key_lengths, (B). left and right are the window, None for no
limit. `weights` is "none", "mean" or "per_head".
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _rapt
from ..._options import Capture, Mask, Options, WeightsGradient
from .calls import count_rapt
from .reach import plain, transformed, watched
from .twice import differentiable_gradients

# No argument has a default: every implementation gets all of them, in this order.
_INPUTS = (
    "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? key_mask, Tensor? sinks, "
    "Tensor? seed, Tensor? alignment, Tensor? key_lengths"
)
_OPTIONS = "float dropout_p, bool is_causal, float? scale, str weights, float softcap, int? left, int? right"
_DIFFERENTIABLE, _TENSORS = 6, 9  # how many of the inputs, from the first
_WEIGHTS = -4  # the place of `weights` among the arguments
_library = torch.library.Library("rapt", "DEF")
_library.define(f"attention({_INPUTS}, {_OPTIONS}) -> (Tensor out, Tensor lse, Tensor weights)")
_library.define(
    f"attention_backward(Tensor? dout, Tensor? dlse, Tensor? dweights, Tensor out, Tensor lse, bool[6] wanted, "
    f"{_INPUTS}, {_OPTIONS}) -> (Tensor dquery, Tensor dkey, Tensor dvalue, Tensor dattn_mask, Tensor dkey_mask, "
    "Tensor dsinks)"
)

_Forward = tuple[Tensor, Tensor, Tensor]
_Backward = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


# ---------------------------------------------------------------- the calls


def _lent(x: Tensor) -> Tensor:
    """A detached view that rapt can read; a lazily negated tensor is resolved."""
    return x.resolve_neg().detach()


def _options(
    attn_mask: Tensor | None, key_mask: Tensor | None, sinks: Tensor | None, seed: Tensor | None,
    alignment: Tensor | None, key_lengths: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None,
    weights: str, softcap: float, left: int | None, right: int | None,
) -> tuple:  # fmt: skip
    """The options as rapt.attention hands them to the extension."""
    masks = [_as_mask(mask) for mask in (attn_mask, key_mask) if mask is not None]
    window = None if left is None and right is None else (left, right)
    position: Any = None
    if is_causal or window is not None:
        position = "top_left" if alignment is None else int(alignment)
    lengths = None if key_lengths is None else key_lengths.tolist()
    dropout = None if seed is None else (dropout_p, int(seed))
    threads = min(torch.get_num_threads(), _rapt.thread_count())  # the lower of the two libraries' limits
    return Options(
        mask=masks or None, scale=scale, softcap=softcap, causal=is_causal, window=window, alignment=position,
        key_lengths=lengths, sinks=None if sinks is None else _lent(sinks), dropout=dropout, threads=threads,
    )  # fmt: skip


def _as_mask(mask: Tensor) -> Mask:
    """A rapt.Mask with the meaning that the tensor's type implies."""
    return Mask("keep" if mask.dtype == torch.bool else "add", _lent(mask))


def _tokens_first(query: Tensor) -> bool:
    """Whether the memory layout is (B, L, H, D): then the result has the same layout."""
    return 0 < query.stride(1) < query.stride(2)


def _new_out(query: Tensor, value: Tensor) -> Tensor:
    """Memory for the result, (B, Hq, Lq, Dv), in the layout of the query."""
    batch, heads, queries, _ = query.shape
    size = value.shape[3]
    if _tokens_first(query):
        return query.new_empty((batch, queries, heads, size)).transpose(1, 2)
    return query.new_empty((batch, heads, queries, size))


def compute(
    query: Tensor, key: Tensor, value: Tensor, *rest: Any, want_lse: bool = True
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """(out, lse, weights) by rapt, from the operator's arguments; None for what is not wanted."""
    options, weights = _options(*rest), rest[_WEIGHTS]
    query = _lent(query)
    place = _new_out(query, value) if _tokens_first(query) else None
    wanted = None if weights == "none" else (Capture(mean_over_heads=weights == "mean"),)
    found: Any = _rapt.attention(query, _lent(key), _lent(value), None, options, place, want_lse, wanted)
    count_rapt()
    if not want_lse and wanted is None:
        return found, None, None
    out, lse, captured = found
    return out, lse, captured[0] if captured else None


def _attention(query: Tensor, *rest: Any) -> _Forward:
    """The operator, which must return three tensors."""
    out, lse, weights = compute(query, *rest)
    return out, lse, query.new_empty(0) if weights is None else weights  # type: ignore[return-value]


def _attention_backward(
    dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None, out: Tensor, lse: Tensor, wanted: Sequence[bool],
    query: Tensor, key: Tensor, value: Tensor, *rest: Any,
) -> _Backward:  # fmt: skip
    names = [name for name, want in zip(("dquery", "dkey", "dvalue"), wanted) if want]
    names += ["dmasks"] * (wanted[3] or wanted[4]) + ["dsinks"] * wanted[5]
    mean = rest[_WEIGHTS] == "mean"
    at_weights = () if dweights is None else (WeightsGradient(_lent(dweights), mean_over_heads=mean),)
    arrived = [None if x is None else _lent(x) for x in (dout, dlse)]
    *gradients, dsinks, at_masks = _rapt.attention_backward(
        _lent(query), _lent(key), _lent(value), _options(*rest), (*arrived, at_weights, _lent(out), _lent(lse)), names
    )
    of_masks = iter(at_masks)
    gradients += [None if mask is None else next(of_masks, None) for mask in rest[:2]]
    return tuple(
        gradient if want and gradient is not None else query.new_empty(0)
        for gradient, want in zip((*gradients, dsinks), wanted)
    )  # type: ignore[return-value]


_library.impl("attention", _attention, "CPU")
_library.impl("attention_backward", _attention_backward, "CPU")


# ---------------------------------------------------------------- shapes, for compilers


@torch.library.register_fake("rapt::attention", lib=_library)
def _attention_shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> _Forward:
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    lse = query.new_empty((batch, heads, queries), dtype=torch.promote_types(query.dtype, torch.float32))
    shapes = {"none": (0,), "mean": (batch, queries, keys), "per_head": (batch, heads, queries, keys)}
    return _new_out(query, value), lse, query.new_empty(shapes[rest[_WEIGHTS]])


@torch.library.register_fake("rapt::attention_backward", lib=_library)
def _attention_backward_shapes(
    dout: Any, dlse: Any, dweights: Any, out: Any, lse: Any, wanted: Sequence[bool], query: Tensor, *rest: Any
) -> _Backward:
    return tuple(
        x.new_empty(x.shape) if want and x is not None and x.dtype != torch.bool else query.new_empty(0)
        for x, want in zip((query, *rest), wanted)
    )  # type: ignore[return-value]


# ---------------------------------------------------------------- autograd


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Any, Any]) -> None:
    """Saves what backward needs."""
    ctx.options = inputs[_TENSORS:]
    ctx.save_for_backward(*inputs[:_TENSORS], output[0], output[1])
    ctx.set_materialize_grads(False)
    if ctx.options[_WEIGHTS] == "none" and output[2] is not None:
        ctx.mark_non_differentiable(output[2])


def _gradients(
    ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None, call: Any, by_rapt: Any
) -> tuple:
    """One gradient for each input of attention; None for an input without a gradient or without a request for it.

    `call` computes them if `by_rapt` accepts the upstream gradients; otherwise PyTorch's operators do.
    """
    *inputs, out, lse = ctx.saved_tensors
    wanted = [*ctx.needs_input_grad[:_DIFFERENTIABLE]]
    if ctx.options[_WEIGHTS] == "none":
        dweights = None
    arrived = (dout, dlse, dweights)
    if all(x is None for x in arrived):
        return (None,) * len(ctx.needs_input_grad)
    if by_rapt(arrived):
        gradients = call(*arrived, out, lse, wanted, *inputs, *ctx.options)
    else:
        gradients = differentiable_gradients(arrived, inputs, ctx.options, wanted)
    padding = [None] * (len(ctx.needs_input_grad) - len(wanted))
    return *(gradient if want else None for gradient, want in zip(gradients, wanted)), *padding


def _once(tensors: Sequence[Tensor | None]) -> bool:
    """Whether the gradients are not differentiated again (create_graph) and have neither batches nor tangents."""
    return not torch.is_grad_enabled() and not transformed()


def _gradients_by_operator(ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None) -> tuple:
    def by_rapt(arrived: Sequence[Tensor | None]) -> bool:
        return torch.compiler.is_compiling() or _once(arrived)

    return _gradients(ctx, dout, dlse, dweights, torch.ops.rapt.attention_backward, by_rapt)


torch.library.register_autograd("rapt::attention", _gradients_by_operator, setup_context=_keep, lib=_library)


def _no_second(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError("rapt::attention_backward: a compiled graph has no second-order gradients; compute "
                              "them with rapt.torch.sdpa without torch.compile")


torch.library.register_autograd("rapt::attention_backward", _no_second, lib=_library)


def _all_plain(tensors: Sequence[Tensor | None]) -> bool:
    """Whether rapt can read the tensors. Gradients batched by is_grads_batched look plain and belong to no vmap level,
    so they are recognized separately."""
    return all(x is None or plain(x) and not torch._C._functorch.is_legacy_batchedtensor(x) for x in tensors)


def _once_and_plain(tensors: Sequence[Tensor | None]) -> bool:
    return _once(tensors) and _all_plain(tensors)


class Attention(torch.autograd.Function):
    """rapt::attention for tensors that require gradients, without the dispatcher: the same code, with less overhead."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Any, Any]:
        """The results of the operator. (A separate setup_context would double the time of a small call.)"""
        output = compute(*arguments)
        _keep(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None, dweights: Tensor | None) -> tuple:
        """The requested gradients, one for each argument. Compilers use the operator instead of this class, so
        whether one is active, perhaps in another thread, does not matter."""
        return _gradients(ctx, dout, dlse, dweights, _attention_backward, _once_and_plain)


# ---------------------------------------------------------------- the path of a call


def _refuse_tangents(tensors: Sequence[Tensor]) -> None:
    """Raises an error for tensors with forward-mode tangents, which would be lost silently."""
    if torch.compiler.is_compiling() or torch.autograd.forward_ad._current_level < 0:
        return
    if any(torch.autograd.forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise NotImplementedError("rapt.torch: attention has no forward-mode gradients, only backward ones")


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    key_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    weights: str = "none",
    *,
    sinks: Tensor | None = None,
    alignment: Tensor | None = None,
    key_lengths: Tensor | None = None,
    softcap: float = 0.0,
    left: int | None = None,
    right: int | None = None,
) -> tuple[Tensor, Any]:
    """(out, weights), by the fastest path that records what autograd needs. Seeds come from PyTorch's generator."""
    seed = torch.randint(2**63 - 1, (), device="cpu") if dropout_p > 0.0 else None
    arguments = (query, key, value, attn_mask, key_mask, sinks, seed, alignment, key_lengths, dropout_p, is_causal,
                 scale, weights, softcap, left, right)  # fmt: skip
    tensors = [x for x in arguments[:_DIFFERENTIABLE] if x is not None]
    if watched():
        _refuse_tangents(tensors)
        out, _, captured = torch.ops.rapt.attention(*arguments)
    elif not all(type(x) in (Tensor, torch.nn.Parameter) and x.is_cpu for x in tensors):
        out, _, captured = torch.ops.rapt.attention(*arguments)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        out, _, captured = Attention.apply(*arguments)
    else:
        out, _, captured = compute(*arguments, want_lse=False)
    return out, captured
