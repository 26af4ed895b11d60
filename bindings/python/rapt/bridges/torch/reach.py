"""Decides which calls rapt computes: plain CPU tensors, tracked by nothing but autograd and a compiler."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._device import DeviceContext

_flash_allowed = torch._C._get_flash_sdp_enabled
_math_allowed = torch._C._get_math_sdp_enabled
_function_modes = torch._C._len_torch_function_stack


def watched() -> bool:
    """Whether PyTorch operators are being traced: by a compiler, a tracer, a mode or a transform such as vmap."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._get_tracing_state() is not None
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )


def transformed() -> bool:
    """Whether vmap, another transform of torch.func, batched gradients or forward-mode differentiation is active."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )  # fmt: skip


def plain(x: Tensor) -> bool:
    """Whether a tensor is an ordinary CPU tensor."""
    kind = type(x)
    return (kind is Tensor or kind is Parameter) and x.is_cpu and x.layout is torch.strided and not x.is_nested


def is_causal_bias(x: Any) -> bool:
    """Whether x is a torch.nn.attention.bias.CausalBias. (Importing that module would import a compiler.)"""
    kind = type(x)
    return kind.__name__ == "CausalBias" and kind.__module__ == "torch.nn.attention.bias"


def why_not(args: tuple, kwargs: dict[str, Any], takes_causal_bias: bool) -> str | None:
    """None if rapt may compute a call, otherwise the reason, as listed in `Calls`."""
    if torch.compiler.is_compiling():
        return _why_not_compiled(args, kwargs, takes_causal_bias)
    if not (_flash_allowed() and _math_allowed()):
        return "backend"  # on the CPU PyTorch chooses between these two, but the user has restricted the choice
    if watched():
        return "transform"
    if _function_modes() and not _devices_only():
        return "mode"
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, Tensor) and not plain(x) and not (takes_causal_bias and is_causal_bias(x)):
            return _why_not_plain(x)
    return None


def _why_not_plain(x: Tensor) -> str:
    if x.is_nested:
        return "nested"
    if type(x) not in (Tensor, Parameter):
        return "subclass"
    return "device" if not x.is_cpu else "layout"


def _both_allowed() -> bool:
    """Whether both kernels are allowed. A compiler takes the result as a constant."""
    return _flash_allowed() and _math_allowed()


_TRACED = ("FakeTensor", "FunctionalTensor")  # the tensors that torch.export traces with

# The effect of torch.compiler.assume_constant_result, which would import a compiler first.
_both_allowed._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _why_not_compiled(args: tuple, kwargs: dict[str, Any], takes_causal_bias: bool) -> str | None:
    """`why_not` while a compiler traces the call: the compiler sees rapt's operator, and its tensors are not plain."""
    if not _both_allowed():
        return "backend"
    for x in (*args, *kwargs.values()):
        kind = type(x)  # isinstance of a subclass would run its __torch_function__ while it is traced
        if kind is not Tensor and kind is not Parameter:
            if not issubclass(kind, Tensor):
                continue
            if kind.__name__ not in _TRACED and not (takes_causal_bias and is_causal_bias(x)):
                return "nested" if kind.__name__ == "NestedTensor" else "subclass"
        if x.is_nested:
            return "nested"
        if x.device.type != "cpu":
            return "device"
    return None


def is_overridden(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a subclass or a mode will check which function was called. The modes of torch.device do not."""
    if not torch.overrides.has_torch_function((*args, *kwargs.values())):
        return False
    tensors = (x for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
    return not _devices_only() or any(type(x) is not Tensor and type(x) is not Parameter for x in tensors)


def _devices_only() -> bool:
    """Whether all active modes are those of torch.device and set_default_device, which change no computation."""
    modes = torch.overrides._get_current_function_mode_stack()
    return all(isinstance(mode, DeviceContext) for mode in modes)
