"""PyTorch's scaled_dot_product_attention, computed by rapt."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .operator import attend
from .reach import is_causal_bias

DTYPES = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16))


def sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention with the same arguments and semantics, computed by rapt.

        out = rapt.torch.sdpa(query, key, value, is_causal=True)

    Takes float32, float64, float16 and bfloat16 on the CPU, with any strides; tensors with up to four dimensions are
    not copied. Records gradients of query, key, value and a float mask.

    query:       (..., Hq, Lq, D)
    key, value:  (..., Hkv, Lk, D) and (..., Hkv, Lk, Dv). Leading dimensions, heads among them, broadcast
    attn_mask:   broadcasts to (..., Hq, Lq, Lk). Bool: True where a key is seen. Float: added to the scores
    dropout_p:   the rate at which weights are dropped; torch.manual_seed determines which ones
    is_causal:   query i sees keys 0 to i, whatever the lengths are
    scale:       None: 1 / sqrt(D)
    enable_gqa:  Hq may be a multiple of Hkv: query head h reads key head h // (Hq // Hkv)

    A row that sees no key gives 0. attn_mask may be a torch.nn.attention.bias.CausalBias.
    """
    alignment = None
    if attn_mask is not None and type(attn_mask) is not Tensor and is_causal_bias(attn_mask):
        alignment = _alignment(attn_mask, query, key, is_causal)
        attn_mask, is_causal = None, True
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = (_cast(x) for x in (query, key, value, attn_mask))
    check(query, key, value, attn_mask, is_causal)
    shape, sizes, rank = query.shape, value.shape, 4 if attn_mask is None else attn_mask.dim()
    whole = len(shape) == 4 and shape[:2] == key.shape[:2] == sizes[:2] and shape[3] and sizes[3]
    if whole and dropout_p == 0.0 and (rank == 4 or rank == 2):  # nothing to broadcast: a few microseconds less
        mask = attn_mask[None, None] if attn_mask is not None and rank == 2 else attn_mask
        return attend(query, key, value, mask, None, 0.0, is_causal, scale, alignment=alignment)[0]
    views = Views(query, key, value, attn_mask, enable_gqa)
    out, _ = attend(*views.tensors, None, _rate(dropout_p), is_causal, scale, alignment=alignment)
    if dropout_p >= 1.0:
        out = out * 0.0
    return out[..., : value.shape[-1]].reshape(views.shape)


def _alignment(bias: Any, query: Tensor, key: Tensor, is_causal: bool) -> Tensor | None:
    """The position of query 0 among the keys, by a CausalBias. Only its attributes matter: its memory is never set."""
    if is_causal:
        raise ValueError("sdpa: attn_mask is a CausalBias, which cannot be combined with is_causal=True")
    if bias.variant.name == "UPPER_LEFT" or bias.seq_len_q == bias.seq_len_kv:
        return None
    if (bias.seq_len_q, bias.seq_len_kv) != (query.shape[-2], key.shape[-2]):
        raise ValueError(f"sdpa: attn_mask is causal for {bias.seq_len_q} queries and {bias.seq_len_kv} keys; it must "
                         f"be for the {query.shape[-2]} queries and {key.shape[-2]} keys of this call")
    return torch.tensor(bias.seq_len_kv - bias.seq_len_q, device="cpu")


def _cast(x: Tensor | None) -> Tensor | None:
    """Casts an input of attention as torch.autocast does."""
    if x is None or not x.is_floating_point() or x.dtype == torch.float64:
        return x
    return x.to(torch.get_autocast_dtype("cpu"))


def _rate(dropout_p: float) -> float:
    """Checks the rate. At 1 everything is dropped, which the caller handles, as PyTorch does: 0 times the output."""
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"sdpa: dropout_p is {dropout_p}; it must be from 0 to 1")
    return 0.0 if dropout_p == 1.0 else dropout_p


