"""Attention with its keywords, their defaults and their meaning; the work is done by the extension module."""

from typing import NamedTuple

from . import _rapt
from ._options import Capture, WeightsGradient


class AttentionResult(NamedTuple):
    """The results of attention if more than `out` is requested. What was not requested is None, or empty."""

    out: object
    lse: object = None
    weights: object = None
    captures: tuple = ()


class AttentionGradients(NamedTuple):
    """The results of attention_backward. What was not requested is None.

    dmasks has one entry for each mask of the call; None for one that is not a Mask.add.
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

    query is (B, Hq, Lq, D), key is (B, Hkv, Lk, D), value is (B, Hkv, Lk, Dv), and out is (B, Hq, Lq, Dv), with the
    query's dtype and array type: NumPy gives NumPy, PyTorch gives PyTorch, JAX gives JAX. Hq is a multiple of Hkv:
    query head h reads key head h // (Hq // Hkv). Arrays are read in place, with any strides; nothing is copied. They
    hold float32, bfloat16, float16 or float64; key and value may differ from the query, and may be int8 with scales.

    For every b, h, query i and key j, in this order:

        1. s = scale * (q . k)
        2. s = softcap * tanh(s / softcap)     where softcap > 0
        3. s = s + every additive term         Mask.add, and ALiBi: -slope[h] * |i + offset - j|
        4. s = value                           where a Mask.fill is True
        5. s = -inf                            where j is masked: causal, window, Mask.keep, Mask.drop, key_lengths
        6. p = exp(s - m) / sum exp(s - m)     m is the row's maximum; a sink adds exp(sink[h] - m) to the sum
        7. p = p * keep / (1 - rate)           dropout
        8. out = p @ value

    A row that sees no key gives 0, never NaN. Only -inf masks a key: -1e9 is an ordinary number. A masked key has no
    influence on the row, even if its key or value is NaN or infinite.

    mask:          rapt.Mask.keep, drop, add or fill; a list of them; or a plain float array, which is added
    scale:         None: 1 / sqrt(D)
    softcap:       0: none
    causal:        the query at position i sees keys 0 to i
    window:        (left, right): the query at position i sees keys i - left to i + right; None means no limit. With
                   rapt.Window(left, right, first=n) the first n keys stay visible as well
    alignment:     position of query 0 among the keys, for causal, window and ALiBi: "top_left" (0), "bottom_right"
                   (Lk - Lq, for each row's own lengths), an offset, or one offset per batch row. Required if one of
                   them is used and Lq differs from Lk
    key_lengths:   one per batch row: later keys are masked and never read
    packed:        rapt.PackedSequences, or (query_starts, key_starts): several sequences in one batch row
    pages:         rapt.Pages: key and value are paged
    key_scales, value_scales:  scales of int8 keys and values: (B, Hkv, Lk), or (P, Hkv, page size), float32
    alibi_slopes:  one per query head
    sinks:         (Hq): attention sinks: exp(sink) is added to the softmax sum, without a value
    dropout:       rapt.Dropout(rate, seed)
    engine:        "automatic", "cpu", or "reference", the plain formula in float64
    threads:       maximum number of threads; 0: rapt.thread_count(). It does not change the bits of the result
    cache:         rapt.KvCache.view(ids), instead of key and value
    out:           an array to write to, of any strides; it is returned
    return_lse:    also return log sum exp(s), (B, Hq, Lq), in float32 (float64 for a float64 query)
    return_weights:  True: also return the weights, (B, Hq, Lq, Lk); "mean": their mean over heads, (B, Lq, Lk)
    captures:      a rapt.Capture or a list of them: weights and scores of chosen stages, heads and queries

    Returns an array, or, if one of the last three is used, an AttentionResult (out, lse, weights, captures).
    Raises ValueError for invalid values, before anything is written, and TypeError for wrong types.
    """
    options = (  # the fields of Options: a plain tuple is made in a fifth of the time
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

    Takes the options of the forward call, with the same meaning. Paged and int8 keys are supported only in forward.

    dout:       (B, Hq, Lq, Dv), the gradient of out; None: zero
    dlse:       (B, Hq, Lq), the gradient of lse; None: zero
    dweights:   the gradient of the weights returned by return_weights=True, or a list of rapt.WeightsGradient
    out, lse:   forward's results, which save work; if None, they are computed again
    gradients:  which gradients to compute: any of "dquery", "dkey", "dvalue", "dsinks" and "dmasks"

    Returns AttentionGradients (dquery, dkey, dvalue, dsinks, dmasks), each with the shape and dtype of its input, as
    arrays of the query's type.
    """
    options = (  # the fields of Options: a plain tuple is made in a fifth of the time
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
