"""Gradients by PyTorch's own operators: they can be differentiated again, batched, and followed by transforms."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def _scores(query: Tensor, key: Tensor, masks: Sequence[Tensor | None], is_causal: bool, scale: float | None) -> Tensor:
    """What softmax is taken of, (B, Hq, Lq, Lk)."""
    size = query.shape[-1]
    factor = scale if scale is not None else 1.0 / math.sqrt(size) if size else 1.0
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    for mask in masks:
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _kept(
    attention: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seed: Tensor,
    dropout_p: float,
) -> Tensor:
    """True where rapt keeps a weight. Which ones is a matter of the seed alone, so weights that are all equal tell."""
    zeros = torch.zeros_like(query)
    return attention(zeros, key.detach(), value.detach(), None, None, seed, dropout_p, False, 0.0, "per_head")[2] > 0.0


def differentiable_gradients(
    arrived: Sequence[Tensor | None],
    inputs: Sequence[Any],
    options: tuple,
    wanted: Sequence[bool],
    attention: Callable[..., Any],
) -> list[Tensor | None]:
    """The gradients of rapt::attention as PyTorch's operators compute them, with a graph where gradients are recorded.

    It holds all weights at once, (B, Hq, Lq, Lk): rapt's own way back does not.
    """
    query, key, value, attn_mask, key_mask, seed = inputs
    dropout_p, is_causal, scale, kind = options
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        groups = query.shape[1] // max(key.shape[1], 1)
        keys, values = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (key, value))
        scores = _scores(query, keys, (attn_mask, key_mask), is_causal, scale)
        top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores.new_zeros((*scores.shape[:-1], 1))
        sees = top > -math.inf
        raised = torch.where(sees, scores - torch.where(sees, top, 0.0), -math.inf).exp()
        total = raised.sum(-1, keepdim=True)
        weights = raised / torch.where(sees, total, 1.0)
        lse = torch.where(sees, torch.where(sees, total, 1.0).log() + top, -math.inf).squeeze(-1)
        if seed is not None:
            weights = weights * _kept(attention, query, key, value, seed, dropout_p) / (1.0 - dropout_p)
        results = [weights @ values, lse, weights.mean(1) if kind == "mean" else weights]
        pairs = [(result, gradient) for result, gradient in zip(results, arrived) if gradient is not None]
        chosen = [x for x, want in zip(inputs, wanted) if want]
        found = iter(torch.autograd.grad(
            [result for result, _ in pairs], chosen, [gradient.to(result.dtype) for result, gradient in pairs],
            create_graph=again, allow_unused=True,
        ))  # fmt: skip
    return [next(found) if want else None for want in wanted]
