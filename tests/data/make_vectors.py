"""Makes tests/data/vectors/*.safetensors: attention with each option and each pair of options, computed by PyTorch.

Made with PyTorch 2.15.0 on the CPU. Running it again with that version gives the same files, bit for bit:

    python3 tests/data/make_vectors.py

Each file holds one group of cases. Tensors: `<case>/q`, `k`, `v`, `dout`, `mask<n>`, `sinks`, `dlse`, `dweights<n>` are
inputs, all f32 (or bool), so that they serve the f64 and the f32 run alike. `<case>/f64/<answer>` and
`<case>/f32/<answer>` are what PyTorch computed in either type: out, lse, capture<n>, dq, dk, dv, dmask<n>, dsinks. The
metadata has one entry, `cases`: JSON with the options of each case. vectors/cases.txt lists them all.

If PyTorch has its own function for a case, the expected result is that function's. `"torch"` says where out comes from:
"sdpa" is scaled_dot_product_attention, which also gives the gradients if dout is the only upstream gradient; "flex" is
flex_attention; "plain" is torch_attention.steps. lse comes from flex_attention if it supports the case and there are no
sinks. All other results come from torch_attention.steps. The script asserts that the functions agree on the results
that several of them give.
"""

import json
import pathlib
import zlib

import numpy as np
import torch
from safetensors.torch import save_file

import torch_attention as ta
from vector_cases import GROUPS, all_cases

FOLDER = pathlib.Path(__file__).parent / "vectors"


class Maker:
    """One case: draws its inputs from a seed derived from its name, and computes the results with PyTorch."""

    def __init__(self, case):
        self.case = case
        self.rng = np.random.default_rng(zlib.crc32(case["name"].encode()))
        self.inputs = {}

    def draw(self, shape, spread=1.0):
        x = self.rng.standard_normal(shape) * spread
        if self.case.get("grid"):  # multiples of 1/16 below 8: exact in bf16 and f16, sums of products exact in f32
            x = np.clip(np.round(x * 16) / 16, -7.9375, 7.9375)
        return torch.from_numpy(x.astype(np.float32))

    def draw_mask(self, spec, shape):
        """A random mask of `shape`. If it has several rows, one of them may be constant."""
        if spec.get("values") == "all":
            return torch.ones(shape, dtype=torch.bool) if spec["kind"] != "add" else torch.full(shape, spec["number"])
        if spec.get("values") == "causal":  # the notes' triu(ones, diagonal=1), times a number if it is added
            above = torch.triu(torch.ones(shape), diagonal=1)
            return torch.where(above > 0, spec["number"], 0.0) if spec["kind"] == "add" else above.bool()
        if spec["kind"] == "add":
            mask = self.draw(shape)
            if "number" in spec:  # some entries, and one whole row, have this value
                mask[torch.from_numpy(self.rng.random(shape) < 0.3)] = spec["number"]
                mask[..., shape[-2] - 1, :] = spec["number"]
            return mask
        mask = torch.from_numpy(self.rng.random(shape) < (0.7 if spec["kind"] == "keep" else 0.3))
        if spec.get("values") == "row" and shape[-2] > 1:
            mask[..., shape[-2] - 1, :] = spec["kind"] != "keep"
        return mask

    def selected(self, stage, of):
        if of.get("heads"):
            stage = stage[:, of["heads"]]
        if of.get("queries"):
            stage = stage[:, :, of["queries"]]
        return stage.mean(dim=1) if of.get("mean") else stage

    def make_inputs(self):
        c, t, o = self.case, self.inputs, self.case["options"]
        b, hq, hkv, lq, lk, d, dv = (c["sizes"][x] for x in ("B", "Hq", "Hkv", "Lq", "Lk", "D", "Dv"))
        spread = c.get("spread", 1.0)
        t["q"], t["k"] = self.draw((b, hq, lq, d), spread), self.draw((b, hkv, lk, d), spread)
        t["v"] = self.draw((b, hkv, lk, dv))
        for n, spec in enumerate(o.get("masks", [])):
            t[f"mask{n}"] = self.draw_mask(spec, spec["shape"])
        if o.get("sinks"):
            t["sinks"] = self.draw((hq,))
        upstream = c["upstream"]
        if upstream["dout"]:
            t["dout"] = self.draw((b, hq, lq, dv))
        if upstream["dlse"]:
            t["dlse"] = self.draw((b, hq, lq))
        for n, of in enumerate(upstream["dweights"]):
            t[f"dweights{n}"] = self.draw(tuple(self.selected(torch.zeros(b, hq, lq, lk), of).shape))

    def leaves(self, dtype):
        return {n: x.to(dtype).requires_grad_(n[0] != "d") if x.dtype != torch.bool else x
                for n, x in self.inputs.items()}

    def gradients(self, roots, t):
        """roots: pairs (a result, its upstream gradient)."""
        wanted = [n for n, x in t.items() if x.requires_grad]
        found = torch.autograd.grad([r for r, _ in roots], [t[n] for n in wanted], [g for _, g in roots],
                                    allow_unused=True)
        renamed = {"q": "dq", "k": "dk", "v": "dv"}
        answers = {renamed.get(n, "d" + n): torch.zeros_like(t[n]) if g is None else g for n, g in zip(wanted, found)}
        for n, spec in enumerate(self.case["options"].get("masks", [])):
            if spec.get("gradient") is False:
                answers.pop(f"dmask{n}")
        return answers

    def answer(self, dtype):
        c, o, t = self.case, self.case["options"], self.leaves(dtype)
        masks = [t[f"mask{n}"] for n in range(len(o.get("masks", [])))]
        stages = ta.steps(t["q"], t["k"], t["v"], masks, t.get("sinks"), o)
        answers = {"out": stages["out"], "lse": stages["lse"]}
        for n, capture in enumerate(c["captures"]):
            answers[f"capture{n}"] = self.selected(stages[capture["stage"]], capture)
        roots = [(stages["out"], t["dout"])] if "dout" in t else []
        if "dlse" in t:
            roots.append((stages["lse"], t["dlse"]))
        for n, of in enumerate(c["upstream"]["dweights"]):
            roots.append((self.selected(stages[of["stage"]], of), t[f"dweights{n}"]))
        answers.update(self.gradients(roots, t))
        c["torch"] = "plain"

        if ta.flex_can(o) and c["sizes"]["Lk"] > 0:
            out, lse = ta.flex(t["q"].detach(), t["k"].detach(), t["v"].detach(),
                               [m.detach() for m in masks], t["sinks"].detach() if "sinks" in t else None, o)
            self.agree({"out": out, "lse": lse}, answers, dtype)
            if "sinks" not in t:
                c["torch"] = "flex"
                answers.update({"out": out, "lse": lse})
        if ta.sdpa_can(o, t.get("sinks")):
            out = ta.sdpa(t["q"], t["k"], t["v"], masks, o)
            own = {"out": out}
            if len(roots) == 1 and "dout" in t:
                own.update(self.gradients([(out, t["dout"])], t))
            self.agree(own, answers, dtype)
            c["torch"] = "sdpa"
            answers.update(own)
        # All results, lse included, have the type of the inputs and are contiguous.
        return {n: x.detach().to(dtype).contiguous().clone() for n, x in answers.items()}

    def agree(self, own, plain, dtype):
        """Checks that PyTorch's own function and the plain steps agree, and that both have the same zeros."""
        for n, x in own.items():
            x, y = x.detach().double(), plain[n].detach().double()
            assert torch.equal(torch.isfinite(x), torch.isfinite(y)), (self.case["name"], n)
            x, y = torch.nan_to_num(x, neginf=0.0), torch.nan_to_num(y, neginf=0.0)
            bound = (1e-13 if dtype == torch.float64 else 2e-4) * max(float(y.norm()), 1e-300)
            assert float((x - y).norm()) <= bound, (self.case["name"], n, float((x - y).norm()), float(y.norm()))

    def check_well_posed(self, answers):
        """Checks that no result is rounding noise around zero, where a relative error would be meaningless."""
        for n, x in answers.items():
            finite = x[torch.isfinite(x)]
            assert not torch.isnan(x).any(), (self.case["name"], n)
            norm = float(finite.norm()) if finite.numel() else 0.0
            assert norm == 0.0 or norm > 1e-6, (self.case["name"], n, norm)

    def tensors(self):
        self.make_inputs()
        t = {f"{self.case['name']}/{n}": x for n, x in self.inputs.items()}
        for kind, dtype in (("f64", torch.float64), ("f32", torch.float32)):
            if self.case.get("only_f32") and kind == "f64":
                continue
            answers = self.answer(dtype)
            if kind == "f64":
                self.check_well_posed(answers)
            t.update({f"{self.case['name']}/{kind}/{n}": x for n, x in answers.items()})
        return t


