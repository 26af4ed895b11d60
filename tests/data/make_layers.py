"""Makes tests/data/layers/*.safetensors: attention layers with parameter names in common use, and their outputs.

Made with PyTorch 2.15.0 on the CPU. Running it again with that version gives the same files:

    python3 tests/data/make_layers.py

Each file has one layer under `model.layers.0.attn.`, a norm's weight and an `input` (B, L, E), all in f32, and an
`answer`, which PyTorch computed in f64 and which is stored in f64. `several.safetensors` has two layers and nothing
else. All layers have four heads. The files have no metadata, because the writer does not keep the order of metadata
entries.
"""

import math
import pathlib
import zlib

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "layers"
PREFIX = "model.layers.0.attn."
EMBED, HEADS, HEAD, LENGTH, CONTEXT = 12, 4, 3, 5, 7


def draw(name, *shape):
    """Numbers in [-1, 1) that depend only on the name and the index; exact in f32."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy(rng.integers(-(2**20), 2**20, shape) / 2.0**20)


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is (inputs, outputs)."""

    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def put(module, path, child):
    """module.a.b = child, creating the modules in between."""
    *between, last = path.split(".")
    for name in between:
        if not hasattr(module, name):
            module.add_module(name, nn.Module())
        module = getattr(module, name)
    module.add_module(last, child)


class Layer(nn.Module):
    """Multi-head attention with linear layers of any name. `names` are q, k, v and the output, or qkv and the output."""

    def __init__(self, names, bias=(True, True, True, True), kv_heads=HEADS, linear=nn.Linear, mask=None):
        super().__init__()
        self.names, self.kv_heads = names, kv_heads
        width = kv_heads * HEAD
        if len(names) == 2:
            sizes = [(EMBED, EMBED + 2 * width), (EMBED, EMBED)]
        else:
            sizes = [(EMBED, EMBED), (EMBED, width), (EMBED, width), (EMBED, EMBED)]
        for name, (inputs, outputs), has_bias in zip(names, sizes, bias):
            put(self, name, linear(inputs, outputs, bias=has_bias))
        if mask is not None:
            self.register_buffer(*mask)
        self.causal = mask is not None

    def forward(self, x):
        layers = [self.get_submodule(name) for name in self.names]
        width = self.kv_heads * HEAD
        if len(layers) == 2:
            q, k, v = layers[0](x).split([EMBED, width, width], dim=-1)
        else:
            q, k, v = (layer(x) for layer in layers[:3])
        batch, length, _ = x.shape
        cut = lambda t, heads: t.view(batch, length, heads, HEAD).transpose(1, 2)
        q, k, v = cut(q, HEADS), cut(k, self.kv_heads), cut(v, self.kv_heads)
        k, v = (t.repeat_interleave(HEADS // self.kv_heads, dim=1) for t in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(HEAD)
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        return layers[-1]((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, EMBED))


class TorchLayer(nn.Module):
    """nn.MultiheadAttention with its own names. With kdim and vdim, key and value are the first elements of each
    token."""

    def __init__(self, **args):
        super().__init__()
        self.inner = nn.MultiheadAttention(EMBED, HEADS, batch_first=True, **args)
        self.sizes = args.get("kdim"), args.get("vdim")

    def state_dict(self, *_, **__):
        return self.inner.state_dict()

    def forward(self, x):
        key, value = (x if size is None else x[..., :size] for size in self.sizes)
        return self.inner(x, key, value)[0]


def upper(dtype):
    return torch.ones(CONTEXT, CONTEXT).triu(1).to(dtype)


def lower(dtype):
    return torch.ones(CONTEXT, CONTEXT).tril().to(dtype)


NONE = (False,) * 4
LAYERS = {
    "torch": lambda: TorchLayer(),
    "torch_no_bias": lambda: TorchLayer(bias=False),
    "torch_kdim": lambda: TorchLayer(kdim=5, vdim=7, add_bias_kv=True),
    "w_q": lambda: Layer(["W_q", "W_k", "W_v", "W_o"]),
    "w_query": lambda: Layer(["W_query", "W_key", "W_value", "out_proj"], (False, False, False, True),
                             mask=("mask", upper(torch.bool))),
    "q_linear": lambda: Layer(["q_linear", "k_linear", "v_linear", "o_linear"]),
    "distilbert": lambda: Layer(["q_lin", "k_lin", "v_lin", "out_lin"]),
    "wq": lambda: Layer(["wq", "wk", "wv", "wo"], NONE, kv_heads=2,
                        mask=("mask", torch.full((1, 1, CONTEXT, CONTEXT), -torch.inf).triu(1))),
    "o_proj": lambda: Layer(["q_proj", "k_proj", "v_proj", "o_proj"], NONE, kv_heads=1),
    "out_proj": lambda: Layer(["q_proj", "k_proj", "v_proj", "out_proj"], (True, False, True, True)),
    "bert": lambda: Layer(["self.query", "self.key", "self.value", "output.dense"]),
    "vit": lambda: Layer(["attention.query", "attention.key", "attention.value", "output.dense"]),
    "query": lambda: Layer(["query", "key", "value", "out"]),
    "to_q": lambda: Layer(["to_q", "to_k", "to_v", "to_out.0"], (False, False, False, True)),
    "qkv": lambda: Layer(["qkv", "proj"], (False, True), mask=("mask", upper(torch.float32))),
    "qkv_proj": lambda: Layer(["qkv_proj", "o_proj"], (False, False), kv_heads=2,
                              mask=("mask", lower(torch.float32)[None])),
    "gpt2": lambda: Layer(["c_attn", "c_proj"], (True, True), linear=Conv1D,
                          mask=("bias", lower(torch.bool)[None, None])),
    "nano_gpt": lambda: Layer(["c_attn", "c_proj"], (True, True)),
}


def drawn(name):
    layer = LAYERS[name]().eval()
    for parameter, value in layer.named_parameters():
        value.data = draw(f"{name}/{parameter}", *value.shape).float() / 2
    return layer


def tensors_of(layer, prefix):
    return {prefix + name: value.contiguous() for name, value in layer.state_dict().items()}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name in LAYERS:
        layer = drawn(name)
        tensors = tensors_of(layer, PREFIX)
        tensors["model.layers.0.norm.weight"] = draw(f"{name}/norm", EMBED).float()
        tensors["input"] = draw(f"{name}/input", 2, LENGTH, EMBED).float()
        with torch.no_grad():
            tensors["answer"] = layer.double()(tensors["input"].double()).contiguous()
        save_file(tensors, FOLDER / f"{name}.safetensors")
    several = {**tensors_of(drawn("w_q"), "encoder.0.attn."), **tensors_of(drawn("wq"), "encoder.1.attn.")}
    save_file(several, FOLDER / "several.safetensors")
    print(f"{len(LAYERS) + 1} files")


main()
