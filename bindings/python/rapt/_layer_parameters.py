"""The parameters of a layer: by PyTorch's names, as attributes, and as state dicts."""

from ._layer_options import IncompatibleKeys, StateDictError


def detached(value):
    """A parameter of PyTorch's without its history: only its numbers are wanted."""
    return value.detach() if hasattr(value, "detach") else value


def _quoted(names):
    return ", ".join(f'"{name}"' for name in names)


class _OutputProjection:
    """`layer.out_proj`, as PyTorch has it: weight (O, Hq * D) and bias (O)."""

    def __init__(self, layer):
        self._layer = layer

    @property
    def weight(self):
        return self._layer._parameter("out_proj.weight")

    @property
    def bias(self):
        return self._layer._parameter("out_proj.bias")


class LayerParameters:
    """What a rapt.MultiheadAttention has of torch.nn.Module's ways to its parameters."""

    def named_parameters(self):
        """Names and values, in PyTorch's order. The values are the layer's own memory, and read-only."""
        yield from self._layer.parameters()

    def parameters(self):
        """The values of `named_parameters`."""
        for _, value in self.named_parameters():
            yield value

    def set_parameter(self, name, value):
        """Copies numbers into a parameter, rounded to its type."""
        self._layer.set_parameter(name, detached(value))

    def _parameter(self, name):
        return next((value for found, value in self.named_parameters() if found == name), None)

    @property
    def in_proj_weight(self):
        """((Hq + 2 Hkv) D, E); None where q, k and v have one each."""
        return self._parameter("in_proj_weight")

    @property
    def q_proj_weight(self):
        """(Hq D, E), where q, k and v have a weight each; else None."""
        return self._parameter("q_proj_weight")

    @property
    def k_proj_weight(self):
        """(Hkv D, kdim), where q, k and v have a weight each; else None."""
        return self._parameter("k_proj_weight")

    @property
    def v_proj_weight(self):
        """(Hkv D, vdim), where q, k and v have a weight each; else None."""
        return self._parameter("v_proj_weight")

    @property
    def in_proj_bias(self):
        """((Hq + 2 Hkv) D), or None."""
        return self._parameter("in_proj_bias")

    @property
    def bias_k(self):
        """(1, 1, Hkv D), or None."""
        return self._parameter("bias_k")

    @property
    def bias_v(self):
        """(1, 1, Hkv D), or None."""
        return self._parameter("bias_v")

    @property
    def out_proj(self):
        """The output projection: its `weight` and `bias`."""
        return _OutputProjection(self)

    def state_dict(
        self,
        *,
        prefix="",
        family="torch",
        packed=None,
        dtype=None,
        library=None,
    ):
        """Copies of all parameters, by PyTorch's names, or those of another family.

        Args:
            prefix: what each name begins with.
            family: whose names: "torch", "W_q", "W_query", "q_linear", "wq", "q_proj", "query", "to_q", "qkv" or
                "c_attn".
            packed: q, k and v in one tensor, or in one each. Absent: as the family has it, and for torch as the layer.
            dtype: of the copies. Absent: the layer's.
            library: "numpy", "torch" or "jax": whose arrays. Absent: NumPy's.
        """
        options = (family, prefix, packed, dtype)
        return dict(self._layer.state_dict(options, library))

    def load_state_dict(self, state_dict, strict=True):
        """Copies numbers into the parameters, by PyTorch's names, from NumPy arrays, PyTorch or JAX tensors.

        Where strict, the names must be exactly those of this layer; else what does not match is left alone and
        returned. For names of other families, and for a layer inside a model, see `load`.

        Raises:
            StateDictError: with PyTorch's words, where names or shapes do not fit. It is a ValueError and, as in
                PyTorch, a RuntimeError. No parameter has changed then.
        """
        own = dict(self.named_parameters())
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        errors = []
        if strict and missing:
            errors.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if strict and unexpected:
            errors.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        for name in own:
            if name in state_dict and tuple(state_dict[name].shape) != tuple(own[name].shape):
                errors.append(
                    f"size mismatch for {name}: copying a param with shape {tuple(state_dict[name].shape)} from "
                    f"checkpoint, the shape in current model is {tuple(own[name].shape)}."
                )
        if errors:
            raise StateDictError("Error(s) in loading state_dict for MultiheadAttention:\n\t" + "\n\t".join(errors))
        for name in own:
            if name in state_dict:
                self.set_parameter(name, state_dict[name])
        return IncompatibleKeys(missing, unexpected)
