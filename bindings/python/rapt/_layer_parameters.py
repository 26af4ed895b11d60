"""The parameters of a layer: by PyTorch's names, as attributes, and as state dicts."""

from ._layer_options import IncompatibleKeys, StateDictError


def detached(value):
    """A PyTorch parameter without its autograd history: only its values are needed."""
    return value.detach() if hasattr(value, "detach") else value


def _quoted(names):
    return ", ".join(f'"{name}"' for name in names)


class _OutputProjection:
    """`layer.out_proj`, as in PyTorch: weight (O, Hq * D) and bias (O)."""

    def __init__(self, layer):
        self._layer = layer

    @property
    def weight(self):
        return self._layer._parameter("out_proj.weight")

    @property
    def bias(self):
        return self._layer._parameter("out_proj.bias")


class LayerParameters:
    """The part of torch.nn.Module's interface to parameters that rapt.MultiheadAttention has."""

    def named_parameters(self):
        """Names and values, in PyTorch's order. The values are read-only views of the layer's memory."""
        yield from self._layer.parameters()

    def parameters(self):
        """The values of `named_parameters`."""
        for _, value in self.named_parameters():
            yield value

    def set_parameter(self, name, value):
        """Copies values into a parameter, rounded to its type."""
        self._layer.set_parameter(name, detached(value))

    def _parameter(self, name):
        return next((value for found, value in self.named_parameters() if found == name), None)

    @property
    def in_proj_weight(self):
        """((Hq + 2 Hkv) D, E); None if q, k and v have separate weights."""
        return self._parameter("in_proj_weight")

    @property
    def q_proj_weight(self):
        """(Hq D, E) if q, k and v have separate weights, else None."""
        return self._parameter("q_proj_weight")

    @property
    def k_proj_weight(self):
        """(Hkv D, kdim) if q, k and v have separate weights, else None."""
        return self._parameter("k_proj_weight")

    @property
    def v_proj_weight(self):
        """(Hkv D, vdim) if q, k and v have separate weights, else None."""
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
        """Copies of all parameters, under PyTorch's names or those of another family.

        Args:
            prefix: the prefix of every name.
            family: the naming scheme: "torch", "W_q", "W_query", "q_linear", "wq", "q_proj", "query", "to_q", "qkv" or
                "c_attn".
            packed: q, k and v in one tensor or in separate tensors. Default: as usual for the family; for torch, as in
                the layer.
            dtype: type of the copies. Default: the layer's.
            library: the library of the arrays: "numpy", "torch" or "jax". Default: NumPy.
        """
        options = (family, prefix, packed, dtype)
        return dict(self._layer.state_dict(options, library))

    def load_state_dict(self, state_dict, strict=True):
        """Copies values into the parameters, under PyTorch's names, from NumPy arrays, PyTorch or JAX tensors.

        If strict, the names must be exactly those of this layer; otherwise names that do not match are ignored and
        returned. For names of other families, and for a layer inside a model, see `load`.

        Raises:
            StateDictError: if names or shapes do not match, with PyTorch's message. It is a ValueError and, as in
                PyTorch, a RuntimeError. No parameter has been changed.
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
