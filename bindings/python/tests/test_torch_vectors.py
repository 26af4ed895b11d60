"""Every option alone, every pair of options, and edge cases, against PyTorch's results (tests/data/make_vectors.py)."""

import json

import numpy as np
import pytest
import rapt
from conftest import ROOT

FOLDER = ROOT / "tests/data/vectors"
NAMES = [line.split() for line in (FOLDER / "cases.txt").read_text().splitlines()]
LAYOUTS = {
    "bhld": lambda x: x,
    "blhd": lambda x: np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
}
_files = {}


def group(name):
    if name not in _files:
        file = rapt.SafetensorsFile(str(FOLDER / f"{name}.safetensors"))
        cases = json.loads(file.metadata["cases"])["cases"]
        _files[name] = file, {case["name"]: case for case in cases}
    return _files[name]


class Case:
    """One case, with its inputs as arrays of `dtype`."""

    def __init__(self, group_name, name, dtype):
        self.file, cases = group(group_name)
        self.name, self.spec, self.dtype = name, cases[name], dtype
        layout = LAYOUTS["blhd" if "layout" in self.spec else "bhld"]
        self.inputs = [layout(self.input(x)) for x in "qkv"]

    def has(self, tensor):
        return f"{self.name}/{tensor}" in self.file

    def read(self, tensor):
        return self.file[f"{self.name}/{tensor}"]

    def input(self, tensor, dtype=None):
        x = self.read(tensor)
        return x if x.dtype == bool else x.astype(dtype or self.dtype)

    def options(self):
        given = dict(self.spec["options"])
        masks = [
            rapt.Mask(mask["kind"], self.input(f"mask{n}"), float(mask.get("value", 0)))
            for n, mask in enumerate(given.pop("masks", []))
        ]
        options = {"mask": masks} if masks else {}
        if "query_starts" in given:
            options["packed"] = rapt.PackedSequences(given.pop("query_starts"), given.pop("key_starts"))
        if "dropout" in given:
            options["dropout"] = rapt.Dropout(**given.pop("dropout"))
        if "window" in given:
            options["window"] = rapt.Window(*given.pop("window"))
        if given.pop("sinks", None):
            options["sinks"] = self.input("sinks")
        return options | given

    def captures(self):
        return [rapt.Capture(one["stage"], **selection(one)) for one in self.spec["captures"]]

    def run(self):
        """Results under the names of the expected ones."""
        options = self.options()
        result = rapt.attention(*self.inputs, return_lse=True, captures=self.captures(), **options)
        results = {"out": result.out, "lse": result.lse}
        results |= {f"capture{n}": capture for n, capture in enumerate(result.captures)}
        dweights = [
            rapt.WeightsGradient(self.input(f"dweights{n}"), one["stage"], **selection(one))
            for n, one in enumerate(self.spec["upstream"]["dweights"])
        ]
        wanted = ["dquery", "dkey", "dvalue", "dmasks"] + ["dsinks"] * ("sinks" in options)
        gradients = rapt.attention_backward(
            *self.inputs,
            self.input("dout") if self.has("dout") else None,
            dlse=self.input("dlse") if self.has("dlse") else None,
            dweights=dweights,
            gradients=wanted,
            **options,
        )
        results |= {"dq": gradients.dquery, "dk": gradients.dkey, "dv": gradients.dvalue}
        if "sinks" in options:
            results["dsinks"] = gradients.dsinks
        for n, gradient in enumerate(gradients.dmasks):
            assert (gradient is not None) == (options["mask"][n].kind == "add")
            if gradient is not None:
                results[f"dmask{n}"] = gradient
        return results


def selection(one):
    chosen = {name: one.get(name) or None for name in ("heads", "queries")}
    return chosen | {"mean_over_heads": one.get("mean", False)}


def assert_near(case, name, result, answer, tolerance):
    """Checks the maximum error relative to the largest expected number; non-finite elements must be equal."""
    assert result.shape == answer.shape, f"{case.name}: {name}"
    finite = np.isfinite(answer)
    np.testing.assert_array_equal(result[~finite], answer[~finite], err_msg=f"{case.name}: {name}")
    largest = np.abs(answer[finite]).max(initial=0)
    error = np.abs(result[finite].astype(np.float64) - answer[finite]).max(initial=0)
    assert error <= tolerance * max(largest, 1e-30), f"{case.name}: {name} is off by {error}, of {largest}"


@pytest.mark.parametrize(("group_name", "name"), NAMES, ids=[name for _, name in NAMES])
def test_double_matches_pytorch(group_name, name):
    case = Case(group_name, name, np.float64)
    results = case.run()
    if not case.has("f64/out"):  # a sum with -1e9 keeps only some digits of the score in f64, which depend on rounding
        return
    for tensor, result in results.items():
        assert_near(case, tensor, result, case.read(f"f64/{tensor}"), 1e-12)


@pytest.mark.parametrize(("group_name", "name"), NAMES, ids=[name for _, name in NAMES])
def test_float_matches_pytorch(group_name, name):
    case = Case(group_name, name, np.float32)
    for tensor, result in case.run().items():
        assert_near(case, tensor, result, case.read(f"f32/{tensor}"), 2e-5)


def test_every_option_of_attention_is_among_the_cases():
    import inspect

    seen = set()
    for group_name, name in NAMES:
        seen |= set(Case(group_name, name, np.float32).options())
    keywords = {p.name for p in inspect.signature(rapt.attention).parameters.values() if p.kind is p.KEYWORD_ONLY}
    # Options of storage, execution and results have tests of their own.
    others = {"pages", "key_scales", "value_scales", "cache", "engine", "threads", "out", "return_lse",
              "return_weights", "captures"}
    assert keywords - others == seen - {"alibi"}