def check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    """Refuses what PyTorch refuses."""
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(f"sdpa: query is {query.dtype}, key is {key.dtype}, value is {value.dtype}; they must "
                         "be equal")
    if not query.device == key.device == value.device:
        raise ValueError(f"sdpa: query is on {query.device}, key on {key.device}, value on {value.device}; they must "
                         "be on the CPU")
    if query.dtype not in DTYPES:
        raise ValueError(f"sdpa: query is {query.dtype}; rapt computes with float32, float64, bfloat16 and float16")
    if attn_mask is None:
        return
    if is_causal:
        raise ValueError("sdpa: attn_mask and is_causal cannot be combined; include the causal mask in attn_mask")
    if attn_mask.dtype not in (torch.bool, torch.float32, query.dtype):
        raise ValueError(f"sdpa: attn_mask is {attn_mask.dtype}; it must be torch.bool, torch.float32 or the query's "
                         f"{query.dtype}")


class Views:
    """Inputs of any rank as the operator's four dimensions, and the final shape of the result.

    Broadcast dimensions are expanded, which copies nothing up to four dimensions. With five or more, the leading
    dimensions are merged, which copies if the strides do not allow a view. A head size of 0 is padded to 1 with zeros.
    """

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, enable_gqa: bool) -> None:
        given = max(query.dim(), key.dim(), value.dim())
        if min(query.dim(), key.dim(), value.dim()) < 2:
            raise ValueError("sdpa: query, key and value must have at least two dimensions, (L, D)")
        rank = max(given, 4)
        query, key, value = (_raised(x, rank) for x in (query, key, value))
        batch = tuple(_broadcast(sizes) for sizes in zip(query.shape[:-3], key.shape[:-3], value.shape[:-3]))
        heads = _grouped_heads(query, key, value) if enable_gqa else _broadcast_heads(query, key, value)
        self.shape = (*batch, heads[0], query.shape[-2], value.shape[-1])[rank - given :]
        query, key, value = (x if x.shape[-1] else F.pad(x, (0, 1)) for x in (query, key, value))
        query, key, value = (_flat(_with_heads(x, n), batch) for x, n in zip((query, key, value), heads))
        if mask is not None:
            if mask.dim() > rank:
                raise ValueError(f"sdpa: attn_mask has {mask.dim()} dimensions; with these query, key and value it "
                                 f"must have at most {rank}")
            mask = _raised(mask, rank)
            mask = _flat(mask, batch if any(n != 1 for n in mask.shape[:-3]) else mask.shape[:-3])
        self.tensors = (query, key, value, mask)


def _broadcast(sizes: tuple[int, int, int]) -> int:
    """The broadcast size of one dimension of query, key and value. (torch.broadcast_shapes would import a compiler.)"""
    large = [size for size in sizes if size != 1]
    if any(size != large[0] for size in large):
        raise ValueError("sdpa: query, key and value have {}, {} and {} in a leading dimension, which do not "
                         "broadcast; with enable_gqa=True, a key head can serve several query heads".format(*sizes))
    return large[0] if large else 1


def _raised(x: Tensor, rank: int) -> Tensor:
    """Adds leading dimensions of size 1."""
    return x.view(*[1] * (rank - x.dim()), *x.shape) if x.dim() < rank else x


def _flat(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """Broadcasts over all batch dimensions and merges them."""
    if x.shape[:-3] != batch:
        x = x.expand(*batch, *x.shape[-3:])
    return x if len(batch) == 1 else x.reshape(math.prod(batch), *x.shape[-3:])


def _with_heads(x: Tensor, heads: int) -> Tensor:
    """Expands x to `heads` heads by repeating each of its heads (repeat_interleave). A view if x has one head."""
    own = x.shape[-3]
    if own == heads:
        return x
    if own == 1:
        return x.expand(*x.shape[:-3], heads, *x.shape[-2:])
    return x.repeat_interleave(heads // own, -3)


def _grouped_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, int, int]:
    """The number of heads of each, if one key head serves several query heads."""
    heads = [x.shape[-3] for x in (query, key, value)]
    if any(n == 0 or heads[0] % n for n in heads):
        raise ValueError(f"sdpa: key has {heads[1]} heads and value has {heads[2]}; both must divide the query's "
                         f"{heads[0]}")
    return (heads[0], *heads[1:]) if heads[1] == heads[2] else (heads[0],) * 3


def _broadcast_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, int, int]:
    """The number of heads of each, if heads broadcast like any other dimension."""
    heads = _broadcast((query.shape[-3], key.shape[-3], value.shape[-3]))
    shared = 1 if key.shape[-3] == value.shape[-3] == 1 else heads  # a single head for all is read in place
    return heads, shared, shared
