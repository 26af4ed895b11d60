"""How many attention calls rapt computed, and why others went to PyTorch."""

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Calls:
    """What `calls` returns.

    rapt:     attention calls that rapt computed, in all threads
    pytorch:  calls inside `enable` that PyTorch computed, by reason:
              "backend"    sdpa_kernel or a switch of torch.backends.cuda excludes the flash or the math kernel
              "transform"  vmap, grad, jvp, a tracer or a dispatch mode is active
              "mode"       a torch function mode is active
              "subclass"   a tensor is of a subclass, other than Parameter and CausalBias
              "nested", "device", "layout", "dtype"  a tensor is of a kind that rapt does not read
              "arguments"  rapt refused the call; PyTorch computes it, or says what is wrong with it
              Not counted: what PyTorch's layers compute by their own fast path, and compiled calls.
    """

    rapt: int = 0
    pytorch: dict[str, int] = field(default_factory=dict)


_lock = threading.Lock()
_rapt = 0
_pytorch: dict[str, int] = {}


def calls(*, reset: bool = False) -> Calls:
    """The counts since the start of the program, or since the last call with reset=True."""
    global _rapt, _pytorch
    with _lock:
        found = Calls(_rapt, dict(_pytorch))
        if reset:
            _rapt, _pytorch = 0, {}
    return found


def count_rapt() -> None:
    """Counts a call that rapt computed."""
    global _rapt
    with _lock:
        _rapt += 1


def count_pytorch(reason: str) -> None:
    """Counts a call that PyTorch computed, and the reason."""
    with _lock:
        _pytorch[reason] = _pytorch.get(reason, 0) + 1
