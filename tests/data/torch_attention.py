"""Attention in plain PyTorch operations, step by step, and the same through PyTorch's own functions.

`steps` follows the eight steps of include/rapt/attention.h with one PyTorch operation each, so that autograd gives the
gradients. `sdpa` and `flex` call PyTorch's own functions for the cases that these support; make_vectors.py asserts that
all agree. Shapes: q (B, Hq, Lq, D), k (B, Hkv, Lk, D), v (B, Hkv, Lk, Dv); everything called a plane is (B, Hq, Lq,
Lk).
"""

import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import flex_attention as flex_module

# flex_attention traces its score_mod even without a compiler; this runs it as written.
flex_module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
flex_attention = flex_module.flex_attention

NEG_INF = float("-inf")


def philox4x32_10(counter, key):
    """Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, SC'11) on arrays of counters: four words in, four words out."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    for _ in range(10):
        product0 = np.uint64(0xD2511F53) * c[0]
        product1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(product1 >> np.uint64(32)) ^ c[1] ^ k[0], product1 & mask,
             (product0 >> np.uint64(32)) ^ c[3] ^ k[1], product0 & mask]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return c


# The generator's published vectors: all-zero input, and the digits of pi.
assert [int(w) for w in philox4x32_10([0] * 4, [0] * 2)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert [int(w) for w in philox4x32_10([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])] == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


class Plane:
    """Positions in the plane. Each batch row or packed sequence is a `row`, where i and j start at 0."""

    def __init__(self, options, batch, queries, keys):
        starts_q, starts_k = options.get("query_starts"), options.get("key_starts")
        if starts_q:
            rows = len(starts_q) - 1
            self.row = np.array([[n for n in range(rows) for _ in range(starts_q[n], starts_q[n + 1])]])
            key_row = np.array([[n for n in range(rows) for _ in range(starts_k[n], starts_k[n + 1])]])
            i = np.array([[x - starts_q[n] for x, n in enumerate(self.row[0])]])
            j = np.array([[x - starts_k[n] for x, n in enumerate(key_row[0])]])
            query_count = np.diff(starts_q)
            key_count = np.diff(starts_k)
        else:
            self.row = np.repeat(np.arange(batch)[:, None], queries, axis=1)
            key_row = np.repeat(np.arange(batch)[:, None], keys, axis=1)
            i = np.repeat(np.arange(queries)[None], batch, axis=0)
            j = np.repeat(np.arange(keys)[None], batch, axis=0)
            query_count, key_count = np.full(batch, queries), np.full(batch, keys)
        if options.get("key_lengths"):
            key_count = np.array(options["key_lengths"])

        alignment = options.get("alignment", "top_left")
        if alignment == "bottom_right":
            offset = key_count - query_count
        elif alignment == "top_left":
            offset = np.zeros_like(key_count)
        else:  # one for all, or one per row
            offset = np.broadcast_to(np.array(alignment), key_count.shape)

        self.i, self.j = i, j  # (B, Lq), (B, Lk)
        # (B, 1, Lq, Lk): how far key j is before the position of query i; negative: after it.
        self.distance = torch.from_numpy((i + offset[self.row])[:, None, :, None] - j[:, None, None, :])
        beyond = (self.row[:, :, None] != key_row[:, None, :]) | (j[:, None, :] >= key_count[self.row][:, :, None])
        self.beyond = torch.from_numpy(beyond)[:, None]  # past the key length, or in another packed sequence

    def dropout_keep(self, dropout, heads):
        """The plane of weights that dropout keeps: a pure function of (seed, b, h, i, j)."""
        b = (self.row + dropout.get("batch_start", 0))[:, None, :, None]
        h = (np.arange(heads) + dropout.get("head_start", 0))[None, :, None, None]
        i = (self.i + dropout.get("query_start", 0))[:, None, :, None]
        j = self.j[:, None, None, :]
        b, h, i, j = np.broadcast_arrays(b, h, i, j)
        seed = dropout["seed"]
        words = np.stack(philox4x32_10([b, h, i, j // 4], [seed & 0xFFFFFFFF, seed >> 32]))
        word = np.take_along_axis(words, (j % 4)[None], axis=0)[0]
        return torch.from_numpy(word >= np.uint64(math.floor(dropout["rate"] * 2**32)))


def as_plane(mask):
    """Rank 2 is (Lq, Lk); rank 4 broadcasts."""
    return mask if mask.dim() == 4 else mask[None, None]


def hidden_keys(options, masks, plane):
    hidden = plane.beyond.clone()
    if options.get("causal"):
        hidden = hidden | (plane.distance < 0)
    left, right = options.get("window", [None, None])
    if left is not None:
        hidden = hidden | (plane.distance > left)
    if right is not None:
        hidden = hidden | (-plane.distance > right)
    for spec, mask in zip(options.get("masks", []), masks):
        if spec["kind"] == "keep":
            hidden = hidden | ~as_plane(mask)
        elif spec["kind"] == "drop":
            hidden = hidden | as_plane(mask)
    return hidden


def alibi(options, plane, dtype):
    slopes = torch.tensor(options["alibi_slopes"], dtype=dtype)
    return -slopes[None, :, None, None] * plane.distance.abs().to(dtype)


def scale_of(options, q):
    return options.get("scale", 1.0 / math.sqrt(q.shape[-1]))


def steps(q, k, v, masks, sinks, options):
    """All eight steps. Returns every stage by name, `out` and `lse`."""
    group = q.shape[1] // k.shape[1]
    plane = Plane(options, q.shape[0], q.shape[2], k.shape[2])
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)

    raw = torch.matmul(q, k.transpose(-2, -1)) * scale_of(options, q)
    softcap = options.get("softcap", 0.0)
    capped = softcap * torch.tanh(raw / softcap) if softcap else raw
    s = capped
    for spec, mask in zip(options.get("masks", []), masks):
        if spec["kind"] == "add":
            s = s + as_plane(mask)
    if options.get("alibi_slopes"):
        s = s + alibi(options, plane, q.dtype)
    for spec, mask in zip(options.get("masks", []), masks):
        if spec["kind"] == "fill":
            s = s.masked_fill(as_plane(mask), float(spec["value"]))
    masked = s.masked_fill(hidden_keys(options, masks, plane), NEG_INF)

    # A sink is one more score with no value. A row of nothing but -inf has no softmax: it is computed on zeros and
    # then set to 0, so that autograd gives 0 as well.
    s = masked
    if sinks is not None:
        s = torch.cat([s, sinks[None, :, None, None].expand(*s.shape[:3], 1)], dim=-1)
    empty = (s == NEG_INF).all(dim=-1, keepdim=True)
    s = s.masked_fill(empty, 0.0)
    weights = torch.softmax(s, dim=-1).masked_fill(empty, 0.0)[..., : k.shape[2]]
    lse = torch.logsumexp(s, dim=-1).masked_fill(empty[..., 0], NEG_INF)

    dropped = weights
    dropout = options.get("dropout")
    if dropout and dropout["rate"] > 0:
        dropped = weights * plane.dropout_keep(dropout, q.shape[1]).to(q.dtype) / (1.0 - dropout["rate"])
    out = torch.matmul(dropped, v)
    return {
        "raw": raw.masked_fill(plane.beyond, NEG_INF), "capped": capped.masked_fill(plane.beyond, NEG_INF),
        "masked": masked, "weights": weights, "dropped_weights": dropped, "out": out, "lse": lse,
    }


def finite_fill(options):
    return any(m["kind"] == "fill" and float(m["value"]) != NEG_INF for m in options.get("masks", []))


def sdpa_can(options, sinks):
    dropout = options.get("dropout", {"rate": 0.0})["rate"] > 0
    return not (options.get("softcap") or finite_fill(options) or sinks is not None or dropout)


def sdpa(q, k, v, masks, options):
    """F.scaled_dot_product_attention with the simplest equivalent arguments."""
    plane = Plane(options, q.shape[0], q.shape[2], k.shape[2])
    names = {"scale": options.get("scale"), "enable_gqa": q.shape[1] != k.shape[1]}
    only_causal = {"causal", "alignment", "scale"}
    if options.get("causal") and options.get("alignment", "top_left") == "top_left" and set(options) <= only_causal:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, **names)

    hidden = hidden_keys(options, masks, plane)
    bias = alibi(options, plane, q.dtype) if options.get("alibi_slopes") else None
    for spec, mask in zip(options.get("masks", []), masks):
        if spec["kind"] == "fill":
            hidden = hidden | as_plane(mask)  # filling with -inf hides
        elif spec["kind"] == "add":
            bias = as_plane(mask) if bias is None else bias + as_plane(mask)
    if bias is not None:
        mask = bias.masked_fill(hidden, NEG_INF) if hidden.any() else bias
    elif hidden.any():
        mask = ~hidden
    else:
        mask = None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **names)


def flex_can(options):
    """Whether flex_attention supports a case. It works in base 2, where the lowest finite f32 becomes -inf."""
    lowest = any(m["kind"] == "fill" and NEG_INF < float(m["value"]) < -1e38 for m in options.get("masks", []))
    return not (options.get("dropout", {"rate": 0.0})["rate"] > 0 or lowest)


def flex(q, k, v, masks, sinks, options):
    """flex_attention with steps 2 to 5 as its score_mod: (out, lse). No gradients on the CPU."""
    batch, heads, queries, keys = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
    plane = Plane(options, batch, queries, keys)
    full = (batch, heads, queries, keys)
    hidden = hidden_keys(options, masks, plane).expand(full)
    bias = torch.zeros(full, dtype=q.dtype)
    if options.get("alibi_slopes"):
        bias = bias + alibi(options, plane, q.dtype)
    fills = []
    for spec, mask in zip(options.get("masks", []), masks):
        if spec["kind"] == "add":
            bias = bias + as_plane(mask)
        elif spec["kind"] == "fill":
            fills.append((as_plane(mask).expand(full).contiguous(), float(spec["value"])))
    softcap = options.get("softcap", 0.0)

    def score_mod(score, b, h, i, j):
        if softcap:
            score = softcap * torch.tanh(score / softcap)
        score = score + bias[b, h, i, j]
        for where, value in fills:
            score = torch.where(where[b, h, i, j], value, score)
        return torch.where(hidden[b, h, i, j], NEG_INF, score)

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # it warns that eager mode is slow, but these tensors are tiny
        out, lse = flex_attention(q, k, v, score_mod=score_mod, scale=options.get("scale"),
                                  enable_gqa=heads != k.shape[1], return_lse=True)
    if sinks is not None:  # one more term in the sum rescales the output
        sink = sinks[None, :, None]
        out = out * torch.sigmoid(lse - sink)[..., None]
        lse = torch.logaddexp(lse, sink.expand_as(lse))
    return out, lse
