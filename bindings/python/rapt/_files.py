"""Files of named arrays: safetensors, npy and npz."""

import os

from . import _rapt

# Element types that files may contain but rapt does not compute with.
_INTEGERS = {
    "I64": "int64", "I32": "int32", "I16": "int16", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip

_SUFFIXES = "expected .safetensors, .npz or .npy"


def load(path, *, integers_as=None):
    """Loads a file: .safetensors and .npz give a dict of arrays by name, .npy gives one array.

    Arrays of a safetensors file are memory-mapped, without a copy, and are read-only. They are numpy.ndarray, with
    bfloat16 from ml_dtypes; without NumPy they are memoryview, and rapt.Array for bfloat16.

    integers_as: "bool", "float32" or "float64": converts integers of .npy and .npz; otherwise they are an error.
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1]
    if suffix == ".npy":
        return _rapt.load_npy(path, integers_as)
    if suffix == ".npz":
        return _rapt.load_npz(path, integers_as)
    if suffix != ".safetensors":
        raise ValueError(f"load: {path} has an unknown file extension; {_SUFFIXES}")

    file = _rapt.SafetensorsFile(path)
    return {entry.name: _tensor(path, file, entry) for entry in file.entries}


def _tensor(path, file, entry):
    if entry.dtype is not None or entry.type not in _INTEGERS:
        return file[entry.name]
    import numpy  # noqa: PLC0415: only integers need it

    if entry.begin == entry.end:  # an empty map is an error
        return numpy.empty(entry.shape, _INTEGERS[entry.type])
    return numpy.memmap(path, _INTEGERS[entry.type], "r", entry.begin, entry.shape)


def save(path, arrays, *, metadata=None, compress=False):
    """Writes a dict of arrays to .safetensors or .npz, or one array to .npy.

    The file is written atomically: under a temporary name, and renamed once it is on disk.

    metadata: a dict of strings, for safetensors
    compress: whether to compress, for npz
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1]
    if metadata and suffix != ".safetensors":
        raise ValueError(f"save: metadata is supported only in .safetensors; {path} cannot store it")
    if compress and suffix != ".npz":
        raise ValueError(f"save: compress is supported only for .npz; {path} cannot be compressed")
    if suffix == ".safetensors":
        _rapt.save_safetensors(path, arrays, metadata or {})
    elif suffix == ".npz":
        _rapt.save_npz(path, arrays, bool(compress))
    elif suffix == ".npy":
        _rapt.save_npy(path, arrays)
    else:
        raise ValueError(f"save: {path} has an unknown file extension; {_SUFFIXES}")
