# Types of rapt.transformers.
from collections.abc import Callable
from typing import Any

from torch import Tensor, device, nn

__all__ = ["attention_forward", "attention_mask", "register"]

def register(name: str = "rapt") -> None: ...
def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    cache: Any = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]: ...
def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = ...,
    attention_mask: Tensor | None = None,
    allow_is_bidirectional_skip: bool = False,
    device: device | str = "cpu",
    **kwargs: Any,
) -> Tensor | None: ...
