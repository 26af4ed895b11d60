"""The attention function that transformers' models call, and its registration."""

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from ..torch.operator import attend
from .masks import StructuredMask, attention_mask, matrix_of


def register(name="rapt"):
    """Makes `name` a value of attn_implementation. Importing the module does so for "rapt"."""
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)


def attention_forward(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    sliding_window=None,
    softcap=None,
    is_causal=None,
    s_aux=None,
    position_bias=None,
    output_attentions=False,
    cache=None,
    **kwargs,
):
    """Called by a model's attention layers. Returns (out, weights): out is (B, Lq, Hq, Dv), weights are None unless
    requested.

    query is (B, Hq, Lq, D); key and value may have fewer heads. If the mask is None, a causal layer is aligned to the
    top left, as in PyTorch; a single query sees all keys.
    """
    if query.device.type != "cpu":
        raise ValueError(f"rapt: the model's tensors are on {query.device}; rapt's attention runs on the CPU")
    if cache is not None:
        raise NotImplementedError("rapt: continuous batching is not supported, because it uses its own paged cache; "
                                  "use another attn_implementation, or use model.generate, whose caches are supported")
    query, key, value = _of_types_that_go_together(query, key, value)
    masks, options = _masks(module, query, key, attention_mask, is_causal, sliding_window)
    if position_bias is not None:
        masks = (position_bias[..., : key.shape[2]], *masks)
    # The seed of dropout comes from PyTorch's generator, so torch.manual_seed and gradient checkpointing reproduce it.
    out, weights = attend(
        query, key, value, *masks, dropout_p=dropout, scale=scaling, sinks=s_aux, softcap=softcap or 0.0,
        weights="per_head" if output_attentions else "none", **options,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), weights


def _of_types_that_go_together(query, key, value):
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        return query.to(dtype), key.to(dtype), value.to(dtype)
    if torch.float64 in (query.dtype, key.dtype, value.dtype):  # which cannot be mixed with other types
        return query.double(), key.double(), value.double()
    if key.dtype != value.dtype:
        return query, key.float(), value.float()
    return query, key, value


def _masks(module, query, key, mask, is_causal, sliding_window):
    """(at most one mask, options) for `attend`, equivalent to the mask that the model passed."""
    queries, keys = query.shape[2], key.shape[2]
    if mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if not causal or queries == 1:
            return (), {}
        return (), {"is_causal": True, "left": None if sliding_window is None else sliding_window - 1}
    if isinstance(mask, StructuredMask) and mask.shape == (query.shape[0], 1, queries, keys):
        return _parts(mask)
    return (mask[..., :keys],), {}


def _parts(mask):
    """(at most one mask, options) for a StructuredMask."""
    if mask.is_read:
        return (matrix_of(mask),), {}
    pattern = mask.pattern
    options = {"is_causal": pattern.causal, "left": pattern.left, "right": pattern.right}
    options |= {"alignment": mask.alignment, "key_lengths": mask.key_lengths}
    return () if mask.key_mask is None else (mask.key_mask,), options
