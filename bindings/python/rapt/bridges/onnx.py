"""The operators and the backend of rapt.onnx."""

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from .. import _heads
from .._attention import attention
from .._options import Capture, Mask, Window

# The stage that qk_matmul_output shows, indexed by qk_matmul_output_mode.
_STAGES = ("raw", "capped", "masked", "weights")
_FLOAT_TYPES = ("FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE")


class Attention(OpRun):
    """The operator Attention of opsets 23, 24 and 25, on rapt.attention.

    Scores and weights are kept in float32 (float64 for float64 inputs, or if softmax_precision requests it) and only
    results are rounded: softmax_precision never lowers the precision.
    """

    op_domain = ""

    def _run(
        self,
        Q,
        K,
        V,
        attn_mask=None,
        past_key=None,
        past_value=None,
        nonpad_kv_seqlen=None,
        *,
        is_causal=0,
        kv_num_heads=None,
        left_window_size=-1,
        q_num_heads=None,
        qk_matmul_output_mode=0,
        right_window_size=-1,
        scale=None,
        softcap=0.0,
        softmax_precision=None,
    ):
        opset = self.run_params["opsets"][self.domain]
        query, key, value = _as_heads(opset, (Q, K, V), (q_num_heads, kv_num_heads, kv_num_heads))
        past = 0
        if past_key is not None or past_value is not None:
            _require(past_key is not None and past_value is not None, "past_key and past_value must be given together")
            _require(nonpad_kv_seqlen is None, "nonpad_kv_seqlen and past_key cannot be combined")
            past = past_key.shape[2]
            key, value = np.concatenate((past_key, key), axis=2), np.concatenate((past_value, value), axis=2)
        present = key, value

        _require(qk_matmul_output_mode in range(4),
                 f"qk_matmul_output_mode is {qk_matmul_output_mode}; it may be 0, 1, 2 or 3")
        wanted = len(self.output) > 3 and self.output[3] != ""
        captures = [Capture(_STAGES[qk_matmul_output_mode])] if wanted else None

        masks = _masks(opset, attn_mask, query.dtype, key.shape[2])
        offset, lengths = past, None  # position of query 0 among the keys
        if nonpad_kv_seqlen is not None:
            lengths = nonpad_kv_seqlen.reshape(-1)
            offset = (lengths - query.shape[2]).tolist()
            if wanted and qk_matmul_output_mode < 2:
                # Keys past a length are never read, but the outputs of modes 0 and 1 contain their scores.
                masks.append(Mask.keep((np.arange(key.shape[2]) < lengths[:, None])[:, None, None, :]))
                lengths = None
        window = _window(left_window_size, right_window_size)
        options = {
            "mask": masks or None,
            "scale": scale,
            "softcap": softcap,
            "causal": bool(is_causal),
            "window": window,
            "alignment": offset if is_causal or window else None,
            "key_lengths": lengths,
        }

        query, key, value = _widened(query, key, value, softmax_precision)
        result = attention(query, key, value, **options, captures=captures)
        out, scores = (result.out, result.captures[0]) if wanted else (result, np.empty(0))
        Y = out if Q.ndim == 4 else _heads.combine_heads(out)
        return (_of_type(Q.dtype, Y), *present, _of_type(Q.dtype, scores))[: len(self.output)]


def _require(condition, otherwise):
    if not condition:
        raise ValueError(f"Attention: {otherwise}")


def _as_heads(opset, arrays, heads):
    """query, key and value as (B, H, L, D), given in that shape or as (B, L, H * D). Views: nothing is copied."""
    ranks = [x.ndim for x in arrays]
    _require(ranks in ([3, 3, 3], [4, 4, 4]), f"Q, K and V have ranks {ranks}; all must have 3, or all 4")
    if ranks[0] == 4:
        given = opset >= 25 and any(x is not None for x in heads)
        _require(not given, "q_num_heads and kv_num_heads are for Q, K and V of rank 3; they have rank 4")
        return arrays
    _require(all(heads), "Q, K and V have rank 3; q_num_heads and kv_num_heads must give the number of heads")
    return [_heads.split_heads(x, count) for x, count in zip(arrays, heads)]


def _window(left, right):
    for name, size in (("left", left), ("right", right)):
        _require(size >= -1, f"{name}_window_size is {size}; it must be -1, for no limit, or non-negative")
    return None if left == right == -1 else Window(None if left == -1 else left, None if right == -1 else right)


def _masks(opset, given, dtype, keys):
    """attn_mask as a list of rapt.Mask. Since opset 24, a mask with fewer keys masks the remaining ones."""
    if given is None:
        return []
    _require(1 <= given.ndim <= 4, f"attn_mask has rank {given.ndim}; it must broadcast to (B, Hq, Lq, Lk)")
    mask = given.reshape((1,) * (4 - given.ndim) + given.shape)
    if given.dtype != np.bool_ and not _is_float(given.dtype):
        mask = mask.astype(dtype)  # the specification allows integers, which are added
    keep = mask.dtype == np.bool_
    missing = keys - mask.shape[3]
    if missing > 0 and opset >= 24:
        hidden = np.full((*mask.shape[:3], missing), False if keep else -np.inf, mask.dtype)
        mask = np.concatenate((mask, hidden), axis=3)
    return [Mask.keep(mask) if keep else Mask.add(mask)]


def _of_type(dtype, array):
    return array.astype(dtype, copy=False)


