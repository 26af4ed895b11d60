"""Routes PyTorch's own attention functions to rapt, temporarily."""

import threading
from types import TracebackType

from .routes import Count, enabled, everywhere, here, leave_places, take_places

__all__ = ["Enabled", "enable", "enabled"]

_lock = threading.Lock()  # for the counts
_open = 0  # open blocks in all threads


class Enabled:
    """The result of `enable`: `undo` ends it, and so does the end of a `with` block."""

    def __init__(self, count: Count) -> None:
        self._count: Count | None = count

    def undo(self) -> None:
        """Restores PyTorch's own functions. A second call does nothing."""
        global _open
        with _lock:
            count, self._count = self._count, None
            if count is None:
                return
            count.open -= 1
            _open -= 1
            if _open == 0:
                leave_places()

    def __enter__(self) -> "Enabled":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def enable(*, all_threads: bool = False) -> Enabled:
    """Redirects PyTorch's attention on the CPU to rapt, in this thread or in all.

        with rapt.torch.enable():
            model(x)

        routing = rapt.torch.enable(all_threads=True)
        ...
        routing.undo()

    This covers torch.nn.functional.scaled_dot_product_attention and multi_head_attention_forward, and their callers:
    torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, and models that use them under these names. When the
    last block of all threads ends, PyTorch's own functions are restored. Blocks may be nested, and may end in any
    order.

    rapt computes calls with plain tensors, parameters and CausalBias. All other calls go to PyTorch: other devices and
    dtypes, nested tensors and other subclasses, kernels that the user selected with sdpa_kernel, invalid arguments, and
    calls under a tracer or a transform such as vmap. `calls` counts the calls that went to each.
    """
    global _open
    count = everywhere if all_threads else here.count
    with _lock:
        if _open == 0:
            take_places()
        _open += 1
        count.open += 1
    return Enabled(count)
