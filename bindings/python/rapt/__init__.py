"""rapt: multi-head attention, exact, fast and visible.

    out = rapt.attention(query, key, value, causal=True)

takes NumPy arrays, PyTorch and JAX tensors on the CPU, and anything else with __dlpack__ or the buffer protocol, reads
them where they lie, and gives back the kind it was given. help(rapt.attention) says what every option means.
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

# The classes are part of this module for whoever prints or pickles them.
for _class in (Array, CacheView, KvCache, LayerActivations, SafetensorsEntry, SafetensorsFile):
    _class.__module__ = __name__
del _class
