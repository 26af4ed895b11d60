"""PyTorch's attention layer, computed by rapt: the function and the module."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .operator import attend


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """torch.nn.functional.multi_head_attention_forward with the same arguments and semantics, computed by rapt.

    query is (Lq, B, E), key and value are (Lk, B, their size), or all of them without B. Returns the output, (Lq, B,
    E), and with need_weights the weights, (B, Lq, Lk), or (B, H, Lq, Lk) with average_attn_weights=False.
    """
    batched = _is_batched(query, key, value)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    queries, batch, size = query.shape
    if size != embed_dim_to_check or size % num_heads:
        raise ValueError(f"multi_head_attention_forward: query has embedding size {size}; it must be "
                         f"{embed_dim_to_check}, a multiple of the {num_heads} heads")
    if is_causal and attn_mask is None:
        raise ValueError("multi_head_attention_forward: is_causal is a hint about attn_mask, and there is none; pass "
                         "the causal mask too")
    causal = is_causal and key_padding_mask is None and not need_weights
    masks = Masks(None if causal else attn_mask, key_padding_mask, (batch, num_heads, queries, key.shape[0]))

    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _separate_projections(query, key, value, weights, in_proj_bias)
    else:
        q, k, v = _packed_projections(query, key, value, in_proj_weight, in_proj_bias)
    if (bias_k is None) != (bias_v is None):
        raise ValueError("multi_head_attention_forward: bias_k and bias_v must be given together")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise ValueError("multi_head_attention_forward: bias_k and bias_v cannot be added to static_k and static_v")
        k = torch.cat([k, bias_k.expand(1, batch, -1)])
        v = torch.cat([v, bias_v.expand(1, batch, -1)])
        masks.add_seen_key()

    q = _split(q, num_heads)
    k = _split(k, num_heads) if static_k is None else static_k.view(batch, num_heads, *static_k.shape[1:])
    v = _split(v, num_heads) if static_v is None else static_v.view(batch, num_heads, *static_v.shape[1:])
    if add_zero_attn:
        k = torch.cat([k, k.new_zeros(*k.shape[:2], 1, k.shape[3])], 2)
        v = torch.cat([v, v.new_zeros(*v.shape[:2], 1, v.shape[3])], 2)
        masks.add_seen_key()

    wanted = "none" if not need_weights else "mean" if average_attn_weights else "per_head"
    rate = dropout_p if training else 0.0
    everything = rate >= 1.0  # everything is dropped: 0 times the output, as in PyTorch
    out, seen = attend(q, k, v, masks.attention, masks.padding, 0.0 if everything else rate, causal, None, wanted)
    if everything:
        out, seen = out * 0.0, seen * 0.0 if need_weights else None
    out = F.linear(out.permute(2, 0, 1, 3).reshape(queries, batch, size), out_proj_weight, out_proj_bias)
    if not batched:
        out, seen = out.squeeze(1), seen.squeeze(0) if need_weights else seen
    return out, seen if need_weights else None


def _is_batched(query: Tensor, key: Tensor, value: Tensor) -> bool:
    ranks = {x.dim() for x in (query, key, value)}
    if len(ranks) != 1 or not ranks <= {2, 3}:
        raise ValueError(f"multi_head_attention_forward: query, key and value have {query.dim()}, {key.dim()} and "
                         f"{value.dim()} dimensions; they must have three, or all of them two, without a batch")
    return ranks == {3}


class Masks:
    """The two masks of a layer in the form that the operator takes: four dimensions, and True in a bool mask means
    seen."""

    def __init__(self, attention: Tensor | None, padding: Tensor | None, sizes: tuple[int, int, int, int]) -> None:
        batch, heads, queries, keys = sizes
        self.attention, self.padding = None, None
        if attention is not None:
            wanted = {2: (queries, keys), 3: (batch * heads, queries, keys)}.get(attention.dim())
            if attention.shape != wanted:
                raise ValueError(f"multi_head_attention_forward: attn_mask is {tuple(attention.shape)}; it must be "
                                 f"{(queries, keys)} or {(batch * heads, queries, keys)}")
            leading = (1, 1) if attention.dim() == 2 else (batch, heads)
            self.attention = self._kept(attention).view(*leading, queries, keys)
        if padding is not None:
            if padding.shape != (batch, keys):
                raise ValueError(f"multi_head_attention_forward: key_padding_mask is {tuple(padding.shape)}; it must "
                                 f"be {(batch, keys)}")
            self.padding = self._kept(padding).view(batch, 1, 1, keys)

    @staticmethod
    def _kept(mask: Tensor) -> Tensor:
        """The mask with True for a seen key: in a layer's bool mask, True means hidden."""
        if mask.dtype == torch.bool:
            return mask.logical_not()
        if not mask.is_floating_point():
            raise ValueError(f"multi_head_attention_forward: a mask is {mask.dtype}; it must be bool or float")
        return mask if mask.is_contiguous() else mask.contiguous()

    def add_seen_key(self) -> None:
        """Adds a key that every query sees."""
        self.attention, self.padding = (
            None if mask is None else F.pad(mask, (0, 1), value=mask.dtype == torch.bool)
            for mask in (self.attention, self.padding)
        )


