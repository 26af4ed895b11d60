"""The settings and results of a layer: plain named tuples, with the names of rapt/multi_head_attention.h."""

from __future__ import annotations

from typing import Any, NamedTuple


class RotaryScaling(NamedTuple):
    """Context extension of a model that was trained on `original_length` positions, with the names of transformers.

    Make one with linear, ntk, dynamic, yarn or llama3.
    """

    kind: str = "none"
    factor: float = 1.0
    original_length: int = 0
    length: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    truncate: bool = True
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    @staticmethod
    def linear(factor: float) -> RotaryScaling:
        """Positions are divided by the factor."""
        return RotaryScaling("linear", factor)

    @staticmethod
    def ntk(factor: float) -> RotaryScaling:
        """ "NTK-aware": the base becomes base * factor ** (size / (size - 2))."""
        return RotaryScaling("ntk", factor)

    @staticmethod
    def dynamic(factor: float, original_length: int, length: int) -> RotaryScaling:
        """ntk with the factor `factor * length / original_length - (factor - 1)`, for sequences of `length` tokens."""
        return RotaryScaling("dynamic", factor, original_length, length)

    @staticmethod
    def yarn(
        factor: float,
        original_length: int,
        *,
        beta_fast: float = 32.0,
        beta_slow: float = 1.0,
        attention_factor: float | None = None,
        truncate: bool = True,
    ) -> RotaryScaling:
        """YaRN: fast pairs keep their frequency, slow pairs have it divided by the factor, and a ramp connects the
        two."""
        ramp = (beta_fast, beta_slow, attention_factor, truncate)
        return RotaryScaling("yarn", factor, original_length, 0, *ramp)

    @staticmethod
    def llama3(
        factor: float, original_length: int, low_freq_factor: float = 1.0, high_freq_factor: float = 4.0
    ) -> RotaryScaling:
        """The scaling of Llama 3.1."""
        return RotaryScaling(
            "llama3",
            factor,
            original_length,
            low_freq_factor=low_freq_factor,
            high_freq_factor=high_freq_factor,
        )


class RotaryOptions(NamedTuple):
    """Rotary position embedding: queries and keys are rotated by angles proportional to their position.

    base: the frequency of pair d is base ** (-2 d / size).
    size: number of rotated dimensions per head, from the first; even; 0: all.
    pairs: "half_split" pairs d with d + size/2 (Llama, GPT-NeoX), "interleaved" 2d with 2d + 1 (GPT-J).
    scaling: a RotaryScaling, or None.
    max_positions: cos and sin of positions below this are precomputed; others are computed in each call.
    """

    base: float = 10000.0
    size: int = 0
    pairs: str = "half_split"
    scaling: RotaryScaling | None = None
    max_positions: int = 0


class HeadSlice(NamedTuple):
    """Part `index` of `count` equal parts of the heads. The outputs of all parts sum to that of the whole layer."""

    index: int = 0  # type: ignore[assignment]  # in the place of tuple.index
    count: int = 1  # type: ignore[assignment]


class LayerConfig(NamedTuple):
    """The settings of a layer, with the names of C++ (MultiHeadAttentionConfig); `layer.config` has defaults resolved.

    PyTorch calls embed_size embed_dim, heads num_heads, key_size kdim, value_size vdim and add_zero_attention
    add_zero_attn.
    """

    embed_size: int
    heads: int
    kv_heads: int = 0
    head_size: int = 0
    key_size: int = 0
    value_size: int = 0
    output_size: int = 0
    bias: bool = True
    output_bias: bool | None = None
    separate_projections: bool = False
    add_bias_kv: bool = False
    add_zero_attention: bool = False
    dropout: float = 0.0
    output_dropout: float = 0.0
    batch_first: bool = False
    context_length: int = 0
    rotary: RotaryOptions | None = None
    slice: HeadSlice = HeadSlice()
    dtype: str = "float32"

    @classmethod
    def _of(cls, fields: tuple[Any, ...]) -> LayerConfig:
        """From the tuple of the extension module."""
        config = cls(*fields)
        config = config._replace(slice=HeadSlice(*config.slice))
        rotary: Any = config.rotary
        if rotary is None:
            return config
        base, size, pairs, scaling, max_positions = rotary
        return config._replace(rotary=RotaryOptions(base, size, pairs, RotaryScaling(*scaling), max_positions))


class FoundLayer(NamedTuple):
    """A layer found in a file: the role of each tensor, and the sizes derived from their shapes.

    tensors: (name, role) of each tensor of the layer: ("encoder.0.in_proj_weight", "weight of q, k and v").
    left_over: tensors under the prefix that are not part of the layer.
    missing: biases that are absent although others are present; zeros are used.
    query_width, key_width: Hq * D and Hkv * D. The shapes do not determine the number of heads; see possible_heads.
    """

    prefix: str
    family: str
    tensors: list[tuple[str, str]]
    left_over: list[str]
    missing: list[str]
    embed_size: int
    key_size: int
    value_size: int
    output_size: int
    query_width: int
    key_width: int
    context_length: int
    bias: bool
    output_bias: bool
    add_bias_kv: bool
    separate: bool
    transposed: bool
    possible_heads: list[int]


class LayerResult(NamedTuple):
    """The results of a layer's forward if more than output and weights is requested."""

    out: Any
    weights: Any = None
    lse: Any = None
    captures: tuple = ()


class LayerGradients(NamedTuple):
    """The results of a layer's backward. What was not requested is None, or empty.

    dquery, dkey, dvalue: shaped as the inputs. If forward got no value, its gradient is part of dkey; if it
    got no key, all gradients are part of dquery.
    parameters: by name, shaped as the parameters.
    """

    dquery: Any = None
    dkey: Any = None
    dvalue: Any = None
    parameters: ParameterGradients | None = None
    dsinks: Any = None
    dmasks: tuple = ()


class IncompatibleKeys(NamedTuple):
    """The mismatches found by load_state_dict: names missing from the dict, and names unknown to the layer."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class StateDictError(ValueError, RuntimeError):
    """A state dict does not match a layer. A RuntimeError, as in PyTorch, and a ValueError, as in the rest of rapt."""


class ParameterGradients(dict):
    """Gradients of a layer's parameters, by name: arrays that backward adds to."""

    def __init__(self, memory, layer):
        super().__init__(memory.arrays(layer))
        self._memory = memory
