"""rapt: fast, exact multi-head attention, with every step visible.

    out = rapt.attention(query, key, value, causal=True)

rapt.attention takes NumPy arrays, PyTorch and JAX tensors on the CPU, and anything else with __dlpack__ or the buffer
protocol. It reads them in place and returns the same type of array. help(rapt.attention) describes every option.
"""

from ._attention import AttentionGradients, AttentionResult, attention, attention_backward
from ._files import load, save
from ._heads import combine_heads, split_heads
from ._layer import MultiheadAttention, find_attention_layers
from ._layer_options import (
    FoundLayer,
    HeadSlice,
    IncompatibleKeys,
    LayerConfig,
    LayerGradients,
    LayerResult,
    ParameterGradients,
    RotaryOptions,
    RotaryScaling,
    StateDictError,
)
from ._options import Capture, Dropout, Mask, PackedSequences, Pages, WeightsGradient, Window
from ._picture import Picture, show
from ._rapt import (
    Array,
    CacheView,
    KvCache,
    LayerActivations,
    SafetensorsEntry,
    SafetensorsFile,
    __version__,
    instruction_set,
    instruction_sets,
    set_thread_count,
    thread_count,
    use_instruction_set,
)

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

# The classes appear as part of this module when printed or pickled.
for _class in (Array, CacheView, KvCache, LayerActivations, SafetensorsEntry, SafetensorsFile):
    _class.__module__ = __name__
del _class