def readable(case):
    """The part of a case that the tests need; how inputs are drawn is only needed here."""
    spec = {n: x for n, x in case.items() if n not in ("spread", "group")}
    spec["options"] = dict(case["options"])
    if "masks" in spec["options"]:
        hide = ("shape", "values", "number")
        spec["options"]["masks"] = [{n: x for n, x in m.items() if n not in hide} for m in case["options"]["masks"]]
    return spec


def main():
    assert torch.__version__.startswith("2.15."), torch.__version__
    torch.set_num_threads(1)  # so that sums always run in the same order
    torch.use_deterministic_algorithms(True)
    FOLDER.mkdir(exist_ok=True)
    cases = all_cases()
    names = [c["name"] for c in cases]
    assert len(set(names)) == len(names)
    for group in GROUPS:
        tensors, specs = {}, []
        for case in cases:
            if case["group"] == group:
                tensors.update(Maker(case).tensors())
                specs.append(readable(case))
        path = FOLDER / f"{group}.safetensors"
        # Only one metadata entry: the writer does not keep the order of several.
        save_file(tensors, path, metadata={"cases": json.dumps({"torch": "2.15.0", "cases": specs})})
        count = {kind: sum(s["torch"] == kind for s in specs) for kind in ("sdpa", "flex", "plain")}
        print(f"{path.name}: {len(specs)} cases {count}, {path.stat().st_size} bytes")
    # The tests read the list first, and then only the file they need.
    (FOLDER / "cases.txt").write_text("".join(f"{c['group']} {c['name']}\n" for c in cases))
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