def _split(x: Tensor, heads: int) -> Tensor:
    """(L, B, E) -> (B, H, L, D), a view."""
    length, batch, size = x.shape
    return x.view(length, batch, heads, size // heads).permute(1, 2, 0, 3)


def _packed_projections(query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None) -> Any:
    """Projects with one matrix, (3 E, E): a single product if query, key and value are the same tensor."""
    if weight is None:
        raise ValueError("multi_head_attention_forward: in_proj_weight is None without use_separate_proj_weight")
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, -1)
    size = query.shape[-1]
    if key is value:
        parts = (None, None) if bias is None else bias.split([size, 2 * size])
        first, rest = weight.split([size, 2 * size])
        return F.linear(query, first, parts[0]), *F.linear(key, rest, parts[1]).chunk(2, -1)
    return _separate_projections(query, key, value, weight.chunk(3), bias)


def _separate_projections(query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None) -> Any:
    """Projects query, key and value with separate matrices."""
    if any(weight is None for weight in weights):
        raise ValueError("multi_head_attention_forward: use_separate_proj_weight needs q_proj_weight, k_proj_weight "
                         "and v_proj_weight")
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(f"multi_head_attention_forward: key is {tuple(key.shape)} and value {tuple(value.shape)}; "
                         "they must agree in length and batch")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(F.linear(x, weight, b) for x, weight, b in zip((query, key, value), weights, biases))


class MultiheadAttention(torch.nn.MultiheadAttention):
    """torch.nn.MultiheadAttention computed by rapt: the same constructor, arguments, parameters and results.

        layer = rapt.torch.MultiheadAttention(512, 8, batch_first=True)
        layer.load_state_dict(theirs.state_dict())

    For a query that sees no key, PyTorch gives NaN if weights are requested; this layer gives 0.
    """

    def _reset_parameters(self) -> None:
        """Initializes the parameters, at the end of the constructor."""
        super()._reset_parameters()
        # In evaluation, torch.nn.TransformerEncoderLayer reads the parameters and bypasses our forward, unless one of
        # its modules has a hook. The hook costs nothing, because this module is never called: only its parameters are
        # read.
        if not self.out_proj._forward_pre_hooks:
            self.out_proj.register_forward_pre_hook(_no_fast_path)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights), or (output, None) without need_weights; with the arguments of PyTorch's layer."""
        if query.is_nested:
            alone = query is key is value and key_padding_mask is None and attn_mask is None and not need_weights
            if alone and self.batch_first and query.layout is torch.strided:
                return self._nested(query), None
            return super().forward(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = _turned(query, key, value)
        out, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=self.in_proj_weight is None,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if turned else out), weights

    def _nested(self, x: Tensor) -> Tensor:
        """Self-attention of a nested tensor, to which torch.nn.TransformerEncoder converts padded tokens in
        evaluation."""
        lengths = torch.tensor([tokens.shape[0] for tokens in x.unbind()])
        padded = x.to_padded_tensor(0.0)
        hidden = torch.arange(padded.shape[1]) >= lengths[:, None]
        out, _ = self.forward(padded, padded, padded, key_padding_mask=hidden, need_weights=False)
        return torch.nested.as_nested_tensor([tokens[:length] for tokens, length in zip(out, lengths)])


def _no_fast_path(module: torch.nn.Module, args: Any) -> None:
    """A hook that does nothing."""


def _turned(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, L, E) -> (L, B, E); inputs that are the same tensor stay the same tensor."""
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    v = k if value is key else q if value is query else value.transpose(0, 1)
    return q, k, v
