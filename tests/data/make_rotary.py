"""Makes tests/data/rotary/*.safetensors: rotary embedding as transformers, PyTorch and ONNX compute it.

Made with PyTorch 2.15.0, transformers 5.22.2 and onnx 1.23.2 on the CPU:

    python3 tests/data/make_rotary.py

frequencies.safetensors: for each case, `<case>/f32` is what transformers' own rope function gives. It computes in f32,
where the exponents of the base are already rounded, so its error is about 1e-6. `<case>/f64` is the same function with
torch.float32 replaced by torch.float64: the formula of transformers, accurate to the last few bits of a double.
`<case>/attention` is its factor on cos and sin.

rotated.safetensors: for each case `<case>/x` (B, H, L, D) in f32, `<case>/positions` (B, L) in f64, and `<case>/y`:
x after rotation, computed in f64 from frequencies in f64. Half-split cases come from Llama's apply_rotary_pos_emb,
interleaved ones from GPT-J's, `onnx_…` from the reference evaluator of ONNX's RotaryEmbedding.

The metadata has one entry, `cases`: JSON with the options of each case.
"""

import contextlib
import json
import pathlib
import zlib

import numpy as np
import onnx
import torch
import transformers
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from safetensors.torch import save_file
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_interleaved
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_half_split

FOLDER = pathlib.Path(__file__).parent / "rotary"

# Options with the names of transformers. `size` is the number of rotated dimensions of `head_size`.
FREQUENCIES = [
    {"name": "plain_64", "type": "default", "head_size": 64},
    {"name": "plain_2", "type": "default", "head_size": 2},
    {"name": "plain_base_500000", "type": "default", "head_size": 128, "base": 500000.0},
    {"name": "linear_4", "type": "linear", "head_size": 64, "factor": 4.0},
    {"name": "linear_2_5_partial", "type": "linear", "head_size": 80, "size": 32, "factor": 2.5},
    {"name": "dynamic_short", "type": "dynamic", "head_size": 64, "factor": 2.0, "original": 2048, "length": 1000},
    {"name": "dynamic_long", "type": "dynamic", "head_size": 64, "factor": 2.0, "original": 2048, "length": 8192},
    {"name": "dynamic_partial", "type": "dynamic", "head_size": 96, "size": 48, "factor": 3.5, "original": 512,
     "length": 1537, "base": 25000.0},
    {"name": "yarn_qwen", "type": "yarn", "head_size": 128, "base": 1000000.0, "factor": 4.0, "original": 32768},
    {"name": "yarn_16", "type": "yarn", "head_size": 64, "factor": 16.0, "original": 4096},
    {"name": "yarn_no_truncate", "type": "yarn", "head_size": 64, "base": 150000.0, "factor": 32.0, "original": 4096,
     "truncate": False},
    {"name": "yarn_betas", "type": "yarn", "head_size": 96, "factor": 8.0, "original": 2048, "beta_fast": 20.0,
     "beta_slow": 2.5},
    {"name": "yarn_attention", "type": "yarn", "head_size": 64, "factor": 40.0, "original": 4096,
     "attention_factor": 1.25},
    {"name": "yarn_factor_1", "type": "yarn", "head_size": 64, "factor": 1.0, "original": 4096},
    {"name": "yarn_partial", "type": "yarn", "head_size": 128, "size": 64, "factor": 2.0, "original": 8192},
    {"name": "yarn_short_original", "type": "yarn", "head_size": 32, "factor": 4.0, "original": 5},
    {"name": "yarn_long_original", "type": "yarn", "head_size": 8, "base": 10.0, "factor": 4.0, "original": 1000000},
    {"name": "yarn_clamped", "type": "yarn", "head_size": 16, "base": 10.0, "factor": 4.0, "original": 1000},
    {"name": "llama3_8", "type": "llama3", "head_size": 128, "base": 500000.0, "factor": 8.0, "original": 8192,
     "low": 1.0, "high": 4.0},
    {"name": "llama3_32", "type": "llama3", "head_size": 64, "base": 500000.0, "factor": 32.0, "original": 8192,
     "low": 1.0, "high": 4.0},
    {"name": "llama3_other", "type": "llama3", "head_size": 64, "factor": 3.0, "original": 1024, "low": 0.5,
     "high": 9.0},
]

# `frequencies` names one of the cases above.
ROTATED = [
    {"name": "half_split", "frequencies": "plain_64", "by": "llama", "shape": (2, 3, 5, 64)},
    {"name": "half_split_one_pair", "frequencies": "plain_2", "by": "llama", "shape": (2, 1, 3, 2)},
    {"name": "half_split_partial", "frequencies": "linear_2_5_partial", "by": "llama", "shape": (1, 2, 4, 80)},
    {"name": "half_split_yarn", "frequencies": "yarn_16", "by": "llama", "shape": (1, 2, 5, 64)},
    {"name": "half_split_llama3", "frequencies": "llama3_8", "by": "llama", "shape": (1, 2, 3, 128)},
    {"name": "interleaved", "frequencies": "plain_64", "by": "gptj", "shape": (2, 3, 5, 64)},
    {"name": "interleaved_partial", "frequencies": "dynamic_partial", "by": "gptj", "shape": (1, 2, 4, 96)},
    {"name": "interleaved_yarn", "frequencies": "yarn_attention", "by": "gptj", "shape": (1, 2, 3, 64)},
    {"name": "onnx_half_split", "frequencies": "plain_64", "by": "onnx", "shape": (2, 2, 3, 64)},
    {"name": "onnx_interleaved", "frequencies": "plain_64", "by": "onnx", "interleaved": 1, "shape": (2, 2, 3, 64)},
    {"name": "onnx_interleaved_partial", "frequencies": "linear_2_5_partial", "by": "onnx", "interleaved": 1,
     "shape": (1, 2, 3, 80)},
]


