"""Reads weights from any array: through its address, its buffer, or number by number. Imports no array library."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Row = Sequence[float]


@dataclass(frozen=True)
class Numbers:
    """An array whose last dimension is read row by row."""

    shape: tuple[int, ...]
    row: Callable[..., Row]  # takes all indices but the last


# The `struct` formats for the type codes of __array_interface__, the buffer protocol and DLPack.
_OF_INTERFACE = {"f2": "e", "f4": "f", "f8": "d", "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H",
                 "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
_OF_DLPACK = {(2, 16): "e", (2, 32): "f", (2, 64): "d", (4, 16): "bf16", (6, 8): "?", (0, 8): "b", (1, 8): "B",
              (0, 16): "h", (1, 16): "H", (0, 32): "i", (1, 32): "I", (0, 64): "q", (1, 64): "Q"}
_FLOATS = "float32, float64, float16 and bfloat16"


def read(weights) -> Numbers:
    """Reads anything with `__array_interface__`, `__dlpack__` or the buffer protocol, or nested lists."""
    if hasattr(weights, "detach"):  # PyTorch refuses to export tensors that require gradients
        weights = weights.detach()
    if hasattr(weights, "__array_interface__"):
        return _from_interface(weights)
    if hasattr(weights, "__dlpack__"):
        return _from_dlpack(weights)
    try:
        buffer = memoryview(weights)
    except TypeError:
        return _from_lists(weights)
    return _from_buffer(buffer)


def _unpacker(code: str, order: str, count: int) -> Callable[[bytes], Row]:
    if code == "bf16":  # the upper half of an f32
        wide = struct.Struct(f"<{count}f")
        halves = struct.Struct(f"{order}{count}H")
        return lambda data: wide.unpack(struct.pack(f"<{count}I", *(half << 16 for half in halves.unpack(data))))
    return struct.Struct(f"{order}{count}{code}").unpack


@dataclass(frozen=True)
class _Memory:
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    code: str
    order: str = "="


def _from_memory(memory: _Memory, owner) -> Numbers:
    count, step = memory.shape[-1], memory.strides[-1]
    size = 2 if memory.code == "bf16" else struct.calcsize("=" + memory.code)
    unpack = _unpacker(memory.code, memory.order, count)

    def row(*index: int, owner=owner) -> Row:  # the owner lives as long as this function
        start = memory.address + sum(i * stride for i, stride in zip(index, memory.strides))
        if step == size or count == 1:
            return unpack(ctypes.string_at(start, count * size))
        return unpack(b"".join(ctypes.string_at(start + j * step, size) for j in range(count)))

    return Numbers(memory.shape, row)


def _compact(shape: Sequence[int], size: int) -> tuple[int, ...]:
    strides = [size] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return tuple(strides)


def _from_interface(weights) -> Numbers:
    about = weights.__array_interface__
    shape, kind = tuple(about["shape"]), about["typestr"]
    if str(getattr(weights, "dtype", "")) == "bfloat16":
        code, size = "bf16", 2
    elif kind[1:] in _OF_INTERFACE:
        code, size = _OF_INTERFACE[kind[1:]], int(kind[2:])
    else:
        raise ValueError(f"show: weights has type {getattr(weights, 'dtype', kind)}; show takes {_FLOATS}")
    _require_rows(shape)
    strides = about.get("strides") or _compact(shape, size)
    order = ">" if kind[0] == ">" else "<"
    return _from_memory(_Memory(about["data"][0], shape, tuple(strides), code, order), (weights, about))


# DLTensor: data, device's type and number, ndim, the element's code, bits and lanes, shape, strides, byte_offset.
_DLTENSOR = struct.Struct("@PiiiBBHPPQ")
_CPU = (1, 3)  # kDLCPU, and kDLCUDAHost: CPU memory pinned for CUDA


def _integers(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"={count}q", ctypes.string_at(address, 8 * count))


def _from_dlpack(weights) -> Numbers:
    try:
        device = int(weights.__dlpack_device__()[0])
        # The capsule frees the data when it is destroyed, unless a consumer has taken the data.
        capsule = weights.__dlpack__() if device in _CPU else None
    except Exception as refused:  # the exception's type depends on the library
        raise ValueError(f"show: weights cannot be read: {refused}") from refused
    if capsule is None:
        raise ValueError(f"show: weights is on a device of DLPack type {device}, not in CPU memory; "
                         "pass weights.cpu(), or a NumPy array")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.string_at(pointer(capsule, b"dltensor"), _DLTENSOR.size)
    data, _, _, rank, kind, bits, lanes, shape_at, strides_at, offset = _DLTENSOR.unpack(tensor)
    code = _OF_DLPACK.get((kind, bits)) if lanes == 1 else None
    if code is None:
        raise ValueError(f"show: weights has type {getattr(weights, 'dtype', 'unknown')}; show takes {_FLOATS}")
    shape = _integers(shape_at, rank)
    _require_rows(shape)
    size = bits // 8
    strides = tuple(size * s for s in _integers(strides_at, rank)) if strides_at else _compact(shape, size)
    return _from_memory(_Memory(data + offset, shape, strides, code), capsule)


def _from_buffer(buffer: memoryview) -> Numbers:
    shape = tuple(buffer.shape or ())
    _require_rows(shape)
    code = buffer.format.lstrip("@=<")
    if code not in _OF_INTERFACE.values():
        raise ValueError(f"show: weights has type '{buffer.format}' of the buffer protocol; show takes {_FLOATS}")
    if not buffer.c_contiguous:
        return _from_lists(buffer.tolist())
    count, strides = shape[-1], tuple(buffer.strides or ())
    unpack, flat = _unpacker(code, "=", count), buffer.cast("B")

    def row(*index: int) -> Row:
        start = sum(int(i) * stride for i, stride in zip(index, strides))
        return unpack(bytes(flat[start : start + count * buffer.itemsize]))

    return Numbers(shape, row)


def _from_lists(weights) -> Numbers:
    shape, level = [], weights
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else None
    if getattr(level, "shape", ()):
        raise ValueError(f"show: weights is a {type(weights).__name__} of arrays; give one of them, such as weights[0]")
    if not shape or (level is not None and not hasattr(level, "__float__")):
        raise ValueError(f"show: weights is of type {type(weights).__name__}; show takes an array (__dlpack__, the "
                         "buffer protocol) or lists of numbers")
    _require_rows(tuple(shape))

    def row(*index: int) -> Row:
        found = weights
        for i, count in zip((*index, None), shape):
            if not isinstance(found, (list, tuple)) or len(found) != count:
                raise ValueError(f"show: weights contains lists of unequal lengths, {count} and "
                                 f"{len(found) if isinstance(found, (list, tuple)) else 'none'}")
            found = found if i is None else found[i]
        return [float(number) for number in found]

    return Numbers(tuple(shape), row)


def _require_rows(shape: tuple[int, ...]) -> None:
    if len(shape) not in (2, 3, 4):
        raise ValueError(f"show: weights has rank {len(shape)}, shape {shape}; show takes (Lq, Lk), (H, Lq, Lk) or "
                         "(B, H, Lq, Lk)")
    if 0 in shape:
        raise ValueError(f"show: weights has shape {shape}; there is nothing to show")
