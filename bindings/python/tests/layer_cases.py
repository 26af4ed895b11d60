"""640 calls of torch.nn.MultiheadAttention with its answers, as tests/data/make_modules.py made them.

Parameters, inputs and masks are not stored: they are numbers that a few lines of arithmetic give.
"""

import json
import pathlib
import struct
import zlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tests" / "data" / "modules"


def read_safetensors(path):
    """Arrays by name. Of this format a test needs ten lines, not a package."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    types = {"F64": np.float64, "F32": np.float32}
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + begin : 8 + size + end], types[entry["dtype"]])
            arrays[name] = values.reshape(entry["shape"])
    return arrays


def draw(name, *shape):
    """Numbers in [-1, 1) that depend on nothing but the name and their place; exact in f32."""
    n = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = n * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(name.encode()))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0).reshape(shape)


def bool_mask(name, *shape, rate):
    mask = draw(name, *shape) < 2 * rate - 1
    mask[..., 0] = False
    return mask


def float_mask(name, *shape, rate):
    return np.where(bool_mask(name + "/hidden", *shape, rate=rate), -np.inf, 2 * draw(name, *shape))


class Case:
    def __init__(self, entry):
        self.name, self.args, self.call = entry["name"], entry["args"], entry["call"]
        self.f32_error = entry["f32_error"]

    def __repr__(self):
        return self.name

    def fill(self, layer):
        """Sets the parameters that PyTorch's layer had."""
        for name, value in layer.named_parameters():
            layer.set_parameter(name, draw(f"{self.name}/{name}", *value.shape))
        return layer.eval()

    def tokens(self, name, length, size):
        batch = self.call["batch"]
        shape = (length,) if batch == 0 else (batch, length) if self.args["batch_first"] else (length, batch)
        return draw(f"{self.name}/{name}", *shape, size)

    def inputs(self):
        embed, call = self.args["embed_dim"], self.call
        query = self.tokens("query", call["queries"], embed)
        if call["inputs"] == "self":
            return query, query, query
        key = self.tokens("key", call["keys"], self.args["kdim"] or embed)
        if call["inputs"] == "memory":
            return query, key, key
        return query, key, self.tokens("value", call["keys"], self.args["vdim"] or embed)

    def masks(self):
        """attn_mask and key_padding_mask."""
        call, rows = self.call, max(self.call["batch"], 1)
        plane = (call["queries"], call["keys"])
        planes = (rows * self.args["num_heads"], *plane)
        name = f"{self.name}/attn_mask"
        attn_mask = {
            "none": lambda: None,
            "bool": lambda: bool_mask(name, *plane, rate=0.3),
            "float": lambda: float_mask(name, *plane, rate=0.2),
            "bool_per_head": lambda: bool_mask(name, *planes, rate=0.3),
            "float_per_head": lambda: float_mask(name, *planes, rate=0.2),
            "causal": lambda: np.triu(np.ones(plane, bool), k=1),
        }[call["attn_mask"]]()
        if call.get("hides_a_row"):
            attn_mask[-1] = True
        shape = (call["keys"],) if call["batch"] == 0 else (rows, call["keys"])
        name = f"{self.name}/key_padding_mask"
        padding = {
            "none": lambda: None,
            "bool": lambda: bool_mask(name, *shape, rate=0.3),
            "float": lambda: float_mask(name, *shape, rate=0.2),
        }[call["key_padding_mask"]]()
        return attn_mask, padding

    def run(self, layer, convert):
        """The layer's answer to the call; `convert` makes an array of the kind and type that it is to get."""
        inputs, given = self.inputs(), {}
        for array in inputs:  # what is one object stays one
            given[id(array)] = convert(array)
        attn_mask, padding = (None if mask is None else convert(mask) for mask in self.masks())
        return layer(*(given[id(array)] for array in inputs), key_padding_mask=padding,
                     need_weights=self.call["need_weights"], attn_mask=attn_mask,
                     average_attn_weights=self.call["average"], is_causal=self.call["is_causal"])

    def answer(self, what, bias):
        """PyTorch gives NaN for a query that sees no key; ours are 0, and the output is the output's bias."""
        found = ANSWERS.get(f"{self.name}/{what}")
        if found is None:
            return None
        instead = 0.0 if what == "weights" or bias is None else np.broadcast_to(bias, found.shape)
        return np.where(np.isnan(found), instead, found)


CASES = [Case(entry) for entry in json.loads((FOLDER / "cases.json").read_text())]
ANSWERS = read_safetensors(FOLDER / "answers.safetensors")
