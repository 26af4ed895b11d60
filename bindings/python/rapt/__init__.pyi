# Types of the package rapt. A test checks them against the module: bindings/python/tests/test_package.py.
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from typing_extensions import Buffer

from ._layer import MultiheadAttention as MultiheadAttention
from ._layer import find_attention_layers as find_attention_layers
from ._layer_options import FoundLayer as FoundLayer
from ._layer_options import HeadSlice as HeadSlice
from ._layer_options import IncompatibleKeys as IncompatibleKeys
from ._layer_options import LayerConfig as LayerConfig
from ._layer_options import LayerGradients as LayerGradients
from ._layer_options import LayerResult as LayerResult
from ._layer_options import ParameterGradients as ParameterGradients
from ._layer_options import RotaryOptions as RotaryOptions
from ._layer_options import RotaryScaling as RotaryScaling
from ._layer_options import StateDictError as StateDictError
from ._options import Window as Window
from ._picture import Picture as Picture
from ._picture import show as show
from ._rapt import Array as Array
from ._rapt import CacheView as CacheView
from ._rapt import KvCache as KvCache
from ._rapt import LayerActivations as LayerActivations
from ._rapt import SafetensorsEntry as SafetensorsEntry
from ._rapt import SafetensorsFile as SafetensorsFile
from ._rapt import __version__ as __version__
from ._rapt import instruction_set as instruction_set
from ._rapt import instruction_sets as instruction_sets
from ._rapt import set_thread_count as set_thread_count
from ._rapt import thread_count as thread_count
from ._rapt import use_instruction_set as use_instruction_set

__all__ = [
    "Array",
    "AttentionGradients",
    "AttentionResult",
    "CacheView",
    "Capture",
    "Dropout",
    "FoundLayer",
    "HeadSlice",
    "IncompatibleKeys",
    "KvCache",
    "LayerActivations",
    "LayerConfig",
    "LayerGradients",
    "LayerResult",
    "Mask",
    "MultiheadAttention",
    "PackedSequences",
    "Pages",
    "ParameterGradients",
    "Picture",
    "RotaryOptions",
    "RotaryScaling",
    "SafetensorsEntry",
    "SafetensorsFile",
    "StateDictError",
    "WeightsGradient",
    "Window",
    "__version__",
    "attention",
    "attention_backward",
    "combine_heads",
    "find_attention_layers",
    "instruction_set",
    "instruction_sets",
    "load",
    "save",
    "set_thread_count",
    "show",
    "split_heads",
    "thread_count",
    "use_instruction_set",
]

class _SupportsDlpack(Protocol):
    def __dlpack__(self) -> Any: ...

# numpy.ndarray, torch.Tensor, jax.Array, memoryview, array.array, rapt.Array, …
_ArrayLike: TypeAlias = _SupportsDlpack | Buffer
_Array = TypeVar("_Array", bound=_ArrayLike)
_Integers: TypeAlias = Sequence[int] | _ArrayLike
_Numbers: TypeAlias = Sequence[float] | _ArrayLike
_Engine: TypeAlias = Literal["automatic", "reference", "cpu"]
_Stage: TypeAlias = Literal["raw", "capped", "masked", "weights", "dropped_weights"]
_Gradient: TypeAlias = Literal["dquery", "dkey", "dvalue", "dsinks", "dmasks"]
_Alignment: TypeAlias = Literal["top_left", "bottom_right"] | int | _Integers

class Mask(NamedTuple):
    kind: Literal["keep", "drop", "add", "fill"]
    array: _ArrayLike
    value: float = 0.0

    @staticmethod
    def keep(where: _ArrayLike) -> Mask: ...
    @staticmethod
    def drop(where: _ArrayLike) -> Mask: ...
    @staticmethod
    def add(bias: _ArrayLike) -> Mask: ...
    @staticmethod
    def fill(where: _ArrayLike, value: float) -> Mask: ...

_Masks: TypeAlias = Mask | _ArrayLike | Sequence[Mask | _ArrayLike]

class PackedSequences(NamedTuple):
    query_starts: _Integers
    key_starts: _Integers

class Pages(NamedTuple):
    table: Sequence[Sequence[int]] | _ArrayLike
    keys: int = 0

class Dropout(NamedTuple):
    rate: float
    seed: int
    batch_start: int = 0
    head_start: int = 0
    query_start: int = 0

