"""Array files, written and read without NumPy: the tests of the command need no packages."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

SIZES = {"f4": 4, "f8": 8, "b1": 1, "i8": 8}
CODES = {"f4": "f", "f8": "d", "b1": "?", "i8": "q"}
SAFETENSORS = {"F32": "f", "F64": "d", "BOOL": "?", "I64": "q"}


def npy(shape, values, kind="f4"):
    """The bytes of an .npy file, row by row."""
    order = "|" if kind == "b1" else "<"
    dims = "".join(f"{size}, " for size in shape)
    header = f"{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({dims}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return head + struct.pack(f"<{len(values)}{CODES[kind]}", *values)


def read_npy(data):
    """Shape and values of an .npy file that rapt wrote."""
    assert data[:6] == b"\x93NUMPY", data[:20]
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + size], {})  # a Python dictionary, in NumPy's format
    body, kind = data[10 + size :], header["descr"][1:]
    return header["shape"], list(struct.unpack(f"<{len(body) // SIZES[kind]}{CODES[kind]}", body))


def safetensors(tensors, metadata=None):
    """The bytes of a .safetensors file with the tensors {name: (type, shape, values)}."""
    header, body = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (kind, shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}{SAFETENSORS[kind]}", *values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def read_safetensors(data):
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = SAFETENSORS.get(entry["dtype"])
        count = (end - begin) // struct.calcsize(code) if code else 0
        values = list(struct.unpack(f"<{count}{code}", body[begin:end])) if code else None
        result[name] = (entry["dtype"], entry["shape"], values)
    return result


def numbers(count, seed=1):
    """Deterministic numbers between -1 and 1 that are exact in f32."""
    return [((n * 7919 + seed * 104729) % 2003 - 1001) / 1024 for n in range(count)]


def run(command, *arguments, folder=None, stdin=b"", text=True):
    environment = {k: v for k, v in os.environ.items() if k not in ("COLORTERM", "COLUMNS")}
    result = subprocess.run([command, *arguments], capture_output=True, cwd=folder, input=stdin,
                            env={**environment, "NO_COLOR": "1"})
    if text:
        result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    return result


class InFolder(unittest.TestCase):
    """Tests with a temporary folder, which is removed when they end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()
