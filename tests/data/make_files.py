"""Makes tests/data/files: files of NumPy and of the safetensors package, for tests/io to read.

Made with numpy 2.4.6, ml_dtypes 0.6.0 and safetensors 0.8.0:

    python3 tests/data/make_files.py

Every array holds (i mod 7) - 2 + i / 4 at row-major index i, rounded to its type; integers hold (i mod 7) - 2 (unsigned
ones: i mod 7), bools hold whether (i mod 7) - 2 is positive.
"""

import pathlib

import ml_dtypes
import numpy as np
from numpy.lib import format as npy
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent / "files"
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def values(shape, dtype):
    i = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return i % 7 - 2 > 0
    if dtype.kind in "iu":
        return (i % 7 - (2 if dtype.kind == "i" else 0)).astype(dtype)
    return np.asarray(i % 7 - 2 + i / 4).astype(dtype)


def save(name, array, version=None):
    with open(FOLDER / name, "wb") as file:
        npy.write_array(file, array, version=version, allow_pickle=False)


def main():
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name, dtype in FLOATS.items():
        array = values((2, 3, 4), dtype)
        save(f"{name}.npy", array)
        save(f"{name}_fortran.npy", np.asfortranarray(array))
        swapped = array.astype(np.dtype(dtype).newbyteorder(">"))
        save(f"{name}_big.npy", swapped)
        save(f"{name}_big_fortran.npy", np.asfortranarray(swapped))
    save("bool.npy", values((2, 3, 4), bool))
    save("bool_fortran.npy", np.asfortranarray(values((2, 3, 4), bool)))
    for name in INTEGERS:
        save(f"{name}.npy", values((3, 5), name))
        save(f"{name}_big_fortran.npy", np.asfortranarray(values((3, 5), np.dtype(name).newbyteorder(">"))))
    for version in (1, 2, 3):
        save(f"version{version}.npy", values((5, 2), np.float32), (version, 0))
    save("scalar.npy", np.array(values((1,), np.float64)[0]))
    save("empty.npy", values((2, 0, 3), np.float32))
    save("rank8.npy", values((1, 2, 1, 2, 1, 2, 1, 2), np.float32))
    save("rank9.npy", values((1,) * 9, np.float32))
    save("complex.npy", np.zeros(2, np.complex64))
    save("text.npy", np.array(["ab", "c"]))
    save("records.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
    np.save(FOLDER / "objects.npy", np.array([None, {}], dtype=object), allow_pickle=True)

    several = {"a": values((2, 3), np.float32), "b": values((4,), np.float64), "mask": values((3, 3), bool),
               "größe": values((7,), ml_dtypes.bfloat16), "folder/x": np.asfortranarray(values((3, 2), np.float16)),
               "i": values((300,), np.int64), "none": values((0,), np.float32)}
    np.savez(FOLDER / "stored.npz", **several)
    np.savez_compressed(FOLDER / "deflated.npz", **several)
    np.savez(FOLDER / "empty.npz")

    tensors = {name: values((2, 3), dtype) for name, dtype in FLOATS.items()}
    tensors |= {name: values((3, 1), name) for name in INTEGERS}
    tensors |= {"bool": values((5,), bool), "scalar": np.asarray(values((), np.float32)), "empty": values((0, 4), np.float32),
                'odd "name"\n\\ größe 😀': values((2,), np.float32), "rank9": values((1,) * 9, np.float32)}
    save_file(tensors, FOLDER / "types.safetensors", metadata={"format": "np", "note": 'a "quoted" größe'})
    save_file({}, FOLDER / "empty.safetensors")


if __name__ == "__main__":
    main()
