#!/usr/bin/env python3
"""Reads files written by rapt with other libraries.

    read_back.py WRITE_FILES     WRITE_FILES is the program made from write_files.cc

Python's own zipfile, json and ast are always used; NumPy, ml_dtypes and safetensors are used if installed. The last
line of the output says which.
"""

import ast
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

SHAPES = {"bool": (2, 3, 4), "f16": (2, 3, 4), "f32": (2, 3, 4), "f64": (2, 3, 4), "bf16": (2, 3, 4),
          "transposed": (4, 3, 2), "scalar": (), "empty": (0, 3), 'größe "quoted"': (2, 3, 4)}
NPY_TYPES = {"bool": "|b1", "f16": "<f2", "f32": "<f4", "bf16": "<V2", "scalar": "<f4", "empty": "<f4"}
TYPES = {"bool": "BOOL", "f16": "F16", "f32": "F32", "bf16": "BF16", "scalar": "F32", "empty": "F32"}
SIZES = {"BOOL": 1, "F16": 2, "BF16": 2, "F32": 4, "F64": 8}
VALUES = [i % 7 - 2 + i / 4 for i in range(24)]


def check_npy(name, content):
    assert content[:8] == b"\x93NUMPY\1\0", name
    size = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:10 + size].decode("latin1"))
    assert (10 + size) % 64 == 0 and content[9 + size:10 + size] == b"\n", name
    assert header == {"descr": NPY_TYPES.get(name, "<f8"), "fortran_order": False, "shape": SHAPES[name]}, header
    if name in ("f64", 'größe "quoted"'):
        assert list(struct.unpack("<24d", content[10 + size:])) == VALUES, name


def check_standard_library(folder):
    for name in list(SHAPES)[:-1]:
        check_npy(name, (folder / f"{name}.npy").read_bytes())
    for archive in ("stored.npz", "deflated.npz"):
        with zipfile.ZipFile(folder / archive) as file:
            assert file.testzip() is None
            assert file.namelist() == [f"{name}.npy" for name in SHAPES]
            for name in SHAPES:
                check_npy(name, file.read(f"{name}.npy"))
    content = (folder / "all.safetensors").read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    assert size % 8 == 0
    assert header.pop("__metadata__") == {"format": "np", "größe": '"x"\n'}
    assert list(header) == list(SHAPES)
    for name, entry in header.items():
        assert entry["dtype"] == TYPES.get(name, "F64") and tuple(entry["shape"]) == SHAPES[name], name
        begin, end = entry["data_offsets"]
        assert (8 + size + begin) % SIZES[entry["dtype"]] == 0 and 8 + size + end <= len(content), name


def check_numpy(folder):
    import numpy as np

    wanted = np.array(VALUES).reshape(2, 3, 4)
    try:
        import ml_dtypes
        bfloat16 = ml_dtypes.bfloat16
    except ImportError:
        bfloat16 = None
    expected = {"bool": wanted != 0, "f16": wanted.astype(np.float16), "f32": wanted.astype(np.float32), "f64": wanted,
                "transposed": wanted.transpose(), "scalar": np.zeros((), np.float32),
                "empty": np.zeros((0, 3), np.float32), 'größe "quoted"': wanted}
    if bfloat16:
        expected["bf16"] = wanted.astype(bfloat16)

    def check(name, array):
        if name == "bf16":
            array = array.view(bfloat16)
        assert array.dtype == expected[name].dtype and np.array_equal(array, expected[name]), name

    for name in expected:
        if '"' not in name:
            check(name, np.load(folder / f"{name}.npy"))
        for archive in ("stored.npz", "deflated.npz"):
            check(name, np.load(folder / archive)[name])
    used = ["numpy " + np.__version__] + (["ml_dtypes"] if bfloat16 else [])
    try:
        from safetensors import safe_open
    except ImportError:
        return used
    with safe_open(folder / "all.safetensors", framework="np") as file:
        assert file.metadata() == {"format": "np", "größe": '"x"\n'}
        assert sorted(file.keys()) == sorted(SHAPES)
        for name in expected:
            check(name, file.get_tensor(name))
    return used + ["safetensors"]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[1], name], check=True)
        check_standard_library(folder)
        try:
            used = check_numpy(folder)
        except ImportError:
            used = []
    print("read back by", ", ".join(["zipfile", "json"] + used))


if __name__ == "__main__":
    main()
