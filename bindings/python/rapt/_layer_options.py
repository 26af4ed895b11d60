"""What a layer is made of and what it gives: plain named tuples, in the words of rapt/multi_head_attention.h."""

from __future__ import annotations

from typing import Any, NamedTuple


class RotaryScaling(NamedTuple):
    """How a model that was trained on `original_length` positions reaches further. The names are those of transformers.

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
        """ntk with factor * length / original_length - (factor - 1), for sequences of `length` tokens."""
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
        """YaRN: pairs that turn often keep their frequency, slow ones are divided by the factor, a ramp joins them."""
        ramp = (beta_fast, beta_slow, attention_factor, truncate)
        return RotaryScaling("yarn", factor, original_length, 0, *ramp)

    @staticmethod
    def llama3(
        factor: float, original_length: int, low_freq_factor: float = 1.0, high_freq_factor: float = 4.0
    ) -> RotaryScaling:
        """Llama 3.1's."""
        return RotaryScaling(
            "llama3",
            factor,
            original_length,
            low_freq_factor=low_freq_factor,
            high_freq_factor=high_freq_factor,
        )


class RotaryOptions(NamedTuple):
    """Rotary position embedding: queries and keys are turned by angles that grow with their position.

    base: the frequency of pair d is base ** (-2 d / size).
    size: how many numbers of a head are turned, from the first on; even; 0: all.
    pairs: "half_split" pairs d with d + size/2 (Llama, GPT-NeoX), "interleaved" 2d with 2d + 1 (GPT-J).
    scaling: a RotaryScaling, or None.
    max_positions: positions below this have their cos and sin in a table; others are computed in the call.
    """

    base: float = 10000.0
    size: int = 0
    pairs: str = "half_split"
    scaling: RotaryScaling | None = None
    max_positions: int = 0


class HeadSlice(NamedTuple):
    """Part `index` of `count` equal parts of the heads. The outputs of all parts add up to the whole layer's."""

    index: int = 0  # type: ignore[assignment]  # in the place of tuple.index
    count: int = 1  # type: ignore[assignment]


class LayerConfig(NamedTuple):
    """What a layer is, in the words of C++ (MultiHeadAttentionConfig); in a layer's `config` defaults are filled in.

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
        """From the tuple that the extension module gives."""
        config = cls(*fields)
        config = config._replace(slice=HeadSlice(*config.slice))
        rotary: Any = config.rotary
        if rotary is None:
            return config
        base, size, pairs, scaling, max_positions = rotary
        return config._replace(rotary=RotaryOptions(base, size, pairs, RotaryScaling(*scaling), max_positions))


class FoundLayer(NamedTuple):
    """A layer by its tensors in a file: which tensor is what, and the sizes that their shapes tell.

    tensors: (name, role) of each that the layer takes: ("encoder.0.in_proj_weight", "weight of q, k and v").
    left_over: tensors under the prefix that it does not take.
    missing: biases that others of the layer have and these not; they are taken as zeros.
    query_width, key_width: Hq * D and Hkv * D. Shapes do not tell the number of heads; possible_heads lists those that
    fit.
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
    """What a layer's forward gives where more than output and weights is asked for."""

    out: Any
    weights: Any = None
    lse: Any = None
    captures: tuple = ()


class LayerGradients(NamedTuple):
    """What a layer's backward gives; what was not asked for is None, or empty.

    dquery, dkey, dvalue: shaped as the inputs. Where forward got no value of its own, its gradient is part of the
    key's, and where it got no key, all is part of the query's.
    parameters: by name, shaped as the parameters.
    """

    dquery: Any = None
    dkey: Any = None
    dvalue: Any = None
    parameters: ParameterGradients | None = None
    dsinks: Any = None
    dmasks: tuple = ()


class IncompatibleKeys(NamedTuple):
    """What load_state_dict found: names that the layer has and the dict not, and the other way round."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class StateDictError(ValueError, RuntimeError):
    """A state dict does not fit a layer: a RuntimeError, as PyTorch has it, and a ValueError, as all errors of rapt."""


class ParameterGradients(dict):
    """Gradients of a layer's parameters, by name: arrays that backward adds to."""

    def __init__(self, memory, layer):
        super().__init__(memory.arrays(layer))
        self._memory = memory
