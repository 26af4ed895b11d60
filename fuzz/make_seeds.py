"""Creates the first seeds of fuzz/corpus from tests/data/files: the smallest file of each kind, and small broken ones.

    python3 fuzz/make_seeds.py

Inputs that fuzzers found interesting are kept beside them: see scripts/fuzz.sh.
"""

import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "tests" / "data" / "files"
NPY = ["f32", "f64_fortran", "bf16_big", "bool", "int64", "uint8_big_fortran", "scalar", "empty", "rank8", "rank9",
       "version2", "version3", "records", "text"]
HEADERS = [
    '{}',
    '{"__metadata__":{"a":"b","\\u00e9\\ud83d\\ude00":"\\n"}}',
    '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    '{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]},'
    '"c":{"dtype":"F4","shape":[2],"data_offsets":[3,4],"more":[true,false,null,-1.5e+3,{}]}}',
]


def main():
    corpus = ROOT / "fuzz" / "corpus"
    for name in ("npy", "npz", "safetensors"):
        (corpus / name).mkdir(parents=True, exist_ok=True)
    for name in NPY:
        (corpus / "npy" / f"seed-{name}").write_bytes((FILES / f"{name}.npy").read_bytes())
    for name in ("stored", "deflated", "empty"):
        (corpus / "npz" / f"seed-{name}").write_bytes((FILES / f"{name}.npz").read_bytes())
    for name in ("types", "empty"):
        (corpus / "safetensors" / f"seed-{name}").write_bytes((FILES / f"{name}.safetensors").read_bytes())
    for number, header in enumerate(HEADERS):
        bytes_ = struct.pack("<Q", len(header)) + header.encode() + (b"\1\2\3\4" if "F" in header else b"")
        (corpus / "safetensors" / f"seed-{number}").write_bytes(bytes_)


if __name__ == "__main__":
    main()
