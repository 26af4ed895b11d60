"""Options of attention that are more than a number: plain named tuples."""

from typing import NamedTuple


class Mask(NamedTuple):
    """A mask says what True means. Make one with Mask.keep, Mask.drop, Mask.add or Mask.fill.

    Its array has shape (Lq, Lk), or four dimensions that broadcast to (B, Hq, Lq, Lk). Several masks go into a list;
    all of them apply.
    """

    kind: str
    array: object
    value: float = 0.0

    @staticmethod
    def keep(where):
        """True: this key is seen, as in torch.nn.functional.scaled_dot_product_attention."""
        return Mask("keep", where)

    @staticmethod
    def drop(where):
        """True: this key is hidden, as in torch.nn.MultiheadAttention."""
        return Mask("drop", where)

    @staticmethod
    def add(bias):
        """Numbers that are added to the scores. Only -inf hides; -1e9 is an ordinary number."""
        return Mask("add", bias)

    @staticmethod
    def fill(where, value):
        """True: the score becomes `value`, as in scores.masked_fill(where, value)."""
        return Mask("fill", where, value)


class Window(NamedTuple):
    """A query at position i sees keys i - left to i + right. None leaves a side open."""

    left: object = None
    right: object = None


class PackedSequences(NamedTuple):
    """Several sequences laid end to end in one batch row (B = 1).

    Sequence n holds queries query_starts[n] to query_starts[n + 1] - 1, and keys likewise: N + 1 ascending numbers
    each, from 0 to Lq and from 0 to Lk. It behaves exactly as batch row n of a padded call would.
    """

    query_starts: object
    key_starts: object


class Pages(NamedTuple):
    """Keys and values in pages: key is (P, Hkv, page size, D), value is (P, Hkv, page size, Dv).

    Key j of batch row b lies in page table[b][j // page size]; the page size is a power of two from 16. Needs
    key_lengths. `keys` is Lk, which masks and weights have; 0 is all that the table has room for.
    """

    table: object
    keys: int = 0


class Dropout(NamedTuple):
    """Weights are dropped with this rate, and the others divided by 1 - rate.

    Which ones is a pure function of (seed, b + batch_start, h + head_start, i + query_start, j): the starts let a
    micro-batch, a slice of heads or a chunk of queries drop what the whole would.
    """

    rate: float
    seed: int
    batch_start: int = 0
    head_start: int = 0
    query_start: int = 0


class Capture(NamedTuple):
    """A wish to see scores or weights on the way, or a part of them.

    stage: "raw" (scaled scores), "capped" (after softcap), "masked" (after all masks), "weights" (after softmax) or
    "dropped_weights" (after dropout). The result is (B, heads, queries, Lk), or (B, queries, Lk) for the mean over
    heads. It has the query's dtype, or dtype="float32" ("float64" for a query of that), or is written to `out`.
    """

    stage: str = "dropped_weights"
    heads: object = None
    queries: object = None
    mean_over_heads: bool = False
    dtype: object = None
    out: object = None


class WeightsGradient(NamedTuple):
    """A gradient that arrives at weights which attention returned: `array` is shaped as those were."""

    array: object
    stage: str = "dropped_weights"
    heads: object = None
    queries: object = None
    mean_over_heads: bool = False
