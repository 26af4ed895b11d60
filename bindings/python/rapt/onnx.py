"""ONNX models whose attention runs on rapt.

    import rapt.onnx
    out, = rapt.onnx.prepare(model).run([x])

It is a backend in ONNX's sense (onnx.backend.base): the operators Attention (opsets 23, 24 and 25) and RotaryEmbedding
(23) are the classes of this module, every other operator is that of ONNX's own reference. The two classes go into an
evaluator of one's own as well: onnx.reference.ReferenceEvaluator(model, new_ops=[rapt.onnx.Attention]).
"""

from .bridges.onnx import Attention, RaptBackend, RaptBackendRep, RotaryEmbedding

__all__ = [
    "Attention",
    "RaptBackend",
    "RaptBackendRep",
    "RotaryEmbedding",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

# They are printed and pickled as part of this module.
for _class in (Attention, RaptBackend, RaptBackendRep, RotaryEmbedding):
    _class.__module__ = __name__
del _class

is_compatible = RaptBackend.is_compatible
prepare = RaptBackend.prepare
run_model = RaptBackend.run_model
run_node = RaptBackend.run_node
supports_device = RaptBackend.supports_device

for _function in (is_compatible, prepare, run_model, run_node, supports_device):
    _function.__func__.__module__ = __name__
del _function
