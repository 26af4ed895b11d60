"""The contestants for a whole layer, with the interface of contestants.py."""

import ctypes
import math

import torch

import cases
import contestants


class _Layer(ctypes.Structure):
    """RaptPeerLayer of peer_api.cc: the same fields in the same order."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("in_proj_weight", "out_proj_weight", "out_proj_bias")]
        + [(name, ctypes.c_int64) for name in ("embed", "heads")] + [("dropout", ctypes.c_double)]
    )


class _LayerCall(ctypes.Structure):
    """RaptPeerLayerCall of peer_api.cc."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("x", "out", "mean_weights")]
        + [(name, ctypes.c_int64) for name in ("batch", "length")]
        + [(name, ctypes.c_int32) for name in ("causal", "threads")]
    )


class RaptLayer:
    name = "rapt"
    takes = cases.LayerCase

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.rapt_peer_layer_new.restype = ctypes.c_char_p
        self._library.rapt_peer_layer_forward.restype = ctypes.c_char_p
        self._library.rapt_peer_layer_delete.argtypes = (ctypes.c_void_p,)

    def prepare(self, case, inputs, threads):
        out = torch.empty_like(inputs.x)
        weights = torch.empty(case.batch, case.length, case.length) if case.weights else None
        answer = (out,) if weights is None else (out, weights)
        handle = self.new(case, inputs.module)
        call = _LayerCall(inputs.x.data_ptr(), out.data_ptr(), None if weights is None else weights.data_ptr(),
                          case.batch, case.length, case.causal, threads)
        forward, reference = self._library.rapt_peer_layer_forward, ctypes.byref(call)

        def run():
            self.require_good(forward(handle, reference))
            return answer

        run.keep = (call, inputs, Deleted(self._library, handle))  # the call points to their memory
        return run

    def new(self, case, module, dropout=0.0):
        out = module.out_proj
        layer = _Layer(module.in_proj_weight.data_ptr(), out.weight.data_ptr(), out.bias.data_ptr(), case.embed,
                       case.heads, dropout)
        handle = ctypes.c_void_p()
        self.require_good(self._library.rapt_peer_layer_new(ctypes.byref(layer), ctypes.byref(handle)))
        return handle

    @staticmethod
    def require_good(message):
        if message is not None:
            raise RuntimeError(message.decode())

    array = staticmethod(contestants.PyTorch.array)


class Deleted:
    """Owns a layer handle and deletes the layer."""

    def __init__(self, library, handle):
        self._library, self._handle = library, handle

    def __del__(self):
        self._library.rapt_peer_layer_delete(self._handle)


class PyTorchLayer(contestants.PyTorch):
    """torch.nn.MultiheadAttention with the arguments that are fastest for it."""

    takes = cases.LayerCase

    def prepare(self, case, inputs, threads):
        hidden = torch.ones(case.length, case.length, dtype=torch.bool).triu(1)
        mask = torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)  # additive: the module converts nothing
        x, module = inputs.x, inputs.module
        if case.weights:
            return self._finish(inputs, threads, lambda: module(x, x, x, attn_mask=mask, need_weights=True))

        def without_weights(**more):
            return self._finish(inputs, threads,
                                lambda: module(x, x, x, attn_mask=mask, need_weights=False, **more)[:1])

        return {"is_causal": without_weights(is_causal=True), "attn_mask": without_weights()}

    def _finish(self, _inputs, threads, forward):
        """The function that is timed: forward only."""
        return self._call(threads, forward)


class PyTorchClass(contestants.PyTorch):
    """A layer written by hand in PyTorch, with one Linear for q, k and v, and one for the output."""

    takes = cases.LayerCase

    def prepare(self, case, inputs, threads):
        weight, out_proj = inputs.module.in_proj_weight, inputs.module.out_proj
        hidden = torch.ones(case.length, case.length, dtype=torch.bool).triu(1)

        def forward():
            qkv = torch.nn.functional.linear(inputs.x, weight).view(case.batch, case.length, 3, case.heads, case.dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (3, B, H, L, D)
            context = self._attend(case, q, k, v, hidden)
            return (out_proj(context.transpose(1, 2).reshape(inputs.x.shape)),)

        return self._finish(inputs, threads, forward)

    _finish = PyTorchLayer._finish


class PyTorchSdpaClass(PyTorchClass):
    name = "PyTorch, SDPA"

    @staticmethod
    def _attend(case, q, k, v, _hidden):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=case.dropout)


class PyTorchPlainClass(PyTorchClass):
    name = "PyTorch, plain formula"

    @staticmethod
    def _attend(_case, q, k, v, hidden):
        scores = (q @ k.transpose(-2, -1)).masked_fill(hidden, -math.inf)
        return torch.softmax(scores / k.shape[-1]**0.5, dim=-1) @ v