@contextlib.contextmanager
def f32_stands_for_f64():
    """transformers uses torch.float and torch.float32; inside this context, both are f64."""
    before = torch.float, torch.float32
    torch.float = torch.float32 = torch.float64
    try:
        yield
    finally:
        torch.float, torch.float32 = before


def rope_function(case):
    """(frequencies, factor) of transformers' function for the case."""
    head_size, size = case["head_size"], case.get("size", case["head_size"])
    parameters = {"rope_type": case["type"], "rope_theta": case.get("base", 10000.0),
                  "partial_rotary_factor": size / head_size}
    renamed = {"original": "original_max_position_embeddings", "low": "low_freq_factor", "high": "high_freq_factor"}
    for name in ("factor", "original", "low", "high", "beta_fast", "beta_slow", "attention_factor", "truncate"):
        if name in case and (case["type"], name) != ("dynamic", "original"):
            parameters[renamed.get(name, name)] = case[name]
    # "dynamic" takes this as the original length; the other types only compare it with their own value, and may warn.
    longest = int(case.get("original", 2048) * (1 if case["type"] == "dynamic" else case.get("factor", 1)))
    config = LlamaConfig(hidden_size=head_size, num_attention_heads=1, head_dim=head_size, rope_parameters=parameters,
                         max_position_embeddings=longest)
    if case["type"] == "default":
        return LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    return ROPE_INIT_FUNCTIONS[case["type"]](config, device="cpu", seq_len=case.get("length"))


def make_frequencies():
    tensors = {}
    for case in FREQUENCIES:
        single, factor = rope_function(case)
        with f32_stands_for_f64():
            double, factor_again = rope_function(case)
        assert single.dtype == torch.float32 and double.dtype == torch.float64, case["name"]
        assert factor == factor_again
        assert single.numel() == case.get("size", case["head_size"]) // 2, case["name"]
        assert torch.allclose(single.double(), double, rtol=2e-6, atol=0.0), case["name"]
        tensors[f"{case['name']}/f32"] = single
        tensors[f"{case['name']}/f64"] = double
        tensors[f"{case['name']}/attention"] = torch.tensor([factor], dtype=torch.float64)
    return tensors


def onnx_rotation(x, cos, sin, size, interleaved):
    """cos and sin are (B, L, size / 2), which the operator uses directly if no position_ids are given."""
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"], interleaved=interleaved,
                            rotary_embedding_dim=size)
    inputs = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in ("x", "cos", "sin")]
    output = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    model = helper.make_model(helper.make_graph([node], "rotary", inputs, [output]),
                              opset_imports=[helper.make_opsetid("", 23)])
    found = ReferenceEvaluator(model).run(None, {"x": x.numpy(), "cos": cos.numpy(), "sin": sin.numpy()})[0]
    return torch.from_numpy(np.ascontiguousarray(found))


def make_rotated(frequencies):
    tensors = {}
    for case in ROTATED:
        rng = np.random.default_rng(zlib.crc32(case["name"].encode()))
        of = case["frequencies"]
        b, _, length, _ = case["shape"]
        x = torch.from_numpy(rng.standard_normal(case["shape"]).astype(np.float32))
        positions = torch.from_numpy(rng.integers(0, 5000, (b, length)))
        positions[0, 0] = 0
        angles = positions[..., None].double() * frequencies[f"{of}/f64"]
        factor = frequencies[f"{of}/attention"]
        cos, sin = angles.cos() * factor, angles.sin() * factor  # (B, L, size / 2)
        size = 2 * cos.shape[-1]
        turned, rest = x.double()[..., :size], x.double()[..., size:]
        if case["by"] == "llama":
            y, _ = turn_half_split(turned, turned, torch.cat((cos, cos), -1), torch.cat((sin, sin), -1))
        elif case["by"] == "gptj":  # in the order (B, L, H, D)
            y = turn_interleaved(turned.transpose(1, 2), sin, cos).transpose(1, 2)
        else:
            y = onnx_rotation(x.double(), cos, sin, size, case.get("interleaved", 0))[..., :size]
        assert y.dtype == torch.float64
        tensors[f"{case['name']}/x"] = x
        tensors[f"{case['name']}/positions"] = positions.double()
        tensors[f"{case['name']}/y"] = torch.cat((y, rest), -1).contiguous()
    return tensors


def main():
    assert torch.__version__.startswith("2.15."), torch.__version__
    assert transformers.__version__ == "5.22.2", transformers.__version__
    assert onnx.__version__ == "1.23.2", onnx.__version__
    FOLDER.mkdir(exist_ok=True)
    frequencies = make_frequencies()
    for name, tensors, cases in (("frequencies", frequencies, FREQUENCIES),
                                 ("rotated", make_rotated(frequencies), ROTATED)):
        path = FOLDER / f"{name}.safetensors"
        save_file(tensors, path, metadata={"cases": json.dumps(cases)})
        print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
