import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._layer_options import (
    FoundLayer,
    LayerConfig,
    LayerGradients,
    ParameterGradients,
    RotaryOptions,
)
from ._layer_parameters import LayerParameters
from ._rapt import KvCache, LayerActivations

class MultiheadAttention(LayerParameters):
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        output_size: int | None = None,
        output_bias: bool | None = None,
        separate_projections: bool = False,
        output_dropout: float = 0.0,
        context_length: int | None = None,
        rotary: RotaryOptions | bool | None = None,
        slice: tuple[int, int] | None = None,
        seed: int = 0,
    ) -> None: ...
    @property
    def config(self) -> LayerConfig: ...
    @property
    def found(self) -> FoundLayer | None: ...
    @property
    def embed_dim(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def kdim(self) -> int: ...
    @property
    def vdim(self) -> int: ...
    @property
    def dropout(self) -> float: ...
    @property
    def batch_first(self) -> bool: ...
    @property
    def add_zero_attn(self) -> bool: ...
    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        mask: Any = None,
        scale: float | None = None,
        softcap: float = 0.0,
        causal: bool = False,
        window: tuple[int | None, int | None] | None = None,
        alignment: str | int | Sequence[int] | None = None,
        key_lengths: Any = None,
        packed: Any = None,
        alibi_slopes: Any = None,
        sinks: Any = None,
        dropout: Any = None,
        engine: str = "automatic",
        threads: int = 0,
        position: int = 0,
        cache: KvCache | None = None,
        sequences: Sequence[int] | None = None,
        keep: bool | LayerActivations = False,
        out: Any = None,
        return_lse: bool = False,
        captures: Sequence | None = None,
    ) -> Any: ...
    __call__ = forward
    def backward(
        self,
        dout: Any,
        dweights: Any = None,
        *,
        kept: LayerActivations | None = None,
        inputs: bool = True,
        masks: Sequence[int] | None = None,
        parameters: ParameterGradients | bool = True,
    ) -> LayerGradients: ...
    def zero_gradients(self) -> ParameterGradients: ...
    @property
    def training(self) -> bool: ...
    @training.setter
    def training(self, mode: bool) -> None: ...
    def train(self, mode: bool = True) -> MultiheadAttention: ...
    def eval(self) -> MultiheadAttention: ...
    @classmethod
    def load(
        cls,
        source: str | os.PathLike | Mapping[str, Any],
        *,
        prefix: str = "",
        heads: int = 0,
        kv_heads: int = 0,
        batch_first: bool = False,
        add_zero_attention: bool = False,
        dropout: float = 0.0,
        rotary: RotaryOptions | bool | None = None,
        dtype: Any = None,
    ) -> MultiheadAttention: ...
    def save(
        self,
        path: str | os.PathLike,
        *,
        prefix: str = "",
        family: str = "torch",
        packed: bool | None = None,
        dtype: Any = None,
    ) -> None: ...
    def slice(self, index: int, count: int) -> MultiheadAttention: ...

def find_attention_layers(source: str | os.PathLike | Mapping[str, Any]) -> list[FoundLayer]: ...
