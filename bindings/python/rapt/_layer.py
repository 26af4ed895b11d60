"""rapt.MultiheadAttention: the layer, with the arguments, names and conventions of torch.nn.MultiheadAttention."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping

from . import _rapt
from ._layer_options import (
    FoundLayer,
    HeadSlice,
    LayerConfig,
    LayerGradients,
    LayerResult,
    ParameterGradients,
    RotaryOptions,
)
from ._layer_parameters import LayerParameters, detached
from ._options import Options


def _rotary(rotary):
    return RotaryOptions() if rotary is True else rotary or None


def _source(source):
    if isinstance(source, Mapping):
        return [(name, detached(value)) for name, value in source.items()]
    return os.fspath(source)


class MultiheadAttention(LayerParameters):
    """Multi-head attention as a layer, a replacement for torch.nn.MultiheadAttention.

        layer = rapt.MultiheadAttention(512, 8, batch_first=True)
        layer.load_state_dict(torch_layer.state_dict())
        output, weights = layer(x, x, x, key_padding_mask=padding)

    Arguments, masks, shapes, parameter names and results are those of PyTorch, with one exception: a query that sees
    no key gives the output bias, where PyTorch may give NaN. Inputs are NumPy arrays, PyTorch or JAX tensors on
    the CPU, or anything else with `__dlpack__` or the buffer protocol; outputs have the query's array type.
    Gradients are not recorded: see `backward`. Calls release the GIL, and several threads may call one layer.

    Args:
        embed_dim: E, the embedding size of the query.
        num_heads: Hq, the number of query heads.
        dropout: dropout rate of the weights, in training.
        bias: whether the projections have a bias.
        add_bias_kv: append a learned key and value, which every query sees.
        add_zero_attn: append a key and value of zeros.
        kdim: embedding size of the key. Default: E.
        vdim: embedding size of the value. Default: E.
        batch_first: tensors are (B, L, E); if False, (L, B, E).
        device: "cpu" or None.
        dtype: type of the parameters: float32, bfloat16, float16 or float64, as a name or the dtype of any library.

    Not in PyTorch's layer:

        kv_heads: Hkv, the number of key/value heads, which divides Hq. Default: Hq.
        head_size: D. Default: E / Hq.
        output_size: embedding size of the output. Default: E.
        output_bias: whether the output projection has a bias. Default: as `bias`.
        separate_projections: q, k and v have separate parameters, as they do if kdim or vdim differ from E.
        output_dropout: dropout rate of the output, in training.
        context_length: the length of a stored causal mask: every call is causal, and longer sequences are an error.
        rotary: a rapt.RotaryOptions, or True for its defaults.
        slice: (index, count): this part of the heads, for model parallelism.
        seed: for the parameters and dropout. The same seed gives the same layer; give each layer of a model its own.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
        *,
        kv_heads=None,
        head_size=None,
        output_size=None,
        output_bias=None,
        separate_projections=False,
        output_dropout=0.0,
        context_length=None,
        rotary=None,
        slice=None,
        seed=0,
    ):
        if device is not None and str(device) != "cpu":
            raise ValueError(f"MultiheadAttention: device is {device}; rapt computes on the CPU: omit it")
        config = LayerConfig(
            embed_size=embed_dim,
            heads=num_heads,
            kv_heads=kv_heads or 0,
            head_size=head_size or 0,
            key_size=kdim or 0,
            value_size=vdim or 0,
            output_size=output_size or 0,
            bias=bias,
            output_bias=output_bias,
            separate_projections=separate_projections,
            add_bias_kv=add_bias_kv,
            add_zero_attention=add_zero_attn,
            dropout=dropout,
            output_dropout=output_dropout,
            batch_first=batch_first,
            context_length=context_length or 0,
            rotary=_rotary(rotary),
            slice=HeadSlice(*(slice or ())),
            dtype="float32" if dtype is None else dtype,
        )
        self._set(_rapt.make_layer(config, seed), seed)

    def _set(self, layer, seed, found=None):
        self._layer = layer
        self._config = LayerConfig._of(layer.config)
        self._seeds = itertools.count((seed << 32) % (1 << 64))  # of dropout; each call in training takes the next
        self._kept = None
        self._found = found
        self._training = True

    @classmethod
    def _made_of(cls, layer, seed=0, found=None):
        made = cls.__new__(cls)
        made._set(layer, seed, found)
        return made

    # ---- What the layer is

    @property
    def config(self):
        """All settings, with every default filled in."""
        return self._config

    @property
    def found(self):
        """What `load` found in the file: the role of each tensor. None for a layer that was not loaded."""
        return self._found

    @property
    def embed_dim(self):
        """E: embedding size of the query."""
        return self._config.embed_size

    @property
    def num_heads(self):
        """Hq."""
        return self._config.heads

    @property
    def head_dim(self):
        """D: the size of a head."""
        return self._config.head_size

    @property
    def kdim(self):
        """Embedding size of the key."""
        return self._config.key_size

    @property
    def vdim(self):
        """Embedding size of the value."""
        return self._config.value_size

    @property
    def dropout(self):
        """Dropout rate of the weights, in training."""
        return self._config.dropout

    @property
    def batch_first(self):
        """Whether tensors are (B, L, E) instead of (L, B, E)."""
        return self._config.batch_first

    @property
    def add_zero_attn(self):
        """Whether a key and value of zeros are appended."""
        return self._config.add_zero_attention

    def __repr__(self):
        config, defaults = self._config, LayerConfig(0, 0)
        filled_in = {"kv_heads": config.heads, "output_bias": config.bias}
        filled_in |= dict.fromkeys(("key_size", "value_size", "output_size"), config.embed_size)
        filled_in["head_size"] = config.embed_size // config.heads
        filled_in["separate_projections"] = not config.key_size == config.value_size == config.embed_size
        words = {"key_size": "kdim", "value_size": "vdim", "add_zero_attention": "add_zero_attn"}
        parts = [str(config.embed_size), str(config.heads)]
        for name, value in config._asdict().items():
            if name not in ("embed_size", "heads") and value != filled_in.get(name, getattr(defaults, name)):
                parts.append(f"{words.get(name, name)}={value!r}")
        return f"rapt.MultiheadAttention({', '.join(parts)})"

    # ---- Forward

    def forward(
        self,
        query,
        key=None,
        value=None,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
        *,
        mask=None,
        scale=None,
        softcap=0.0,
        causal=False,
        window=None,
        alignment=None,
        key_lengths=None,
        packed=None,
        alibi_slopes=None,
        sinks=None,
        dropout=None,
        engine="automatic",
        threads=0,
        position=0,
        cache=None,
        sequences=None,
        keep=False,
        out=None,
        return_lse=False,
        captures=None,
    ):
        """The layer's output, and the attention weights: (output, weights), or (output, None) without need_weights.

        With a batch, query is (Lq, B, E), or (B, Lq, E) with batch_first, and output likewise; weights are (B, Lq, Lk),
        or (B, Hq, Lq, Lk) with average_attn_weights=False. Without a batch, query is (Lq, E), and all shapes omit B.
        The output has the query's dtype; weights are float32 (float64 for a float64 layer).

        Args:
            query, key, value: tokens. value defaults to key, and key to query.
            key_padding_mask: (B, Lk), or (Lk) without a batch. Bool: True masks the key. Float: added to the scores.
            need_weights: return the weights. They cost time and memory; set it to False if you do not need them.
            attn_mask: (Lq, Lk), or (B * Hq, Lq, Lk). Bool: True masks the key for the query. Float: added.
            average_attn_weights: return the mean of the weights over heads instead of those of every head.
            is_causal: query i sees keys 0 to i. If attn_mask is given, is_causal is only a hint, and the mask decides.
                PyTorch requires the mask as well; rapt does not.

        Not in PyTorch's layer, as in rapt.attention:

            mask: a rapt.Mask, or a list of them.
            scale, softcap, causal, window, alignment, key_lengths, packed, alibi_slopes, sinks, engine, threads.
            dropout: a rapt.Dropout with rate 0, for its seed and starts; the rate is set in the layer. Default: each
                call in training uses a new seed.
            position: position of the first token, for rotary embedding.
            cache: a rapt.KvCache, to which the tokens of this call are appended. Only for self-attention.
            sequences: the cache sequence of each batch row. Default: sequence b for row b.
            keep: True, or a rapt.LayerActivations: keep what `backward` needs.
            out: an array for the output.
            return_lse, captures: further results; the result is then (out, weights, lse, captures).
        """
        if is_causal and attn_mask is None:
            causal = True
            alignment = "top_left" if alignment is None and cache is None else alignment
        if dropout is None and self._training and self._config.dropout + self._config.output_dropout > 0.0:
            dropout = (0.0, next(self._seeds))
        options = Options(mask, scale, softcap, causal, window, alignment, key_lengths, packed,
                          alibi_slopes=alibi_slopes, sinks=sinks, dropout=dropout, engine=engine, threads=threads)
        weights = "none" if not need_weights else "mean" if average_attn_weights else "per_head"
        if key is query and (value is query or value is None):
            key = value = None  # self-attention: one product instead of three
        elif value is key:
            value = None
        arguments = (query, key, value, attn_mask, key_padding_mask, options, weights, self._training, position, cache,
                     sequences)
        kept = None
        if keep is not False:
            kept = _rapt.LayerActivations() if keep is True else keep
        result = self._layer.forward(arguments, kept, out, return_lse, captures)
        if kept is not None:
            self._kept = kept
        return LayerResult(*result) if return_lse or captures is not None else result

    __call__ = forward

    # ---- Backward

    def backward(
        self,
        dout,
        dweights=None,
        *,
        kept=None,
        inputs=True,
        masks=None,
        parameters=True,
    ):
        """The gradients of a forward call that was made with `keep`.

            out, weights = layer(x, keep=True)
            gradients = layer.backward(dout)
            gradients.dquery, gradients.parameters["in_proj_weight"]

        The arrays of that call must not have changed since. Gradients are float32, or float64 for a float64 layer.

        Args:
            dout: gradient of the output.
            dweights: gradient of the weights. Default: zeros.
            kept: the kept call. Default: the last one.
            inputs: whether to compute dquery, dkey and dvalue.
            masks: indices of the masks whose gradients to compute: those of `mask`, then attn_mask, then
                key_padding_mask.
            parameters: True: compute the gradients of the parameters. The result of `zero_gradients` or of an earlier
                call: add to it. False: skip them.
        """
        kept = kept or self._kept
        if kept is None:
            raise ValueError("MultiheadAttention.backward: no call was kept; call forward with keep=True first")
        if isinstance(parameters, bool):
            parameters = self.zero_gradients() if parameters else None
        if parameters is not None and not isinstance(parameters, ParameterGradients):
            raise ValueError(f"MultiheadAttention.backward: parameters is of type {type(parameters).__name__}; "
                             "pass the result of zero_gradients")
        memory = None if parameters is None else parameters._memory
        dquery, dkey, dvalue, dsinks, dmasks = self._layer.backward(kept, dout, dweights, inputs, masks, memory)
        return LayerGradients(dquery, dkey, dvalue, parameters, dsinks, dmasks)

    def zero_gradients(self):
        """Zeros for the gradients of all parameters: a dict that `backward` adds to."""
        return ParameterGradients(self._layer.zero_gradients(), self._layer)

    # ---- Training and evaluation

    @property
    def training(self):
        """Whether the layer is in training mode, which applies dropout. True for a new layer, as in PyTorch."""
        return self._training

    @training.setter
    def training(self, mode):
        self._training = bool(mode)

    def train(self, mode=True):
        """Sets training mode, which applies dropout."""
        self.training = mode
        return self

    def eval(self):
        """Sets evaluation mode, without dropout."""
        return self.train(False)

    # ---- Files

    @classmethod
    def load(
        cls,
        source,
        *,
        prefix="",
        heads=0,
        kv_heads=0,
        batch_first=False,
        add_zero_attention=False,
        dropout=0.0,
        rotary=None,
        dtype=None,
    ):
        """Loads a layer from a file or from a model's state dict, with any common naming of its parameters.

            layer = rapt.MultiheadAttention.load("model.safetensors", prefix="encoder.layers.0", heads=8)
            for tensor, role in layer.found.tensors: print(tensor, "is the", role)

        It supports PyTorch's in_proj_weight, W_q, W_query, q_linear, wq, q_proj, BERT's query, to_q, a packed qkv, and
        GPT-2's transposed c_attn. `layer.found` describes what was found.

        Args:
            source: a .safetensors or .npz file, or a dict of names and arrays.
            prefix: prefix of the layer's names. It may be incomplete, or empty, if only one layer matches.
            heads: Hq, which the shapes do not determine; 0: from the metadata that `save` wrote.
            kv_heads: Hkv; 0: from the shapes.
            dtype: type of the parameters. Default: as in the file.
        """
        options = (prefix, heads, kv_heads, batch_first, add_zero_attention, dropout, _rotary(rotary),
                   dtype)
        layer, found = _rapt.load_layer(_source(source), options)
        return cls._made_of(layer, found=FoundLayer(*found))

    def save(
        self,
        path,
        *,
        prefix="",
        family="torch",
        packed=None,
        dtype=None,
    ):
        """Writes all parameters to a .safetensors or .npz file, under the names that `state_dict` gives them.

        The file is written atomically: under a temporary name, and then renamed.
        """
        options = (family, prefix, packed, dtype)
        self._layer.save(os.fspath(path), options)

    def slice(self, index, count):
        """Part `index` of `count` equal parts of the heads, with its own copy of the parameters.

        The outputs of all parts sum to the output of this layer; only part 0 adds the output bias.
        """
        return self._made_of(self._layer.slice(index, count)).train(self._training)

    def __reduce__(self):
        return _rebuild, (self._config, self.state_dict(), self._training)


def _rebuild(config, state, training):
    """Restores a layer from a pickle or a copy."""
    layer = MultiheadAttention._made_of(_rapt.make_layer(config, 0))
    layer.load_state_dict(state)
    return layer.train(training)


def find_attention_layers(source):
    """Every attention layer in a file, or in a model's state dict, whose tensors are complete and consistent.

    source: a .safetensors or .npz file, or a dict of names and arrays.
    """
    return [FoundLayer(*found) for found in _rapt.find_attention_layers(_source(source))]
