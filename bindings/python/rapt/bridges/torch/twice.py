"""Gradients computed by PyTorch's own operators: they can be differentiated again, batched, and used under
transforms."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..._attention import attention
from .positions import seen_by_position


def _scores(
    query: Tensor, key: Tensor, masks: Sequence[Tensor | None], scale: float | None, softcap: float
) -> Tensor:  # fmt: skip
    """The input of softmax, (B, Hq, Lq, Lk)."""
    size = query.shape[-1]
    factor = scale if scale is not None else 1.0 / math.sqrt(size) if size else 1.0
    scores = query @ key.transpose(-2, -1) * factor
    if softcap > 0.0:
        scores = softcap * torch.tanh(scores / softcap)
    for mask in masks:
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _kept(query: Tensor, key: Tensor, value: Tensor, seed: Tensor, dropout_p: float) -> Tensor:
    """True where rapt keeps a weight. That depends only on the seed and on positions, so a call whose weights are equal
    shows it: a weight that is 0 was dropped."""
    zeros = [torch.zeros_like(x) for x in (query, key, value)]
    return attention(*zeros, dropout=(dropout_p, int(seed)), return_weights=True).weights > 0.0


def differentiable_gradients(
    arrived: Sequence[Tensor | None], inputs: Sequence[Any], options: tuple, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients of rapt::attention, computed by PyTorch's operators, with a graph if gradients are recorded.

    All weights are in memory at once, (B, Hq, Lq, Lk), unlike in rapt's own backward.
    """
    query, key, value, attn_mask, key_mask, sinks, seed, alignment, key_lengths = inputs
    dropout_p, is_causal, scale, kind, softcap, left, right = options
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        groups = query.shape[1] // max(key.shape[1], 1)
        keys, values = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (key, value))
        seen = seen_by_position(query.shape[2], key.shape[2], is_causal, left, right, alignment, key_lengths)
        scores = _scores(query, keys, (seen, attn_mask, key_mask), scale, softcap)
        top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full(
            (*scores.shape[:-1], 1), -math.inf
        )  # fmt: skip
        if sinks is not None:
            sinks = sinks[:, None, None]
            top = torch.maximum(top, sinks.detach())
        sees = top > -math.inf
        raised = torch.where(sees, scores - torch.where(sees, top, 0.0), -math.inf).exp()
        total = raised.sum(-1, keepdim=True)
        if sinks is not None:
            total = total + torch.where(sees, sinks - top, -math.inf).exp()
        weights = raised / torch.where(sees, total, 1.0)
        lse = torch.where(sees, torch.where(sees, total, 1.0).log() + top, -math.inf).squeeze(-1)
        if seed is not None:
            weights = weights * _kept(query, key, value, seed, dropout_p) / (1.0 - dropout_p)
        results = [weights @ values, lse, weights.mean(1) if kind == "mean" else weights]
        pairs = [(result, gradient) for result, gradient in zip(results, arrived) if gradient is not None]
        chosen = [x for x, want in zip(inputs, wanted) if want]
        found = iter(torch.autograd.grad(
            [result for result, _ in pairs], chosen, [gradient.to(result.dtype) for result, gradient in pairs],
            create_graph=again, allow_unused=True,
        ))  # fmt: skip
    return [next(found) if want else None for want in wanted]
