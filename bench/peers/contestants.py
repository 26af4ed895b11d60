"""The contestants. Each has `prepare(case, inputs, threads)`, which does everything that a program would do once
(loading, layout, sessions) and returns a function that computes the result. If there are several ways, it returns a
dictionary of functions: the caller times them and keeps the fastest. `takes` is the class of its cases.
`array(answer)` is the result as one f32 array."""

import ctypes
import math

import numpy
import onnx
import onnxruntime
import torch

from cases import Case, Inputs


def joined(arrays):
    return numpy.concatenate([numpy.asarray(each, numpy.float32).ravel() for each in arrays])


class _Call(ctypes.Structure):
    """RaptPeerCall of peer_api.cc: the same fields in the same order."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "mask", "mean_weights")]
        + [(name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "queries", "keys", "dim")]
        + [(name, ctypes.c_int64) for name in ("window_left", "window_right")]
        + [(name, ctypes.c_int32) for name in ("type", "causal", "mask_is_bool", "mask_is_full", "threads")]
    )


class Rapt:
    name = "rapt"
    takes = Case

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.rapt_peer_attention.restype = ctypes.c_char_p
        self._library.rapt_peer_instruction_set.restype = ctypes.c_char_p
        self.instruction_set = self._library.rapt_peer_instruction_set().decode()

    def prepare(self, case, inputs, threads):
        out = numpy.empty_like(inputs.q)
        weights = numpy.empty((case.batch, case.length, case.keys), numpy.float32) if case.weights else None
        answer = (out,) if weights is None else (out, weights)
        left, right = case.window or (-1, -1)
        call = _Call(
            inputs.q.ctypes.data, inputs.k.ctypes.data, inputs.v.ctypes.data, out.ctypes.data,
            None if inputs.mask is None else inputs.mask.ctypes.data,
            None if weights is None else weights.ctypes.data,
            case.batch, case.heads, case.kv_heads, case.length, case.keys, case.dim, left, right,
            ("f32", "bf16", "f16").index(case.dtype), case.causal, case.mask == "bool", 1, threads,
        )
        attention, reference = self._library.rapt_peer_attention, ctypes.byref(call)

        def run():
            message = attention(reference)
            if message is not None:
                raise RuntimeError(message.decode())
            return answer

        run.keep = (call, inputs)  # the call points to their memory
        return run

    @staticmethod
    def array(answer):
        return joined(answer)


class PyTorch:
    name = "PyTorch"
    takes = Case
    version = torch.__version__.split("+")[0]

    def prepare(self, case, inputs, threads):
        q, k, v = (self._tensor(each) for each in (inputs.q, inputs.k, inputs.v))
        if case.weights:
            return self._call(threads, lambda: self._with_weights(case, q, k, v))
        if case.kv_heads != case.heads:
            group = case.heads // case.kv_heads
            k_of_each, v_of_each = (each.repeat_interleave(group, 1) for each in (k, v))
            return {
                "enable_gqa": self._call(threads, lambda: self._attention(q, k, v, enable_gqa=True)),
                "heads repeated before the call":
                    self._call(threads, lambda: self._attention(q, k_of_each, v_of_each)),
            }
        mask = None if inputs.mask is None else torch.from_numpy(inputs.mask)
        if case.window:
            mask = torch.from_numpy(Inputs.window_mask(case))
        return self._call(threads, lambda: self._attention(q, k, v, attn_mask=mask, is_causal=case.causal))

    @staticmethod
    def array(answer):
        return joined(each.float().numpy() for each in answer)

    @staticmethod
    def _tensor(array):
        if array.dtype == numpy.float32 or array.dtype == numpy.float16:
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(numpy.uint16)).view(torch.bfloat16)  # NumPy itself has no bf16

    @staticmethod
    def _attention(q, k, v, **options):
        return (torch.nn.functional.scaled_dot_product_attention(q, k, v, **options),)

    @staticmethod
    def _with_weights(case, q, k, v):
        """What torch.nn.functional.multi_head_attention_forward does between its projections if need_weights and
        average_attn_weights are true: the same calls on the same shapes."""
        q, k, v = (each.view(case.batch * case.heads, -1, case.dim) for each in (q, k, v))
        scaled = q * math.sqrt(1.0 / float(case.dim))
        weights = torch.bmm(scaled, k.transpose(-2, -1))
        weights = torch.nn.functional.softmax(weights, dim=-1)
        out = torch.bmm(weights, v)
        return out, weights.view(case.batch, case.heads, case.length, case.keys).mean(dim=1)

    @staticmethod
    def _call(threads, compute, mode=torch.inference_mode):
        def run():
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            with mode():
                return compute()

        return run


class PyTorchFolded(PyTorch):
    """Treats the query heads of a group as several queries of one head, so that each key is read once. A program can do
    this by hand if nothing is masked."""

    name = "PyTorch, folded"

    def prepare(self, case, inputs, threads):
        q, k, v = (self._tensor(each) for each in (inputs.q, inputs.k, inputs.v))
        folded = q.view(case.batch, case.kv_heads, -1, case.dim)
        return self._call(threads, lambda: self._attention(folded, k, v))


class OnnxRuntime:
    """ONNX's Attention, or ONNX Runtime's MultiHeadAttention if that is faster. Inputs and output are bound to
    existing memory."""

    name = "ONNX Runtime"
    takes = Case
    version = onnxruntime.__version__

    def prepare(self, case, inputs, threads):
        ways = {"Attention": self._attention(case, inputs, threads)}
        if case.mask != "bool" and not case.window:  # MultiHeadAttention takes an additive mask only
            ways["MultiHeadAttention"] = self._multi_head_attention(case, inputs, threads)
        return ways

    def _attention(self, case, inputs, threads):
        feed = {"q": inputs.q, "k": inputs.k, "v": inputs.v}
        mask = Inputs.window_mask(case) if case.window else inputs.mask
        if mask is not None:
            feed["mask"] = mask
        node = onnx.helper.make_node("Attention", list(feed), ["out"], is_causal=int(case.causal))
        return self._session(node, feed, inputs.q.shape, threads, lambda out: out)

    def _multi_head_attention(self, case, inputs, threads):
        def tokens(x):  # (B, H, L, D) -> (B, L, H·D)
            return numpy.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(case.batch, case.length, -1)

        def heads(x):  # (B, L, H·D) -> (B, H, L, D)
            return x.reshape(case.batch, case.length, case.heads, case.dim).transpose(0, 2, 1, 3)

        feed = {"q": tokens(inputs.q), "k": tokens(inputs.k), "v": tokens(inputs.v)}
        names = list(feed)
        if inputs.mask is not None:
            feed["mask"] = inputs.mask
            names += ["", "", "mask"]
        node = onnx.helper.make_node("MultiHeadAttention", names, ["out"], domain="com.microsoft",
                                     num_heads=case.heads, unidirectional=int(case.causal))
        return self._session(node, feed, feed["q"].shape, threads, heads)

    @staticmethod
    def array(answer):
        return joined((answer,))

    @staticmethod
    def _session(node, feed, shape, threads, view):
        helper, kinds = onnx.helper, onnx.TensorProto
        graph = helper.make_graph(
            [node], "attention",
            [helper.make_tensor_value_info(name, kinds.BOOL if each.dtype == bool else kinds.FLOAT, each.shape)
             for name, each in feed.items()],
            [helper.make_tensor_value_info("out", kinds.FLOAT, shape)])
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        out = numpy.empty(shape, numpy.float32)
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(each) for name, each in feed.items()}
        binding = session.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("out", "cpu", 0, numpy.float32, shape, out.ctypes.data)

        def run():
            session.run_with_iobinding(binding)
            return view(out)

        run.keep = (values, feed)
        return run
