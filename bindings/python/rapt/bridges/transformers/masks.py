"""Transformers' masks as options of rapt, without the matrix.

A model requests its mask once per forward pass and passes it to every layer. Most masks are a triangle, a window and
some padding: rapt has options for these (causal, window, key_lengths, a mask of keys), which cost neither memory nor
time. Other masks are built as transformers builds them for PyTorch's own attention.
"""

import functools
from typing import NamedTuple

import torch
from torch.utils import _pytree
from transformers import masking_utils

from ..torch.positions import seen_by_position


class Pattern(NamedTuple):
    """Which keys a query may see, by position only. The query and the key of a token have the same position."""

    causal: bool = False
    left: int | None = None  # maximum distance to the left; None: unlimited
    right: int | None = None

    def and_also(self, other):
        """The intersection of the two patterns."""
        return Pattern(self.causal or other.causal, _nearer(self.left, other.left), _nearer(self.right, other.right))

def _nearer(one, other):
    return min((x for x in (one, other) if x is not None), default=None)


def read_pattern(function):
    """The Pattern that is equivalent to a mask function of transformers; None if there is none.

    Mask functions are closures: their name gives the kind, their variables the sizes.
    """
    if function is masking_utils.causal_mask_function:
        return Pattern(causal=True)
    if function is masking_utils.bidirectional_mask_function:
        return Pattern()
    if getattr(function, "__module__", None) != masking_utils.__name__:
        return None
    maker = function.__qualname__.partition(".<locals>.")[0]
    if maker not in ("and_masks", "sliding_window_overlay", "sliding_window_bidirectional_overlay"):
        return None
    # What inspect.getclosurevars returns, in code that a compiler can trace.
    held = dict(zip(function.__code__.co_freevars, [cell.cell_contents for cell in function.__closure__]))
    if maker == "and_masks":
        parts = [read_pattern(part) for part in held.get("mask_functions", (None,))]
        return None if None in parts else functools.reduce(Pattern.and_also, parts, Pattern())
    size = held.get("sliding_window")
    if not isinstance(size, int):
        return None
    return Pattern(left=size - 1) if maker == "sliding_window_overlay" else Pattern(left=size, right=size)


class StructuredMask(torch.Tensor):
    """A mask (B, 1, Lq, Lk), True where a key is seen, that is built only when it is read.

    rapt reads its parts instead: the pattern, the position of query 0 among the keys, and which keys are tokens. For
    everything else it is a tensor: a computation with it builds the matrix and uses that. Since the computation might
    change the matrix, only the matrix counts from then on. A compiler sees the tensors that the mask holds, and the
    pattern as a constant.
    """

    @staticmethod
    def __new__(cls, shape, pattern, alignment, key_lengths=None, key_mask=None, matrix=None):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device=alignment.device)

    def __init__(self, shape, pattern, alignment, key_lengths=None, key_mask=None, matrix=None):
        self.pattern = pattern
        self.alignment = alignment
        self.key_lengths = key_lengths
        self.key_mask = key_mask
        self.matrix = matrix  # None until the mask is read

    @property
    def is_read(self):
        """Whether the matrix has been built and replaces the parts."""
        return self.matrix is not None

    def __tensor_flatten__(self):
        names = ["alignment", "key_lengths", "key_mask"]
        if type(self.alignment) is torch.Tensor:  # otherwise a compiler is tracing, and traces the matrix by itself
            names.append("matrix")
        return [name for name in names if getattr(self, name) is not None], self.pattern

    @staticmethod
    def __tensor_unflatten__(tensors, pattern, shape, strides):
        return StructuredMask(shape, pattern, **tensors)

    def as_matrix(self):
        """The mask as a plain tensor."""
        if self.matrix is None:
            seen = seen_by_position(*self.shape[2:], *self.pattern, self.alignment, self.key_lengths)
            parts = [x for x in (seen, self.key_mask) if x is not None]
            whole = functools.reduce(torch.logical_and, parts, torch.ones((), dtype=torch.bool, device=self.device))
            self.matrix = whole.expand(self.shape).contiguous()
        return self.matrix

    def __repr__(self, **kwargs):
        return f"StructuredMask({tuple(self.shape)}, {self.pattern})"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def plain(x):
            return x.as_matrix() if isinstance(x, StructuredMask) else x

        return function(*_pytree.tree_map(plain, args), **_pytree.tree_map(plain, kwargs or {}))


# A compiler treats each as one operation; the tensor that goes in or comes out is taken apart later.
structured_mask = torch.compiler.allow_in_graph(lambda *parts: StructuredMask(*parts))
matrix_of = torch.compiler.allow_in_graph(lambda mask: mask.as_matrix())


def attention_mask(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    mask_function=masking_utils.causal_mask_function,
    attention_mask=None,
    allow_is_bidirectional_skip=False,
    device="cpu",
    **kwargs,
):
    """The mask that transformers passes to rapt: None, a StructuredMask, or the matrix if there is no shorter form.

    Arguments and semantics are those of transformers.masking_utils.sdpa_mask.
    """

    pattern = read_pattern(mask_function)
    odd = attention_mask is not None and attention_mask.ndim != 2
    if pattern is None or odd:
        return masking_utils.sdpa_mask(
            batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, device=device,
            **kwargs | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False},
        )  # fmt: skip
    # transformers forbids skipping a mask that is for a compiled model; the mask must then have the same parts every
    # time.
    fixed = torch.compiler.is_compiling() or not kwargs.get("allow_is_causal_skip", True)
    key_lengths, key_mask = _padding(attention_mask, kv_length, kv_offset, fixed)
    if allow_is_bidirectional_skip and pattern == Pattern() and key_lengths is None:
        return None
    # Query i has position i + q_offset, key j has position j + kv_offset. A static cache keeps its count in a tensor,
    # which it advances before a layer may read the mask. So the difference is computed here, at once.
    alignment = q_offset - kv_offset
    if not isinstance(alignment, torch.Tensor):
        alignment = torch.full((), alignment, device=device)
    return structured_mask((batch_size, 1, q_length, kv_length), pattern, alignment, key_lengths, key_mask)


def _padding(tokens, kv_length, kv_offset, fixed):
    """(key_lengths, mask of the keys), which hide the keys that are not tokens.

    tokens: (B, up to all positions), True for a token. A part that hides nothing is None, unless `fixed`.
    """
    if tokens is None:
        return None, None
    seen = tokens[:, kv_offset : kv_offset + kv_length]
    if not fixed and seen.shape[1] == kv_length and bool(seen.all()):
        return None, None
    # Up to the last token of each row; keys past that are never read.
    positions = torch.arange(1, seen.shape[1] + 1, device=seen.device)
    lengths = (seen * positions).amax(1) if seen.shape[1] else seen.sum(1)
    if not fixed and torch.equal(seen.sum(1), lengths):
        return lengths, None
    return lengths, torch.nn.functional.pad(seen, (0, kv_length - seen.shape[1]))[:, None, None, :]
