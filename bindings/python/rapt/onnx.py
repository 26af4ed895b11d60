"""ONNX models whose attention runs on rapt.

    import rapt.onnx
    out, = rapt.onnx.prepare(model).run([x])

It implements ONNX's backend interface (onnx.backend.base): this module has the operators Attention (opsets 23, 24 and
25) and RotaryEmbedding (23); all other operators are those of ONNX's reference implementation. The two classes can also
be used in your own evaluator: onnx.reference.ReferenceEvaluator(model, new_ops=[rapt.onnx.Attention]).
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

# These names appear as part of this module when printed or pickled.
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
