"""What transformers' masks say, without the matrix.

A model asks for its mask once in a forward pass and hands it to every layer. Most of them are a triangle, a window and
some padding: rapt takes these as they are (causal, window, key_lengths, a mask of keys), which costs neither memory nor
time. What cannot be read that way is made as transformers makes it for PyTorch's own attention.
"""

import functools
import inspect
from typing import NamedTuple

import torch
from torch.utils import _pytree
from transformers import masking_utils

from ..._options import Mask, Window


class Pattern(NamedTuple):
    """Which keys a query may see by position alone. Query and key of the same token have the same position."""

    causal: bool = False
    left: int | None = None  # how far back; None: any
    right: int | None = None

    def and_also(self, other):
        """The intersection of both."""
        return Pattern(self.causal or other.causal, _nearer(self.left, other.left), _nearer(self.right, other.right))

    @property
    def window(self):
        """As rapt.attention takes it."""
        return None if self.left is None and self.right is None else Window(self.left, self.right)


def _nearer(one, other):
    return min((x for x in (one, other) if x is not None), default=None)


def read_pattern(function):
    """The Pattern that a mask function of transformers stands for; None where it is something else.

    Mask functions are closures: their name says what they do, their variables hold how far.
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
    held = inspect.getclosurevars(function).nonlocals
    if maker == "and_masks":
        parts = [read_pattern(part) for part in held.get("mask_functions", (None,))]
        return None if None in parts else functools.reduce(Pattern.and_also, parts, Pattern())
    size = held.get("sliding_window")
    if not isinstance(size, int):
        return None
    return Pattern(left=size - 1) if maker == "sliding_window_overlay" else Pattern(left=size, right=size)


class StructuredMask(torch.Tensor):
    """A mask (B, 1, Lq, Lk), True where a key is seen, that is built only when it is read.

    rapt reads `options` and `masks` instead. To anything else it is a tensor: whatever is computed with it is computed
    with the matrix, which is made then; and since that might change it, the matrix is what counts from there on.
    """

    @staticmethod
    def __new__(cls, shape, device, options, masks, make):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device=device)

    def __init__(self, shape, device, options, masks, make):
        self.options = options  # keywords of rapt.attention
        self.masks = masks
        self._make = make
        self._matrix = None

    @property
    def is_untouched(self):
        """Whether `options` and `masks` still say all."""
        return self._matrix is None

    def matrix(self):
        """The mask as a plain tensor."""
        if self._matrix is None:
            self._matrix = self._make().contiguous()
        return self._matrix

    def __repr__(self, **kwargs):
        return f"StructuredMask({tuple(self.shape)}, {self.options})"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def plain(x):
            return x.matrix() if isinstance(x, StructuredMask) else x

        return function(*_pytree.tree_map(plain, args), **_pytree.tree_map(plain, kwargs or {}))


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
    """The mask that transformers hands to rapt: None, a StructuredMask, or the matrix where that says it all.

    Its arguments are those of transformers.masking_utils.sdpa_mask, and so is its meaning.
    """

    def make():
        return masking_utils.sdpa_mask(
            batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, device=device,
            **kwargs | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False},
        )  # fmt: skip

    if torch.compiler.is_compiling():  # which can neither look into a closure nor carry a StructuredMask
        return make()
    pattern = read_pattern(mask_function)
    odd = attention_mask is not None and attention_mask.ndim != 2
    if pattern is None or odd:
        return make()
    # For a static cache it is a tensor that changes with the cache: a matrix built later reflects the current length.
    q_offset = int(q_offset)
    options, masks = _padding(attention_mask, kv_length, kv_offset)
    if pattern != Pattern():
        # Query i has position i + q_offset, key j has position j + kv_offset.
        options |= {"causal": pattern.causal, "window": pattern.window, "alignment": q_offset - int(kv_offset)}
    elif allow_is_bidirectional_skip and not options and not masks:
        return None
    return StructuredMask((batch_size, 1, q_length, kv_length), device, options, masks, make)


def _padding(tokens, kv_length, kv_offset):
    """(options, masks) that hide the keys which are no tokens. tokens: (B, at most all positions), True is a token."""
    if tokens is None:
        return {}, ()
    seen = tokens[:, kv_offset : kv_offset + kv_length]
    if seen.shape[1] == kv_length and bool(seen.all()):
        return {}, ()
    # Up to the last token of each row; keys past that are never read.
    positions = torch.arange(1, seen.shape[1] + 1, device=seen.device)
    lengths = (seen * positions).amax(1) if seen.shape[1] else seen.sum(1)
    options = {"key_lengths": lengths.tolist()}
    if torch.equal(seen.sum(1), lengths):
        return options, ()
    missing = kv_length - seen.shape[1]
    keys = torch.nn.functional.pad(seen, (0, missing)) if missing else seen
    return options, (Mask.keep(keys[:, None, None, :]),)
