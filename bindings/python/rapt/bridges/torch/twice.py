"""Gradients computed by PyTorch's own operators: they can be differentiated again, batched, and used under
transforms."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..._attention import attention
from .positions import seen_by_position


_Masks = Sequence[Tensor | None]


def _masked(scores: Tensor, masks: _Masks) -> Tensor:
    for mask in masks:
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _scores(query: Tensor, key: Tensor, masks: _Masks, scale: float | None, softcap: float) -> Tensor:
    """The input of softmax, (B, Hq, Lq, Lk)."""
    size = query.shape[-1]
    factor = scale if scale is not None else 1.0 / math.sqrt(size) if size else 1.0
    scores = query @ key.transpose(-2, -1) * factor
    if softcap > 0.0:
        scores = softcap * torch.tanh(scores / softcap)
    return _masked(scores, masks)


def _seen(keys: Tensor, values: Tensor, queries: int, masks: _Masks) -> tuple[Tensor, Tensor]:
    """Keys and values with zeros where no query sees them: a NaN there would reach every product."""
    with torch.no_grad():
        reach = _masked(keys.new_zeros((*keys.shape[:2], queries, keys.shape[2])), masks)
        seen = (reach != -math.inf).any(-2).unsqueeze(-1)
    return torch.where(seen, keys, 0.0), torch.where(seen, values, 0.0)


def _kept(query: Tensor, key: Tensor, value: Tensor, seed: Tensor, dropout_p: float) -> Tensor:
    """True where rapt keeps a weight. That depends only on the seed and on positions, so a call whose weights are equal
    shows it: a weight that is 0 was dropped."""
    zeros = [torch.zeros_like(x) for x in (query, key, value)]
    return attention(*zeros, dropout=(dropout_p, int(seed)), return_weights=True).weights > 0.0


def differentiable_gradients(
    arrived: Sequence[Tensor | None], inputs: Sequence[Any], options: tuple, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients of rapt::attention, computed by PyTorch's operators, with a graph if gradients are recorded.

    All weights are in memory at once, (B, Hq, Lq, Lk), unlike in rapt's own backward, and computed in f32 for 16-bit
    inputs. A NaN in a key or value that only some queries see makes the gradients of all queries NaN, as in PyTorch.
    """
    query, key, value, attn_mask, key_mask, sinks, seed, alignment, key_lengths = inputs
    dropout_p, is_causal, scale, kind, softcap, left, right = options
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        groups = query.shape[1] // max(key.shape[1], 1)
        keys, values = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (key, value))
        # The inputs may have several types; sums are in the widest of them, at least f32. Autograd converts back.
        wide = torch.float64 if torch.float64 in (query.dtype, key.dtype, value.dtype) else torch.float32
        queries, keys, values = query.to(wide), keys.to(wide), values.to(wide)
        attn_mask, key_mask, sinks = (
            x if x is None or x.dtype == torch.bool else x.to(wide) for x in (attn_mask, key_mask, sinks)
        )
        seen = seen_by_position(query.shape[2], key.shape[2], is_causal, left, right, alignment, key_lengths)
        masks = (seen, attn_mask, key_mask)
        keys, values = _seen(keys, values, query.shape[2], masks)
        scores = _scores(queries, keys, masks, scale, softcap)
        top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full(
            (*scores.shape[:-1], 1), -math.inf
        )  # fmt: skip
        if sinks is not None:
            sinks = sinks[:, None, None]
            top = torch.maximum(top, sinks.detach())
        sees = top != -math.inf  # a row with a NaN sees keys
        raised = torch.where(sees, scores - torch.where(sees, top, 0.0), -math.inf).exp()
        total = raised.sum(-1, keepdim=True)
        if sinks is not None:
            total = total + torch.where(sees, sinks - top, -math.inf).exp()
        weights = raised / torch.where(sees, total, 1.0)
        lse = torch.where(sees, torch.where(sees, total, 1.0).log() + top, -math.inf).squeeze(-1)
        if seed is not None:
            keep_scale = 1.0 / (1.0 - dropout_p) if dropout_p < 1.0 else 0.0
            weights = weights * _kept(query, key, value, seed, dropout_p) * keep_scale
        results = [weights @ values, lse, weights.mean(1) if kind == "mean" else weights]
        pairs = [(result, gradient) for result, gradient in zip(results, arrived) if gradient is not None]
        chosen = [x for x, want in zip(inputs, wanted) if want]
        found = iter(torch.autograd.grad(
            [result for result, _ in pairs], chosen, [gradient.to(result.dtype) for result, gradient in pairs],
            create_graph=again, allow_unused=True,
        ))  # fmt: skip
    return [next(found) if want else None for want in wanted]