class Capture(NamedTuple):
    stage: _Stage = "dropped_weights"
    heads: _Integers | None = None
    queries: _Integers | None = None
    mean_over_heads: bool = False
    dtype: Any = None
    out: _ArrayLike | None = None

class WeightsGradient(NamedTuple):
    array: _ArrayLike
    stage: Literal["weights", "dropped_weights"] = "dropped_weights"
    heads: _Integers | None = None
    queries: _Integers | None = None
    mean_over_heads: bool = False

# Arrays of the query's array type.
class AttentionResult(NamedTuple):
    out: Any
    lse: Any = None
    weights: Any = None
    captures: tuple[Any, ...] = ()

class AttentionGradients(NamedTuple):
    dquery: Any
    dkey: Any
    dvalue: Any
    dsinks: Any = None
    dmasks: tuple[Any, ...] = ()

@overload
def attention(
    query: _Array,
    key: _ArrayLike | None = None,
    value: _ArrayLike | None = None,
    *,
    mask: _Masks | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window | tuple[int | None, int | None] | None = None,
    alignment: _Alignment | None = None,
    key_lengths: _Integers | None = None,
    packed: PackedSequences | tuple[_Integers, _Integers] | None = None,
    pages: Pages | None = None,
    key_scales: _ArrayLike | None = None,
    value_scales: _ArrayLike | None = None,
    alibi_slopes: _Numbers | None = None,
    sinks: _ArrayLike | None = None,
    dropout: Dropout | tuple[float, int] | None = None,
    engine: _Engine = "automatic",
    threads: int = 0,
    cache: CacheView | None = None,
    out: _ArrayLike | None = None,
    return_lse: Literal[False] = False,
    return_weights: Literal[False] = False,
    captures: None = None,
) -> _Array: ...
@overload
def attention(
    query: _Array,
    key: _ArrayLike | None = None,
    value: _ArrayLike | None = None,
    *,
    mask: _Masks | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window | tuple[int | None, int | None] | None = None,
    alignment: _Alignment | None = None,
    key_lengths: _Integers | None = None,
    packed: PackedSequences | tuple[_Integers, _Integers] | None = None,
    pages: Pages | None = None,
    key_scales: _ArrayLike | None = None,
    value_scales: _ArrayLike | None = None,
    alibi_slopes: _Numbers | None = None,
    sinks: _ArrayLike | None = None,
    dropout: Dropout | tuple[float, int] | None = None,
    engine: _Engine = "automatic",
    threads: int = 0,
    cache: CacheView | None = None,
    out: _ArrayLike | None = None,
    return_lse: bool = False,
    return_weights: bool | Literal["mean"] = False,
    captures: Capture | Sequence[Capture] | None = None,
) -> AttentionResult: ...
def attention_backward(
    query: _ArrayLike,
    key: _ArrayLike,
    value: _ArrayLike,
    dout: _ArrayLike | None = None,
    *,
    dlse: _ArrayLike | None = None,
    dweights: _ArrayLike | WeightsGradient | Sequence[WeightsGradient] | None = None,
    out: _ArrayLike | None = None,
    lse: _ArrayLike | None = None,
    gradients: _Gradient | Sequence[_Gradient] = ("dquery", "dkey", "dvalue"),
    mask: _Masks | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window | tuple[int | None, int | None] | None = None,
    alignment: _Alignment | None = None,
    key_lengths: _Integers | None = None,
    packed: PackedSequences | tuple[_Integers, _Integers] | None = None,
    pages: Pages | None = None,
    key_scales: _ArrayLike | None = None,
    value_scales: _ArrayLike | None = None,
    alibi_slopes: _Numbers | None = None,
    sinks: _ArrayLike | None = None,
    dropout: Dropout | tuple[float, int] | None = None,
    engine: _Engine = "automatic",
    threads: int = 0,
) -> AttentionGradients: ...
def split_heads(x: _Array, heads: int) -> _Array: ...
def combine_heads(x: _Array) -> _Array: ...
def load(path: str | PathLike[str], *, integers_as: Any = None) -> Any: ...
def save(
    path: str | PathLike[str],
    arrays: Mapping[str, _ArrayLike] | _ArrayLike,
    *,
    metadata: Mapping[str, str] | None = None,
    compress: bool = False,
) -> None: ...
