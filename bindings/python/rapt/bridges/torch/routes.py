"""The functions that replace PyTorch's while a block of `enable` is active in any thread."""

import functools
import importlib.machinery
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.jit import _builtins

from .calls import count_pytorch
from .multihead import multi_head_attention_forward
from .reach import is_overridden, why_not
from .sdpa import DTYPES, sdpa


_BIAS = "torch.nn.attention.bias"


class Count:
    """The number of open blocks."""

    def __init__(self) -> None:
        self.open = 0


class _Thread(threading.local):
    """A counter per thread, as an object that `undo` can decrement from another thread."""

    def __init__(self) -> None:
        self.count = Count()
        self.aside = 0  # calls in progress that PyTorch computes; calls inside them go to PyTorch too


everywhere = Count()
here = _Thread()


def enabled() -> bool:
    """Whether PyTorch's attention goes to rapt, in this thread."""
    return here.count.open > 0 or everywhere.open > 0


# ---------------------------------------------------------------- the functions


def _routed(theirs: Callable[..., Any], ours: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Returns a function that calls rapt if enabled and possible, and PyTorch otherwise."""

    takes_causal_bias = name == "scaled_dot_product_attention"

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not enabled() or here.aside:
            return _by_pytorch(theirs, args, kwargs)
        reason = why_not(args, kwargs, takes_causal_bias)
        if reason is None:
            try:
                return ours(*args, **kwargs)
            except (ValueError, TypeError, RuntimeError, AttributeError):
                reason = _why_refused(args, kwargs)  # nothing was computed; PyTorch computes the call, or fails
        if torch.compiler.is_compiling():
            return theirs(*args, **kwargs)
        count_pytorch(reason)
        here.aside += 1
        try:
            return _by_pytorch(theirs, args, kwargs)
        finally:
            here.aside -= 1

    # A pickle stores this name, under which PyTorch's own function is found after the block.
    function.__module__, function.__qualname__ = F.__name__, name
    _compile_as(function, theirs)
    return function


def _by_pytorch(theirs: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Subclasses and modes compare the function by identity, so PyTorch's own functions are restored during the
    call."""
    if torch.compiler.is_compiling() or not is_overridden(args, kwargs):
        return theirs(*args, **kwargs)
    _places.lift()
    try:
        return theirs(*args, **kwargs)
    finally:
        _places.lower()


def _why_refused(args: tuple, kwargs: dict[str, Any]) -> str:
    tensors = (x for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
    known = (*DTYPES, torch.bool)
    return "arguments" if all(x.dtype in known for x in tensors) else "dtype"


def _compile_as(function: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    """Makes torch.jit.script compile PyTorch's function in place of ours."""
    operator = _builtins._find_builtin(theirs)
    if operator is not None:
        _builtins._register_builtin(function, operator)
    else:
        function.__prepare_scriptable__ = lambda: theirs  # type: ignore[attr-defined]


def _fastpath(theirs: Callable[[], bool]) -> Callable[[], bool]:
    """In evaluation, PyTorch's layers bypass the functions unless get_fastpath_enabled reports that it is off.

    Ours reports that for tensors that rapt can read. For others it reports the user's setting, because nested tensors
    require the fast path.
    """

    @functools.wraps(theirs)
    def get_fastpath_enabled() -> bool:
        if not enabled() or here.aside:
            return theirs()
        if torch.compiler.is_compiling():
            return False
        layer = sys._getframe(1).f_locals  # the caller, a layer, passes no arguments
        x = layer.get("query", layer.get("src"))
        return (not isinstance(x, Tensor) or why_not((x,), {}, False) is not None) and theirs()

    _compile_as(get_fastpath_enabled, theirs)
    return get_fastpath_enabled


def _bias_function(theirs: Any) -> Any:
    """CausalBias.__torch_function__, which compares with the current functions of torch.nn.functional.

    A program that imported PyTorch's function by name calls that function while ours is installed.
    """

    def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _places.attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return theirs.__func__(cls, func, types, args, kwargs)

    return classmethod(__torch_function__)


class _BiasImport:
    """Reports when CausalBias is imported inside a block. (Importing it here would import a compiler.)"""

    def __init__(self, imported: Callable[[], None]) -> None:
        self._imported = imported

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Python's finder, with a loader that reports the import."""
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == _BIAS else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._imported()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# ---------------------------------------------------------------- their places


class _Places:
    """Installs the functions in place of PyTorch's, and restores PyTorch's."""

    def __init__(self) -> None:
        self.attention = {F.scaled_dot_product_attention}  # PyTorch's function and ours
        self._lock = threading.Lock()
        self._wanted = False
        self._lifted = 0
        self._made: dict[Any, Any] = {}  # PyTorch's function -> ours: compiled code compares them by identity
        self._replaced: list[Any] = []  # modules and classes whose function is currently ours
        self._seen: list[tuple[Any, str]] = []  # every attribute that was ever replaced
        self._bias_import: Any = _BiasImport(self.refresh)

    def take(self) -> None:
        """Installs rapt's functions."""
        with self._lock:
            self._wanted = True
            self._update()

    def leave(self) -> None:
        """Restores PyTorch's functions."""
        with self._lock:
            self._wanted = False
            self._update()

    def refresh(self) -> None:
        """Called when CausalBias may have been imported."""
        with self._lock:
            self._update()

    def lift(self) -> None:
        """Restores PyTorch's functions until `lower`. Meanwhile calls from other threads go to PyTorch too."""
        with self._lock:
            self._lifted += 1
            self._update()

    def lower(self) -> None:
        """Ends one `lift`."""
        with self._lock:
            self._lifted -= 1
            self._update()

    def _update(self) -> None:
        if self._wanted and not self._lifted:
            if not self._replaced:
                self._put(F, "scaled_dot_product_attention", _routed_attention)
                self._put(F, "multi_head_attention_forward", _routed_layer)
                self._put(torch.backends.mha, "get_fastpath_enabled", _fastpath)
                sys.meta_path.insert(0, self._bias_import)
            bias = getattr(sys.modules.get(_BIAS), "CausalBias", None)
            if bias is not None and not any(owner is bias for owner in self._replaced):
                self._put(bias, "__torch_function__", _bias_function)
            return
        self._replaced = []
        for owner, name in self._seen:
            theirs = self._theirs(vars(owner)[name])
            if theirs is not None:  # otherwise somebody wrapped our function, which then calls PyTorch's
                setattr(owner, name, theirs)
        if self._bias_import in sys.meta_path:
            sys.meta_path.remove(self._bias_import)

    def _theirs(self, function: Any) -> Any:
        """The function that one of ours replaces; None for any other function."""
        return next((theirs for theirs, ours in self._made.items() if ours is function), None)

    def _put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        found = vars(owner)[name]
        # A patch that was applied inside a block and reverted after it has put our function back.
        theirs = self._theirs(found) or found
        if theirs not in self._made:
            self._made[theirs] = make(theirs)
        ours = self._made[theirs]
        if name == "scaled_dot_product_attention":
            self.attention |= {theirs, ours}
        setattr(owner, name, ours)
        self._replaced.append(owner)
        if (owner, name) not in self._seen:
            self._seen.append((owner, name))


def _routed_attention(theirs: Callable[..., Any]) -> Callable[..., Any]:
    return _routed(theirs, sdpa, "scaled_dot_product_attention")


def _routed_layer(theirs: Callable[..., Any]) -> Callable[..., Any]:
    return _routed(theirs, multi_head_attention_forward, "multi_head_attention_forward")


_places = _Places()
take_places, leave_places = _places.take, _places.leave