def _is_float(dtype):
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _widened(query, key, value, softmax_precision):
    """query, key and value in types that rapt accepts in one call."""
    in_double = False
    if softmax_precision is not None:
        numbers = {name: onnx.TensorProto.DataType.Value(name) for name in _FLOAT_TYPES}
        known = ", ".join(f"{name} ({number})" for name, number in numbers.items())
        _require(softmax_precision in numbers.values(),
                 f"softmax_precision is {softmax_precision}; it may be one of {known}")
        in_double = softmax_precision == numbers["DOUBLE"]
    arrays = query, key, value
    if in_double or np.float64 in [x.dtype for x in arrays]:  # which cannot be mixed with other types
        return [_of_type(np.float64, x) for x in arrays]
    if key.dtype != value.dtype:
        return query, _of_type(np.float32, key), _of_type(np.float32, value)
    return arrays


class RotaryEmbedding(OpRun):
    """The operator RotaryEmbedding of opset 23.

    It takes tables of cos and sin, whereas rapt's layer computes its angles; the arithmetic is the same: two products
    and a sum in float32, and one rounding.
    """

    op_domain = ""

    def _run(
        self, X, cos_cache, sin_cache, position_ids=None, *, interleaved=0, num_heads=None, rotary_embedding_dim=0
    ):
        if X.ndim == 3:
            if not num_heads:
                raise ValueError("RotaryEmbedding: X has rank 3; num_heads must give the number of heads")
            x = _heads.split_heads(X, num_heads)
        elif X.ndim == 4:
            x = X
        else:
            raise ValueError(f"RotaryEmbedding: X has rank {X.ndim}; it must have 3 or 4")
        size = rotary_embedding_dim or x.shape[3]
        if size % 2 or not 0 < size <= x.shape[3]:
            raise ValueError(f"RotaryEmbedding: the rotated size is {size}, the head size {x.shape[3]}; the "
                             "rotated size must be even and at most the head size")
        cos, sin = (_of_tokens(*each, position_ids, x, size) for each in (("cos", cos_cache), ("sin", sin_cache)))
        if interleaved:
            first, second = slice(0, size, 2), slice(1, size, 2)
        else:
            first, second = slice(size // 2), slice(size // 2, size)
        x1, x2 = x[..., first].astype(np.float32, copy=False), x[..., second].astype(np.float32, copy=False)
        Y = np.empty_like(X, order="C")
        y = Y if X.ndim == 4 else _heads.split_heads(Y, num_heads)
        y[..., first] = x1 * cos - x2 * sin
        y[..., second] = x2 * cos + x1 * sin
        y[..., size:] = x[..., size:]
        return (Y,)


def _of_tokens(name, cache, position_ids, x, size):
    """The rows of a table for the tokens of x, (B, 1, L, size / 2) in float32."""
    batch, _, length, _ = x.shape
    if position_ids is not None and position_ids.size:
        for position in (position_ids.min(), position_ids.max()):
            if not 0 <= position < cache.shape[0]:
                raise ValueError(f"RotaryEmbedding: position_ids holds {position}; {name}_cache has {cache.shape[0]} "
                                 f"positions, so it must be from 0 to {cache.shape[0] - 1}")
    rows = cache if position_ids is None else cache[position_ids]
    if rows.shape != (batch, length, size // 2):
        wanted = (batch, length, size // 2) if position_ids is None else ("positions", size // 2)
        raise ValueError(f"RotaryEmbedding: {name}_cache has shape {cache.shape}; it must be "
                         f"({', '.join(map(str, wanted))}) for {size} rotated numbers of a head")
    return rows[:, None].astype(np.float32, copy=False)


class _Evaluator(ReferenceEvaluator):
    """ONNX's evaluator with the operators above, also in the model's functions and subgraphs."""

    def __init__(self, proto, *args, new_ops=None, **kwargs):
        super().__init__(proto, *args, new_ops=[Attention, RotaryEmbedding, *(new_ops or ())], **kwargs)


class RaptBackendRep(BackendRep):
    """A model that is ready to run, created by rapt.onnx.prepare."""

    def __init__(self, evaluator):
        self._evaluator = evaluator
        # Initializers may also be listed as inputs; they are optional.
        given = evaluator.rt_inits_
        self._inputs = [name for name in evaluator.input_names if name and name not in given]

    def run(self, inputs, **kwargs):
        """The outputs for `inputs`: a list of arrays in the model's order, a dict by name, or one array."""
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            if len(inputs) != len(self._inputs):
                raise ValueError(f"rapt.onnx: {len(inputs)} inputs were given; the model has {len(self._inputs)}: "
                                 f"{', '.join(self._inputs)}")
            inputs = dict(zip(self._inputs, inputs))
        return tuple(self._evaluator.run(None, inputs))


class RaptBackend(Backend):
    """ONNX's backend interface: prepare, run_model, run_node, supports_device, is_compatible."""

    @classmethod
    def supports_device(cls, device):
        """Whether it is the CPU."""
        return Device(device).type == DeviceType.CPU

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Whether the model's attention can run here: on the CPU, with an opset that has the operators."""
        opsets = [x.version for x in model.opset_import if x.domain in ("", "ai.onnx")]
        return cls.supports_device(device) and max(opsets, default=0) >= 23

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Returns a RaptBackendRep; its `run` takes the inputs. The model is checked first."""
        cls._require_device(device)
        super().prepare(model, device, **kwargs)
        return RaptBackendRep(_Evaluator(model))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """Runs a model once: prepare(model).run(inputs)."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """The outputs of one node. opset_version: the node's opset; default: the newest."""
        cls._require_device(device)
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node], "node",
            [onnx.helper.make_empty_tensor_value_info(name) for name in names],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        return RaptBackendRep(_Evaluator(graph, opsets={node.domain: opset})).run(inputs)

    @classmethod
    def _require_device(cls, device):
        if not cls.supports_device(device):
            raise ValueError(f"rapt.onnx: device {device!r} was requested; rapt runs on 'CPU'")
