"""Who takes part. Each gives `prepare(case, inputs, threads)`: a call that computes the answer and returns it, with all
that a program would do once (loading, layout, sessions) already done."""

import ctypes

import numpy
import onnx
import onnxruntime
import torch

from cases import Inputs


class _Call(ctypes.Structure):
    """RaptPeerCall of peer_api.cc: the same fields in the same order."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "mask")]
        + [(name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "queries", "keys", "dim")]
        + [(name, ctypes.c_int64) for name in ("window_left", "window_right")]
        + [(name, ctypes.c_int32) for name in ("causal", "mask_is_bool", "mask_is_full", "threads")]
    )


class Rapt:
    name = "rapt"

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.rapt_peer_attention.restype = ctypes.c_char_p
        self._library.rapt_peer_instruction_set.restype = ctypes.c_char_p
        self.instruction_set = self._library.rapt_peer_instruction_set().decode()

    def prepare(self, case, inputs, threads):
        out = numpy.empty_like(inputs.q)
        left, right = case.window or (-1, -1)
        call = _Call(
            inputs.q.ctypes.data, inputs.k.ctypes.data, inputs.v.ctypes.data, out.ctypes.data,
            None if inputs.mask is None else inputs.mask.ctypes.data,
            case.batch, case.heads, case.heads, case.length, case.length, case.dim,
            left, right, case.causal, case.mask == "bool", 1, threads,
        )
        attention, reference = self._library.rapt_peer_attention, ctypes.byref(call)

        def run():
            message = attention(reference)
            if message is not None:
                raise RuntimeError(message.decode())
            return out

        run.keep = (call, inputs)  # whose memory the call points to
        return run


class PyTorch:
    name = "PyTorch"
    version = torch.__version__.split("+")[0]

    def prepare(self, case, inputs, threads):
        q, k, v = (torch.from_numpy(each) for each in (inputs.q, inputs.k, inputs.v))
        mask = None if inputs.mask is None else torch.from_numpy(inputs.mask)
        if case.window:
            mask = torch.from_numpy(Inputs.window_mask(case))

        def run():
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            with torch.inference_mode():
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=mask, is_causal=case.causal).numpy()

        return run


class OnnxRuntime:
    """The standard's Attention, or its own MultiHeadAttention where that is faster; inputs and output stay in place."""

    name = "ONNX Runtime"
    version = onnxruntime.__version__

    def prepare(self, case, inputs, threads):
        """Both ways, as a dictionary: the caller times them and keeps the faster."""
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

        def heads(x):  # and back
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
