"""PyTorch's own attention functions, sent to rapt for a while."""

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._multihead import multi_head_attention_forward
from ._operator import watched
from ._sdpa import sdpa


class _Count:
    """How many blocks are open."""

    def __init__(self) -> None:
        self.open = 0


class _Thread(threading.local):
    """Its own count for each thread: an object that `undo` can count down from another one."""

    def __init__(self) -> None:
        self.count = _Count()


_everywhere = _Count()
_here = _Thread()
_lock = threading.Lock()  # for the counts
_installed = False


class Enabled:
    """What `enable` gives: `undo` ends it, and so does the end of a `with` block."""

    def __init__(self, count: _Count) -> None:
        self._count: _Count | None = count

    def undo(self) -> None:
        """PyTorch computes by itself again. A second call does nothing."""
        with _lock:
            count, self._count = self._count, None
            if count is not None:
                count.open -= 1

    def __enter__(self) -> "Enabled":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def enable(*, all_threads: bool = False) -> Enabled:
    """Sends PyTorch's attention on the CPU to rapt, in this thread or in all.

        with rapt.torch.enable():
            model(x)

        routing = rapt.torch.enable(all_threads=True)
        ...
        routing.undo()

    That is torch.nn.functional.scaled_dot_product_attention and multi_head_attention_forward, and what calls them:
    torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, and models that use them by these names. What rapt
    cannot do goes to PyTorch as ever: other devices and dtypes, nested and other special tensors, wrong arguments, and
    what a tracer or a transform such as vmap follows. Blocks may be nested, and may end in any order.
    """
    global _installed
    count = _everywhere if all_threads else _here.count
    with _lock:
        if not _installed:
            _install()
            _installed = True
        count.open += 1
    return Enabled(count)


def enabled() -> bool:
    """Whether PyTorch's attention goes to rapt, in this thread."""
    return _here.count.open > 0 or _everywhere.open > 0


# ---------------------------------------------------------------- the functions


def _install() -> None:
    """Puts functions that ask `enabled` in the place of PyTorch's. They stay: one of them may be in use at any time."""
    F.scaled_dot_product_attention = _routed(F.scaled_dot_product_attention, sdpa)
    F.multi_head_attention_forward = _routed(F.multi_head_attention_forward, multi_head_attention_forward)
    # In evaluation, layers go past these functions unless the fast path is off.
    theirs = torch.backends.mha.get_fastpath_enabled

    @functools.wraps(theirs)
    def get_fastpath_enabled() -> bool:
        return not enabled() and theirs()

    torch.backends.mha.get_fastpath_enabled = get_fastpath_enabled


def _routed(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls ours where it is asked to and can, and else theirs."""

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        if enabled() and _readable(args, kwargs):
            try:
                return ours(*args, **kwargs)
            except (ValueError, TypeError, RuntimeError):
                pass  # nothing was computed: PyTorch does it, or says in its own words why not
        return theirs(*args, **kwargs)

    return function


def _readable(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether all tensors are such as rapt reads, and nobody follows what becomes of them, but a compiler."""
    if torch.compiler.is_compiling():
        return all(x.device.type == "cpu" for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
    return not watched() and all(
        type(x) in (Tensor, torch.nn.Parameter) and x.device.type == "cpu" and x.layout == torch.strided
        for x in (*args, *kwargs.values())
        if isinstance(x, Tensor)
    )
