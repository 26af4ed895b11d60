"""Makes tests/data/modules/: torch.nn.MultiheadAttention over all its arguments, and what it answered.

Made with PyTorch 2.15.0 on the CPU. Run it again with that version and the files come out the same:

    python3 tests/data/make_modules.py

cases.json lists the calls: constructor and forward arguments, and PyTorch's own error in f32 against its answer in f64.
answers.safetensors holds the answers in f64, as `<case>/out` and `<case>/weights`. Parameters, inputs and masks are not
stored: they are numbers that a few lines of arithmetic give, here and in tests/support/module_case.cc.
"""

import json
import pathlib
import zlib

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "modules"
CASES = 640
MASKS = ["none", "bool", "float", "bool_per_head", "float_per_head", "causal"]
PADDING = ["none", "bool", "float"]


def draw(name, *shape):
    """Numbers in [-1, 1) that depend on nothing but the name and their place; exact in f32."""
    n = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = n * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(name.encode()))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    values = (x >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0
    return torch.from_numpy(values.reshape(shape))


def bool_mask(name, *shape, rate):
    """True where a key is hidden, at the given rate; the first key of each row is not."""
    mask = draw(name, *shape) < 2 * rate - 1
    mask[..., 0] = False
    return mask


def float_mask(name, *shape, rate):
    """Added numbers; -inf at the given rate."""
    return torch.where(bool_mask(f"{name}/hidden", *shape, rate=rate), -torch.inf, draw(name, *shape) * 2)


class Case:
    """One call. Everything about it is drawn from its number."""

    def __init__(self, number):
        rng = np.random.default_rng(number)
        pick = lambda *choices: choices[rng.integers(len(choices))]
        self.name = f"case{number:03d}"
        heads = pick(1, 2, 3, 4)
        embed = heads * pick(2, 3, 4)
        self.args = {
            "embed_dim": embed, "num_heads": heads, "dropout": pick(0.0, 0.3), "bias": pick(True, False),
            "add_bias_kv": pick(False, False, True), "add_zero_attn": pick(False, False, True),
            "kdim": pick(None, None, None, 5), "vdim": pick(None, None, None, 7), "batch_first": pick(True, False),
        }
        same = self.args["kdim"] is None and self.args["vdim"] is None
        self.call = {
            "batch": pick(0, 1, 2, 3),  # 0: no batch dimension
            "inputs": pick("self", "self", "memory", "three") if same else "three",
            "queries": pick(1, 2, 4, 5), "keys": pick(1, 3, 4, 6),
            "attn_mask": pick(*MASKS), "key_padding_mask": pick("none", "none", *PADDING[1:]),
            "need_weights": pick(True, True, False), "average": pick(True, False), "is_causal": False,
        }
        call = self.call
        if call["inputs"] == "self":
            call["keys"] = call["queries"]
        if call["attn_mask"] == "causal":
            call["keys"] = call["queries"]
            call["is_causal"] = pick(True, False)
        if (self.args["add_bias_kv"] or self.args["add_zero_attn"]) and not call["need_weights"]:
            # With the hint and without weights, PyTorch ignores the mask, and its own causal mask hides the added keys
            # too; with weights, or without the hint, every query sees them. We follow the latter.
            call["is_causal"] = False
        kinds = {call["attn_mask"].split("_")[0], call["key_padding_mask"]} - {"none", "causal"}
        if len(kinds) == 2:  # PyTorch wants both of one kind
            call["key_padding_mask"] = call["attn_mask"].split("_")[0]
        if number % 40 == 39:  # a query that sees nothing
            call.update(attn_mask="bool", key_padding_mask="none", hides_a_row=True)
            self.args.update(add_bias_kv=False, add_zero_attn=False)

    def module(self):
        module = nn.MultiheadAttention(**self.args)
        for name, parameter in module.named_parameters():
            parameter.data = draw(f"{self.name}/{name}", *parameter.shape).to(torch.float32)
        return module.eval()

    def tokens(self, name, length, size):
        batch = self.call["batch"]
        if batch == 0:
            return draw(f"{self.name}/{name}", length, size)
        shape = (batch, length) if self.args["batch_first"] else (length, batch)
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
        call, rows = self.call, max(self.call["batch"], 1)
        plane = (call["queries"], call["keys"])
        planes = (rows * self.args["num_heads"], *plane)
        mask, name = call["attn_mask"], f"{self.name}/attn_mask"
        attn_mask = {
            "none": lambda: None,
            "bool": lambda: bool_mask(name, *plane, rate=0.3),
            "float": lambda: float_mask(name, *plane, rate=0.2),
            "bool_per_head": lambda: bool_mask(name, *planes, rate=0.3),
            "float_per_head": lambda: float_mask(name, *planes, rate=0.2),
            "causal": lambda: torch.triu(torch.ones(plane), diagonal=1).bool(),
        }[mask]()
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

    def run(self, dtype):
        cast = lambda x: x if x is None or x.dtype == torch.bool else x.to(dtype)
        attn_mask, padding = (cast(x) for x in self.masks())
        query, key, value = self.inputs()
        query, key_cast, value_cast = cast(query), cast(key), cast(value)
        if self.call["inputs"] == "self":
            key_cast = value_cast = query
        elif self.call["inputs"] == "memory":
            value_cast = key_cast
        with torch.no_grad():
            return self.module().to(dtype)(
                query, key_cast, value_cast, key_padding_mask=padding, need_weights=self.call["need_weights"],
                attn_mask=attn_mask, average_attn_weights=self.call["average"], is_causal=self.call["is_causal"])


def relative_error(a, b):
    """Of the rows that are numbers in both."""
    a, b = a.double(), b.double()
    good = ~(torch.isnan(a) | torch.isnan(b))
    norm = b[good].norm()
    return float((a[good] - b[good]).norm() / norm) if norm > 0 else 0.0


def main():
    FOLDER.mkdir(exist_ok=True)
    cases, answers = [], {}
    for number in range(CASES):
        case = Case(number)
        answer = dict(zip(("out", "weights"), case.run(torch.float64)))
        in_f32 = dict(zip(("out", "weights"), case.run(torch.float32)))
        errors = {}
        for name, exact in answer.items():
            if exact is None:
                continue
            answers[f"{case.name}/{name}"] = exact.contiguous().clone()
            errors[name] = relative_error(in_f32[name], exact)
        cases.append({"name": case.name, "args": case.args, "call": case.call, "f32_error": errors})
    save_file(answers, FOLDER / "answers.safetensors", metadata={"torch": "2.15.0"})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    nan = sum(bool(torch.isnan(x).any()) for x in answers.values())
    print(f"{len(cases)} cases, {len(answers)} answers, {nan} with NaN")


main()
