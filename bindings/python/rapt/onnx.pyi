# Types of rapt.onnx.
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend, BackendRep
from onnx.reference.op_run import OpRun

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

class Attention(OpRun):
    op_domain: str

class RotaryEmbedding(OpRun):
    op_domain: str

class RaptBackendRep(BackendRep):
    def __init__(self, evaluator: Any) -> None: ...
    def run(
        self, inputs: Sequence[NDArray[Any]] | Mapping[str, NDArray[Any]] | NDArray[Any], **kwargs: Any
    ) -> tuple[Any, ...]: ...

class RaptBackend(Backend):
    @classmethod
    def supports_device(cls, device: str) -> bool: ...
    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool: ...
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> RaptBackendRep: ...
    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]: ...
    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]: ...

def is_compatible(model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool: ...
def prepare(model: ModelProto, device: str = "CPU", **kwargs: Any) -> RaptBackendRep: ...
def run_model(model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]: ...
def run_node(
    node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
) -> tuple[Any, ...]: ...
def supports_device(device: str) -> bool: ...
