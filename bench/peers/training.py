"""The contestants for gradients, with the interface of contestants.py."""

import contextlib
import ctypes

import numpy
import torch

import cases
import contestants
import layers


class _Backward(ctypes.Structure):
    """RaptPeerBackward of peer_api.cc: the same fields in the same order."""

    _fields_ = (
        [(name, ctypes.c_void_p)
         for name in ("query", "key", "value", "dout", "out", "lse", "dquery", "dkey", "dvalue")]
        + [(name, ctypes.c_int64) for name in ("batch", "heads", "length", "dim")]
        + [(name, ctypes.c_int32) for name in ("causal", "threads")]
    )


class _Step(ctypes.Structure):
    """RaptPeerStep of peer_api.cc."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("x", "dout", "out", "dx")]
        + [(name, ctypes.c_int64) for name in ("batch", "length")]
        + [(name, ctypes.c_int32) for name in ("causal", "threads")]
    )


class RaptBackward:
    name = "rapt"
    takes = cases.BackwardCase

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.rapt_peer_forward_of_backward.restype = ctypes.c_char_p
        self._library.rapt_peer_backward.restype = ctypes.c_char_p

    def prepare(self, case, inputs, threads):
        out, *gradients = (torch.empty_like(inputs.q) for _ in range(4))
        lse = torch.empty(inputs.q.shape[:3])
        given = (inputs.q, inputs.k, inputs.v, inputs.dout, out, lse, *gradients)
        call = _Backward(*(each.data_ptr() for each in given), case.batch, case.heads, case.length, case.dim,
                         case.causal, threads)
        backward, reference = self._library.rapt_peer_backward, ctypes.byref(call)
        layers.RaptLayer.require_good(self._library.rapt_peer_forward_of_backward(reference))

        def run():
            layers.RaptLayer.require_good(backward(reference))
            return gradients

        run.keep = (call, given)  # the call points to their memory
        return run

    array = staticmethod(contestants.PyTorch.array)


class PyTorchBackward(contestants.PyTorch):
    """The backward of scaled_dot_product_attention; forward has already run, and its graph is kept."""

    takes = cases.BackwardCase

    def prepare(self, case, inputs, threads):
        leaves = [each.clone().requires_grad_() for each in (inputs.q, inputs.k, inputs.v)]
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=case.causal)
        return self._call(threads, lambda: torch.autograd.grad(out, leaves, inputs.dout, retain_graph=True),
                          contextlib.nullcontext)


class RaptTraining(layers.RaptLayer):
    takes = cases.TrainingCase

    def __init__(self, library):
        super().__init__(library)
        self._library.rapt_peer_layer_train.restype = ctypes.c_char_p
        self._library.rapt_peer_layer_gradient.restype = ctypes.POINTER(ctypes.c_float)

    def prepare(self, case, inputs, threads):
        x, module = inputs.x.detach(), inputs.module
        out, dx = torch.empty_like(x), torch.empty_like(x)
        handle = self.new(case, module, case.dropout)
        call = _Step(x.data_ptr(), inputs.dout.data_ptr(), out.data_ptr(), dx.data_ptr(), case.batch, case.length,
                     case.causal, threads)
        train, reference = self._library.rapt_peer_layer_train, ctypes.byref(call)
        self.require_good(train(handle, reference))  # the first step allocates the gradients
        gradients = [self._gradient(handle, n, each) for n, each in enumerate(module.parameters())]

        def run():
            self.require_good(train(handle, reference))
            return (out, dx, *gradients)

        run.keep = (call, inputs, layers.Deleted(self._library, handle))
        return run

    def _gradient(self, handle, which, like):
        pointer = self._library.rapt_peer_layer_gradient(handle, which)
        return torch.from_numpy(numpy.ctypeslib.as_array(pointer, shape=tuple(like.shape)))


class PyTorchTraining(layers.PyTorchLayer):
    """torch.nn.MultiheadAttention in training, without weights."""

    takes = cases.TrainingCase

    def _finish(self, inputs, threads, forward):
        leaves = [inputs.x, *inputs.module.parameters()]

        def compute():
            out, = forward()
            return (out.detach(), *torch.autograd.grad(out, leaves, inputs.dout))

        return self._call(threads, compute, contextlib.nullcontext)


class PyTorchSdpaTraining(layers.PyTorchSdpaClass):
    takes = cases.TrainingCase
    _finish = PyTorchTraining._finish
