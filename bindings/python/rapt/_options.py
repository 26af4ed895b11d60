"""Options of attention that are more than a number: plain named tuples."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """The options of a call, as the extension module takes them: the keywords of rapt.attention, in their order."""

    mask: object = None
    scale: float | None = None
    softcap: float = 0.0
    causal: bool = False
    window: object = None
    alignment: object = None
    key_lengths: object = None
    packed: object = None
    pages: object = None
    key_scales: object = None
    value_scales: object = None
    alibi_slopes: object = None
    sinks: object = None
    dropout: object = None
    engine: str = "automatic"
    threads: int = 0


class Mask(NamedTuple):
    """A mask, with a defined meaning of True. Create one with Mask.keep, Mask.drop, Mask.add or Mask.fill.

    Its array has shape (Lq, Lk), or four dimensions that broadcast to (B, Hq, Lq, Lk). Give several masks as a list:
    all of them apply.
    """

    kind: str
    array: object
    value: float = 0.0

    @staticmethod
    def keep(where):
        """True: the query sees this key, as in torch.nn.functional.scaled_dot_product_attention."""
        return Mask("keep", where)

    @staticmethod
    def drop(where):
        """True: this key is masked, as in torch.nn.MultiheadAttention."""
        return Mask("drop", where)

    @staticmethod
    def add(bias):
        """Numbers added to the scores. Only -inf masks a key; -1e9 is an ordinary number."""
        return Mask("add", bias)

    @staticmethod
    def fill(where, value):
        """True: the score becomes `value`, as in scores.masked_fill(where, value)."""
        return Mask("fill", where, value)


class Window(NamedTuple):
    """A query at position i sees keys i - left to i + right. None means no limit.

    The window hides none of the first keys of a sequence, 0 to first - 1 (the "attention sinks" of streaming models). A
    causal mask, other masks and key lengths can still hide them.
    """

    left: int | None = None
    right: int | None = None
    first: int = 0


class PackedSequences(NamedTuple):
    """Several sequences, concatenated in one batch row (B = 1).

    Sequence n has queries query_starts[n] to query_starts[n + 1] - 1, and keys likewise: N + 1 ascending numbers
    each, from 0 to Lq and from 0 to Lk. It behaves exactly as batch row n of a padded call would.
    """

    query_starts: object
    key_starts: object


class Pages(NamedTuple):
    """Paged keys and values: key is (P, Hkv, page size, D), value is (P, Hkv, page size, Dv).

    Key j of batch row b is in page table[b][j // page size]; the page size is a power of two from 16. Requires
    key_lengths. `keys` is Lk, the number of keys in masks and weights; 0: the capacity of the table.
    """

    table: object
    keys: int = 0


class Dropout(NamedTuple):
    """Weights are dropped with this rate, and the others divided by 1 - rate.

    Which weights are dropped is a pure function of (seed, b + batch_start, h + head_start, i + query_start, j): with
    starts, a micro-batch, a slice of heads or a chunk of queries drops the same weights as the whole call.
    """

    rate: float
    seed: int
    batch_start: int = 0
    head_start: int = 0
    query_start: int = 0


class Capture(NamedTuple):
    """A request for intermediate scores or weights, or a part of them.

    stage: "raw" (scaled scores), "capped" (after softcap), "masked" (after all masks), "weights" (after softmax) or
    "dropped_weights" (after dropout). The result is (B, heads, queries, Lk), or (B, queries, Lk) for the mean over
    heads. It has the query's dtype, or dtype="float32" ("float64" for a float64 query), or is written to `out`.
    """

    stage: str = "dropped_weights"
    heads: object = None
    queries: object = None
    mean_over_heads: bool = False
    dtype: object = None
    out: object = None


class WeightsGradient(NamedTuple):
    """An upstream gradient of weights that attention returned: `array` has their shape."""

    array: object
    stage: str = "dropped_weights"
    heads: object = None
    queries: object = None
    mean_over_heads: bool = False
