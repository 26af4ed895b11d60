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


def _rotary(rotary):
    return RotaryOptions() if rotary is True else rotary or None


def _source(source):
    if isinstance(source, Mapping):
        return [(name, detached(value)) for name, value in source.items()]
    return os.fspath(source)


class MultiheadAttention(LayerParameters):
    """Multi-head attention as a layer, in the place of torch.nn.MultiheadAttention.

        layer = rapt.MultiheadAttention(512, 8, batch_first=True)
        layer.load_state_dict(torch_layer.state_dict())
        output, weights = layer(x, x, x, key_padding_mask=padding)

    Arguments, masks, shapes and the names of the parameters are PyTorch's, and so are the results; only a query that
    sees no key gives the output bias, where PyTorch may give NaN. Inputs are NumPy arrays, PyTorch or JAX tensors on
    the CPU, or anything else with `__dlpack__` or the buffer protocol; outputs are of the query's kind. Gradients are
    not recorded: see `backward`. Calls release the interpreter's lock, and several threads may call one layer.

    Args:
        embed_dim: E, numbers in a token of the query.
        num_heads: Hq.
        dropout: rate at which weights are dropped, in training.
        bias: the projections have one.
        add_bias_kv: one more key and value, learned, that every query sees.
        add_zero_attn: one more key and value of zeros.
        kdim: numbers in a token of the key. Absent: E.
        vdim: of the value. Absent: E.
        batch_first: tensors are (B, L, E); else (L, B, E).
        device: "cpu" or None: there is no other.
        dtype: of the parameters: float32, bfloat16, float16 or float64, by name or as NumPy's, PyTorch's or JAX's.

    What PyTorch's layer does not have:

        kv_heads: Hkv, of which Hq is a multiple; absent: Hq.
        head_size: D; absent: E / Hq.
        output_size: numbers in a token of the output; absent: E.
        output_bias: whether the output projection has a bias; absent: as `bias`.
        separate_projections: q, k and v have a parameter each, as they have where kdim or vdim differ from E.
        output_dropout: rate at which numbers of the output are dropped, in training.
        context_length: a stored causal mask for so many tokens, cut to the sequence: every call is causal, a longer
            one an error.
        rotary: a rapt.RotaryOptions, or True for its defaults.
        slice: (index, count): this part of the heads, as for model parallelism.
        seed: of the parameters, and of dropout. The same seed gives the same layer; give each layer of a model its own.
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
            raise ValueError(f"MultiheadAttention: device is {device}; rapt computes on the CPU: leave it out")
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
        self._seeds = itertools.count((seed << 32) % (1 << 64))  # of dropout: each call in training takes the next
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
        """What `load` found in the file: which tensor went where. None for a layer that was not loaded."""
        return self._found

    @property
    def embed_dim(self):
        """E: numbers in a token of the query."""
        return self._config.embed_size

    @property
    def num_heads(self):
        """Hq."""
        return self._config.heads

    @property
    def head_dim(self):
        """D: numbers of a token in a head."""
        return self._config.head_size

    @property
    def kdim(self):
        """Numbers in a token of the key."""
        return self._config.key_size

    @property
    def vdim(self):
        """Numbers in a token of the value."""
        return self._config.value_size

    @property
    def dropout(self):
        """The rate at which weights are dropped, in training."""
        return self._config.dropout

    @property
    def batch_first(self):
        """Whether tensors are (B, L, E); else (L, B, E)."""
        return self._config.batch_first

    @property
    def add_zero_attn(self):
        """Whether there is one more key and value of zeros."""
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
        or (B, Hq, Lq, Lk) with average_attn_weights=False. Without a batch, query is (Lq, E) and B is left out of all.
        The output has the query's dtype; weights are float32 (float64 for a layer of float64).

        Args:
            query, key, value: tokens. Without value it is the key, without key it is the query.
            key_padding_mask: (B, Lk), or (Lk) without a batch. Bool: True hides the key. Float: added to the scores.
            need_weights: the weights are wanted. They cost time and memory; leave them out where you can.
            attn_mask: (Lq, Lk), or (B * Hq, Lq, Lk). Bool: True hides the key from the query. Float: added.
            average_attn_weights: the mean of the weights over heads, or those of every head.
            is_causal: query i sees keys 0 to i. Beside attn_mask it is no more than a hint, and the mask rules; PyTorch
                wants the mask besides, rapt does not.

        What PyTorch's layer does not have, as in rapt.attention:

            mask: a rapt.Mask that says what True means, or a list of them.
            scale, softcap, causal, window, alignment, key_lengths, packed, alibi_slopes, sinks, engine, threads.
            dropout: a rapt.Dropout with rate 0, for its seed and starts: the rate is the layer's. Absent: every call in
                training takes another seed.
            position: of the first token, for rotary embedding.
            cache: a rapt.KvCache: the tokens of this call come after those that it holds. Only for self-attention.
            sequences: which sequence of the cache each batch row belongs to. Absent: row b to sequence b.
            keep: True, or a rapt.LayerActivations: what `backward` needs is kept.
            out: where to write the output.
            return_lse, captures: more is wanted, and the result is (out, weights, lse, captures).
        """
        if is_causal and attn_mask is None:
            causal = True
            alignment = "top_left" if alignment is None and cache is None else alignment
        if dropout is None and self._training and self._config.dropout + self._config.output_dropout > 0.0:
            dropout = (0.0, next(self._seeds))
        options = (mask, scale, softcap, causal, window, alignment, key_lengths, packed, None, None, None, alibi_slopes,
                   sinks, dropout, engine, threads)
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
        """The gradients of a call of forward that kept what it takes.

            out, weights = layer(x, keep=True)
            gradients = layer.backward(dout)
            gradients.dquery, gradients.parameters["in_proj_weight"]

        The arrays of that call must not have changed since. Gradients are float32, or float64 for a layer of float64.

        Args:
            dout: what arrives at the output.
            dweights: what arrives at the weights. Absent: zeros.
            kept: the call. Absent: the last one that kept.
            inputs: dquery, dkey and dvalue are wanted.
            masks: dmasks is wanted of these masks, by their place: those of `mask`, then attn_mask, then
                key_padding_mask.
            parameters: True: those of the parameters are wanted. What `zero_gradients` or an earlier call gave: they
                are added to it. False: not wanted.
        """
        kept = kept or self._kept
        if kept is None:
            raise ValueError("MultiheadAttention.backward: no call was kept; call forward with keep=True first")
        if isinstance(parameters, bool):
            parameters = self.zero_gradients() if parameters else None
        if parameters is not None and not isinstance(parameters, ParameterGradients):
            raise ValueError(f"MultiheadAttention.backward: parameters is of type {type(parameters).__name__}; "
                             "give what zero_gradients gave")
        memory = None if parameters is None else parameters._memory
        dquery, dkey, dvalue, dsinks, dmasks = self._layer.backward(kept, dout, dweights, inputs, masks, memory)
        return LayerGradients(dquery, dkey, dvalue, parameters, dsinks, dmasks)

    def zero_gradients(self):
        """Zeros for the gradients of all parameters: a dict that `backward` adds to."""
        return ParameterGradients(self._layer.zero_gradients(), self._layer)

    # ---- Training and evaluation

    @property
    def training(self):
        """Whether dropout is on. A new layer is in training, as PyTorch's is."""
        return self._training

    @training.setter
    def training(self, mode):
        self._training = bool(mode)

    def train(self, mode=True):
        """Turns dropout on, or off."""
        self.training = mode
        return self

    def eval(self):
        """Turns dropout off."""
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
        """A layer out of a file, or of a model's state dict, whatever its parameters are called there.

            layer = rapt.MultiheadAttention.load("model.safetensors", prefix="encoder.layers.0", heads=8)
            for tensor, role in layer.found.tensors: print(tensor, "is the", role)

        It knows PyTorch's in_proj_weight, W_q, W_query, q_linear, wq, q_proj, BERT's query, to_q, a packed qkv, and
        GPT-2's transposed c_attn. `layer.found` says what was found.

        Args:
            source: a .safetensors or .npz file, or a dict of names and arrays.
            prefix: where the layer's names begin. Empty, or a part of the whole: the only layer there.
            heads: Hq, which no shape tells; 0: what `save` noted in the file.
            kv_heads: 0: as many as the shapes have.
            dtype: of the parameters. Absent: the file's.
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

        The file is whole or absent: it is written beside `path` under another name, and renamed.
        """
        options = (family, prefix, packed, dtype)
        self._layer.save(os.fspath(path), options)

    def slice(self, index, count):
        """Part `index` of `count` equal parts of the heads, with its own copy of the parameters.

        The outputs of all parts add up to this layer's; only part 0 adds the output bias.
        """
        return self._made_of(self._layer.slice(index, count)).train(self._training)

    def __reduce__(self):
        return _rebuild, (self._config, self.state_dict(), self._training)


def _rebuild(config, state, training):
    """A layer from what a pickle, or a copy, holds of it."""
    layer = MultiheadAttention._made_of(_rapt.make_layer(config, 0))
    layer.load_state_dict(state)
    return layer.train(training)


def find_attention_layers(source):
    """Every attention layer in a file, or in a model's state dict, whose tensors are all there and fit together.

    source: a .safetensors or .npz file, or a dict of names and arrays.
    """
    return [FoundLayer(*found) for found in _rapt.find_attention_layers(_source(source))]
