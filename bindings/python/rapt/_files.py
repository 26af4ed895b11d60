"""Files of named arrays: safetensors, npy and npz."""

import os

from . import _rapt

# What rapt does not compute with, and a file may hold beside what it does.
_INTEGERS = {
    "I64": "int64", "I32": "int32", "I16": "int16", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip

_SUFFIXES = "it may end in .safetensors, .npz or .npy"


def load(path, *, integers_as=None):
    """The arrays of a file: a dict by name of .safetensors and .npz, one array of .npy.

    Arrays of a safetensors file are read where they lie in the file, through a memory map, and are read-only. They are
    numpy.ndarray, with bfloat16 of ml_dtypes; without NumPy memoryview, and rapt.Array for bfloat16.

    integers_as: "bool", "float32" or "float64": what integers of .npy and .npz become; otherwise they are refused.
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1]
    if suffix == ".npy":
        return _rapt.load_npy(path, integers_as)
    if suffix == ".npz":
        return _rapt.load_npz(path, integers_as)
    if suffix != ".safetensors":
        raise ValueError(f"load: {path} has a name of no known kind; {_SUFFIXES}")

    file = _rapt.SafetensorsFile(path)
    return {entry.name: _tensor(path, file, entry) for entry in file.entries}


def _tensor(path, file, entry):
    if entry.dtype is not None or entry.type not in _INTEGERS:
        return file[entry.name]
    import numpy  # noqa: PLC0415: only for these

    if entry.begin == entry.end:  # an empty map is an error
        return numpy.empty(entry.shape, _INTEGERS[entry.type])
    return numpy.memmap(path, _INTEGERS[entry.type], "r", entry.begin, entry.shape)


def save(path, arrays, *, metadata=None, compress=False):
    """Writes a dict of arrays to .safetensors or .npz, or one array to .npy.

    The file is whole or absent: it is written under another name and renamed when it is on the disk.

    metadata: of safetensors: a dict of strings
    compress: of npz
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1]
    if metadata and suffix != ".safetensors":
        raise ValueError(f"save: metadata is for .safetensors; {path} has no place for it")
    if compress and suffix != ".npz":
        raise ValueError(f"save: compress is for .npz; {path} is not compressed")
    if suffix == ".safetensors":
        _rapt.save_safetensors(path, arrays, metadata or {})
    elif suffix == ".npz":
        _rapt.save_npz(path, arrays, bool(compress))
    elif suffix == ".npy":
        _rapt.save_npy(path, arrays)
    else:
        raise ValueError(f"save: {path} has a name of no known kind; {_SUFFIXES}")
