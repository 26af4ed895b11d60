"""Attention with its keywords, their defaults and their meaning; the work is done by the extension module."""

from typing import NamedTuple

from . import _rapt
from ._options import Capture, WeightsGradient


class AttentionResult(NamedTuple):
    """What attention gives where more than `out` is asked for. What was not asked for is None, or empty."""

    out: object
    lse: object = None
    weights: object = None
    captures: tuple = ()


class AttentionGradients(NamedTuple):
    """What attention_backward gives. What was not asked for is None.

    dmasks has one entry for each mask of the call; None for one that is no Mask.add.
    """

    dquery: object
    dkey: object
    dvalue: object
    dsinks: object = None
    dmasks: tuple = ()


def attention(
    query,
    key=None,
    value=None,
    *,
    mask=None,
    scale=None,
    softcap=0.0,
    causal=False,
    window=None,
    alignment=None,
    key_lengths=None,
    packed=None,
    pages=None,
    key_scales=None,
    value_scales=None,
    alibi_slopes=None,
    sinks=None,
    dropout=None,
    engine="automatic",
    threads=0,
    cache=None,
    out=None,
    return_lse=False,
    return_weights=False,
    captures=None,
):
    """Scaled dot-product attention.

        out = rapt.attention(query, key, value, causal=True)

    query is (B, Hq, Lq, D), key is (B, Hkv, Lk, D), value is (B, Hkv, Lk, Dv), and out is (B, Hq, Lq, Dv), of the
    query's dtype and kind: NumPy gives NumPy, PyTorch gives PyTorch, JAX gives JAX. Hq is a multiple of Hkv: query head
    h reads key head h // (Hq // Hkv). Arrays are read where they lie, with any strides; nothing is copied. They hold
    float32, bfloat16, float16 or float64; key and value may differ from the query, and may be int8 with scales.

    For every b, h, query i and key j, in this order:

        1. s = scale * (q . k)
        2. s = softcap * tanh(s / softcap)     where softcap > 0
        3. s = s + every additive term         Mask.add, and ALiBi: -slope[h] * |i + offset - j|
        4. s = value                           where a Mask.fill is True
        5. s = -inf                            where j is hidden: causal, window, Mask.keep, Mask.drop, key_lengths
        6. p = exp(s - m) / sum exp(s - m)     m is the row's maximum; a sink adds exp(sink[h] - m) to the sum
        7. p = p * keep / (1 - rate)           dropout
        8. out = p @ value

    A row that sees no key gives 0, never NaN. Only -inf hides: -1e9 is an ordinary number. A hidden key has no
    influence on the row, even if its key or value is NaN or infinite.

    mask:          rapt.Mask.keep, drop, add or fill; a list of them; or a bare float array, which is added
    scale:         None: 1 / sqrt(D)
    softcap:       0: none
    causal:        the query at position i sees keys 0 to i
    window:        (left, right): it sees keys i - left to i + right; None leaves a side open
    alignment:     where query 0 stands among the keys, for causal, window and ALiBi: "top_left" (0), "bottom_right"
                   (Lk - Lq, of each row's own lengths), an offset, or one offset for each batch row. Must be named when
                   one of them is used and Lq is not Lk
    key_lengths:   one per batch row: later keys are hidden and never read
    packed:        rapt.PackedSequences, or (query_starts, key_starts): several sequences in one batch row
    pages:         rapt.Pages: key and value lie in pages
    key_scales, value_scales:  of int8 keys and values: (B, Hkv, Lk), or (P, Hkv, page size), in float32
    alibi_slopes:  one per query head
    sinks:         (Hq): numbers that join the softmax's sum without a value
    dropout:       rapt.Dropout(rate, seed)
    engine:        "automatic", "cpu", or "reference", which is the formula in double
    threads:       at most so many; 0: rapt.thread_count(). The result has the same bits for any number
    cache:         rapt.KvCache.view(ids), instead of key and value
    out:           an array to write to, of any strides; it is returned
    return_lse:    also log sum exp(s), natural, (B, Hq, Lq), float32 (float64 for a query of that)
    return_weights:  True: also the weights, (B, Hq, Lq, Lk); "mean": their mean over heads, (B, Lq, Lk)
    captures:      a rapt.Capture or a list of them: weights and scores of chosen stages, heads and queries

    Returns an array, or where one of the last three is used an AttentionResult (out, lse, weights, captures).
    Raises ValueError for what does not fit together, before anything is written; TypeError for what is of a wrong type.
    """
    options = (
        mask, scale, softcap, causal, window, alignment, key_lengths, packed, pages, key_scales, value_scales,
        alibi_slopes, sinks, dropout, engine, threads,
    )  # fmt: skip
    if not (return_lse or return_weights or captures):
        return _rapt.attention(query, key, value, cache, options, out, False, None)

    if return_weights not in (False, True, "mean"):
        raise ValueError(f"attention: return_weights is {return_weights!r}; it may be False, True or 'mean'")
    wanted = [captures] if isinstance(captures, Capture) else list(captures or ())
    if return_weights:
        wanted.insert(0, Capture(mean_over_heads=return_weights == "mean"))
    out, lse, captured = _rapt.attention(query, key, value, cache, options, out, bool(return_lse), wanted)
    weights = captured.pop(0) if return_weights else None
    return AttentionResult(out, lse, weights, tuple(captured))


def attention_backward(
    query,
    key,
    value,
    dout=None,
    *,
    dlse=None,
    dweights=None,
    out=None,
    lse=None,
    gradients=("dquery", "dkey", "dvalue"),
    mask=None,
    scale=None,
    softcap=0.0,
    causal=False,
    window=None,
    alignment=None,
    key_lengths=None,
    packed=None,
    pages=None,
    key_scales=None,
    value_scales=None,
    alibi_slopes=None,
    sinks=None,
    dropout=None,
    engine="automatic",
    threads=0,
):
    """The gradients of attention: of query, key and value, and on request of sinks and of additive masks.

        out = rapt.attention(query, key, value, causal=True)
        dquery, dkey, dvalue, *_ = rapt.attention_backward(query, key, value, dout, causal=True)

    Takes the options of the forward call, with the same meaning; keys in pages and int8 are for forward only.

    dout:       (B, Hq, Lq, Dv), the gradient that arrives at out; None: zero
    dlse:       (B, Hq, Lq), the one that arrives at lse; None: zero
    dweights:   the one that arrives at the weights that return_weights=True gave, or a list of rapt.WeightsGradient
    out, lse:   forward's results, which spare work; where they are None they are computed again
    gradients:  which are wanted: of "dquery", "dkey", "dvalue", "dsinks" and "dmasks"

    Returns AttentionGradients (dquery, dkey, dvalue, dsinks, dmasks), each shaped and typed as what it belongs to, and
    of the query's kind.
    """
    options = (
        mask, scale, softcap, causal, window, alignment, key_lengths, packed, pages, key_scales, value_scales,
        alibi_slopes, sinks, dropout, engine, threads,
    )  # fmt: skip
    if dweights is None:
        dweights = ()
    elif isinstance(dweights, WeightsGradient):
        dweights = (dweights,)
    elif not isinstance(dweights, (list, tuple)):
        dweights = (WeightsGradient(dweights),)
    if isinstance(gradients, str):
        gradients = (gradients,)
    upstream = (dout, dlse, dweights, out, lse)
    return AttentionGradients(*_rapt.attention_backward(query, key, value, options, upstream, gradients))
