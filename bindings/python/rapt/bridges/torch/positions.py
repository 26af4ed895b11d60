"""Which keys a query sees because of its position among the keys."""

import functools

import torch
from torch import Tensor


def seen_by_position(
    queries: int, keys: int, is_causal: bool, left: int | None, right: int | None, alignment: Tensor | None,
    key_lengths: Tensor | None,
) -> Tensor | None:  # fmt: skip
    """The mask that these arguments of rapt::attention describe: (Lq, Lk), or (B, 1, Lq, Lk) with key_lengths.

    True where a key is seen. None: all keys are seen.
    """
    device = next((x.device for x in (alignment, key_lengths) if x is not None), None)
    key = torch.arange(keys, device=device)
    query = torch.arange(queries, device=device)[:, None]
    if alignment is not None:
        query = query + alignment
    limits = []
    if is_causal:
        limits.append(key <= query)
    if left is not None:
        limits.append(key >= query - left)
    if right is not None:
        limits.append(key <= query + right)
    if key_lengths is not None:
        limits.append(key < key_lengths[:, None, None, None])
    return functools.reduce(torch.logical_and, limits) if limits else None
