"""Conversion between tokens of width E and heads."""


def split_heads(x, heads):
    """(B, L, E) -> (B, H, L, E // H), the shape that attention takes. A view: nothing is copied."""
    batch, length, width = x.shape
    if width % heads:
        raise ValueError(f"split_heads: embedding size {width} cannot be divided into {heads} heads")
    return x.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def combine_heads(x):
    """(B, H, L, D) -> (B, L, H * D). A view if the heads of a token are contiguous, as after split_heads."""
    batch, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * size)
