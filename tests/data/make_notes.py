"""Makes tests/data/notes/*.safetensors: each note's own code, run by PyTorch on fixed inputs with fixed weights.

Made with PyTorch 2.15.0 on the CPU. Running it again with that version gives the same files, bit for bit:

    python3 tests/data/make_notes.py

There are five notes on attention, and a file for each; tests/attention/notes_test.cc has the equivalent calls of rapt.
Tensors are named `<run>/<input or parameter>` (f32 or bool) and `<run>/f64/<answer>`, `<run>/f32/<answer>`. Every
module is in eval mode: dropout is off.

Some of the code does not run as printed. All repairs:

  all notes   forward also returns the attention weights, because the tests compare them
  note 1      only the lines `qkv.permute(2, 0, 3, 1, 4)` and `queries, keys, values = qkv` are printed; the module
              around them (one linear layer, a causal buffer, an output layer) is written here
  note 1      MHAPyTorchClass is used and never defined; it is written here from the arguments that it is given
  note 1      the note says that need_weights=True gives weights (B, H, L, L). That requires average_attn_weights=False;
              otherwise PyTorch gives the mean over heads, (B, L, L). There are runs of both
  note 2      the class is quoted line by line; it is put together here
  note 2      `mask_fill` is not a tensor method; it becomes `masked_fill`
  note 2      `farward` becomes `forward`
  note 3      `from tkinter import NO` is left out
  note 3      a mask of (B, L, L), as the note's comment describes it, does not broadcast against (B, H, L, L); the
              caller unsqueezes it to (B, 1, L, L). If B = H, the note's code runs with the mask as it is, and reads it
              as (1, H, L, L): the run `mask_of_heads`
  note 5      `import math` and `import torch.nn.functional as F` are missing; ModelArgs is written here
  note 5      `self.is_causal` is read and never set; the constructor sets it here
  note 5      `scores.float()` would round an f64 run to f32; f64 runs leave it out
  note 5      `model_parallel_size = 1` becomes an argument, so that slices can be made
"""

import math
import pathlib
import zlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "notes"


# ---- Note 1: packed projections, batch_first, need_weights ----------------------------------------------------------


class PackedQkv(nn.Module):
    def __init__(self, d_in, d_out, num_heads, context_length, qkv_bias=False):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape
        qkv = self.qkv(x).view(b, num_tokens, 3, self.num_heads, self.head_dim)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, b, num_heads, num_tokens, head_dim)
        queries, keys, values = qkv
        scores = queries @ keys.transpose(-2, -1)
        scores = scores.masked_fill(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        context = (weights @ values).transpose(1, 2).contiguous().view(b, num_tokens, -1)
        return self.proj(context), weights


class MHAPyTorchClass(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, need_weights=True,
                 batch_first=True, average=True):
        super().__init__()
        assert d_in == d_out
        self.multihead_attn = nn.MultiheadAttention(d_out, num_heads, dropout=dropout, bias=qkv_bias,
                                                    batch_first=batch_first)
        self.need_weights, self.batch_first, self.average = need_weights, batch_first, average
        self.proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x):
        num_tokens = x.shape[1 if self.batch_first else 0]
        out, weights = self.multihead_attn(x, x, x, attn_mask=self.mask[:num_tokens, :num_tokens],
                                           need_weights=self.need_weights, average_attn_weights=self.average)
        return self.proj(out), weights


# ---- Note 2: the lines of a transformer's multi-head attention, one by one ------------------------------------------


class MultiHeadAttention2(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def scaled_dot_product_attention(self, Q, K, V, mask=None):
        attn_scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            attn_scores = attn_scores.masked_fill(mask == 0, -1e9)
        attn_probs = torch.softmax(attn_scores, dim=-1)
        return torch.matmul(attn_probs, V), attn_probs

    def split_heads(self, x):
        batch_size, seq_length, d_model = x.size()
        return x.view(batch_size, seq_length, self.num_heads, self.d_k).transpose(1, 2)

    def combine_heads(self, x):
        batch_size, _, seq_length, d_k = x.size()
        return x.transpose(1, 2).contiguous().view(batch_size, seq_length, self.d_model)

    def forward(self, Q, K, V, mask=None):
        Q, K, V = self.split_heads(self.W_q(Q)), self.split_heads(self.W_k(K)), self.split_heads(self.W_v(V))
        out, weights = self.scaled_dot_product_attention(Q, K, V, mask)
        return self.W_o(self.combine_heads(out)), weights


# ---- Note 3: separate projections without bias, masked_fill(mask == 0, -1e9) ----------------------------------------


class MultiHeadAttention3(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.scale = math.sqrt(self.d_k)

    def forward(self, query, key, value, mask=None):
        batch_size = query.size(0)
        Q, K, V = self.W_q(query), self.W_k(key), self.W_v(value)
        Q = Q.view(batch_size, -1, self.num_heads, self.d_k).transpose(1, 2)
        K = K.view(batch_size, -1, self.num_heads, self.d_k).transpose(1, 2)
        V = V.view(batch_size, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(Q, K.transpose(-2, -1)) / self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn_weights = self.dropout(F.softmax(scores, dim=-1))
        out = torch.matmul(attn_weights, V)
        out = out.transpose(1, 2).contiguous().view(batch_size, -1, self.d_model)
        return self.W_o(out), attn_weights


# ---- Note 4: mask * -1e9, and why split_head needs its transpose ----------------------------------------------------


class MultiHeadAttention4(nn.Module):
    def __init__(self, hidden_size, num_heads, wrong_split=False):
        super().__init__()
        self.num_heads, self.head_dim, self.wrong_split = num_heads, hidden_size // num_heads, wrong_split
        self.q_linear = nn.Linear(hidden_size, hidden_size)
        self.k_linear = nn.Linear(hidden_size, hidden_size)
        self.v_linear = nn.Linear(hidden_size, hidden_size)
        self.o_linear = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_state, attention_mask=None):
        batch_size = hidden_state.size(0)
        query = self.split_head(self.q_linear(hidden_state))
        key = self.split_head(self.k_linear(hidden_state))
        value = self.split_head(self.v_linear(hidden_state))
        attention_scores = torch.matmul(query, key.transpose(-1, -2)) / torch.sqrt(
            torch.tensor(self.head_dim, dtype=torch.float32))
        if attention_mask is not None:
            attention_scores += attention_mask * -1e9
        attention_probs = torch.softmax(attention_scores, dim=-1)
        output = torch.matmul(attention_probs, value)
        output = output.transpose(1, 2).reshape(batch_size, -1, self.head_dim * self.num_heads)
        return self.o_linear(output), attention_probs

    def split_head(self, x):
        batch_size = x.size(0)
        if self.wrong_split:  # what the note warns of
            return x.reshape(batch_size, self.num_heads, -1, self.head_dim)
        return x.reshape(batch_size, -1, self.num_heads, self.head_dim).transpose(1, 2)


# ---- Note 5: the plain function, triu(-inf) cut to the sequence, and a slice of the heads ---------------------------


def attention(query, key, value, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def masked_attention(xq, xk, xv, mask):  # the note's fragment; `mask` is (1, max_seq_len, max_seq_len)
    seqlen = xq.shape[1]
    scores = torch.matmul(xq, xk.transpose(-2, -1)) / math.sqrt(xq.size(-1))
    scores = scores + mask[:, :seqlen, :seqlen]
    scores = F.softmax(scores, dim=-1).type_as(xq)
    return torch.matmul(scores, xv), scores


@dataclass
class ModelArgs:
    dim: int = 8
    n_heads: int = 4
    max_seq_len: int = 9
    dropout: float = 0.1


class MultiHeadAttention5(nn.Module):
    def __init__(self, args, is_causal=False, model_parallel_size=1):
        super().__init__()
        self.is_causal = is_causal
        self.n_local_heads = args.n_heads // model_parallel_size
        self.head_dim = args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, self.n_local_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_local_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_local_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(self.n_local_heads * self.head_dim, args.dim, bias=False)
        self.attn_dropout = nn.Dropout(args.dropout)
        self.resid_dropout = nn.Dropout(args.dropout)
        if is_causal:
            mask = torch.full((1, 1, args.max_seq_len, args.max_seq_len), float("-inf"))
            self.register_buffer("mask", torch.triu(mask, diagonal=1))

    def forward(self, q, k, v):
        bsz, seqlen, _ = q.shape
        xq, xk, xv = self.wq(q), self.wk(k), self.wv(v)
        xq = xq.view(bsz, seqlen, self.n_local_heads, self.head_dim).transpose(1, 2)
        xk = xk.view(bsz, seqlen, self.n_local_heads, self.head_dim).transpose(1, 2)
        xv = xv.view(bsz, seqlen, self.n_local_heads, self.head_dim).transpose(1, 2)
        scores = torch.matmul(xq, xk.transpose(2, 3)) / math.sqrt(self.head_dim)
        if self.is_causal:
            assert hasattr(self, "mask")
            scores = scores + self.mask[:, :, :seqlen, :seqlen]
        scores = F.softmax(scores if scores.dtype == torch.float64 else scores.float(), dim=-1).type_as(xq)
        scores = self.attn_dropout(scores)
        output = torch.matmul(scores, xv).transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.resid_dropout(self.wo(output)), scores


# ---- The runs -------------------------------------------------------------------------------------------------------


def draw(name, *shape, scale=1.0):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy((rng.standard_normal(shape) * scale).astype(np.float32))


class Note:
    def __init__(self, name):
        self.name, self.tensors = name, {}

    def fixed(self, module, seed=""):
        """The module with weights that depend only on its parameters' names."""
        for name, parameter in module.named_parameters():
            parameter.data = draw(f"{self.name}/{seed}{name}", *parameter.shape, scale=0.6)
        return module.eval()

    def run(self, name, call, inputs, only_f32=False):
        """`call` is a module or a function of the inputs' values that gives (output, weights or None)."""
        module = isinstance(call, nn.Module)
        stored = dict(inputs)
        if module:
            stored.update(call.state_dict())
        self.tensors.update({f"{name}/{n}": x.contiguous().clone() for n, x in stored.items() if x is not None})
        for kind, dtype in (("f64", torch.float64), ("f32", torch.float32)):
            if only_f32 and kind == "f64":
                continue
            if module:
                call = call.to(dtype)
            cast = [x if x is None or x.dtype == torch.bool else x.to(dtype) for x in inputs.values()]
            with torch.no_grad():
                out, weights = call(*cast)
            answers = {"out": out} if weights is None else {"out": out, "weights": weights}
            self.tensors.update({f"{name}/{kind}/{n}": x.contiguous().clone() for n, x in answers.items()})
        if module:
            call.to(torch.float32)

    def save(self):
        path = FOLDER / f"{self.name}.safetensors"
        save_file(self.tensors, path, metadata={"torch": "2.15.0"})
        print(f"{path.name}: {len(self.tensors)} tensors, {path.stat().st_size} bytes")


def note1():
    note, args = Note("note1_packed_qkv"), {"d_in": 8, "d_out": 8, "context_length": 7, "num_heads": 2}
    x = draw("note1/x", 2, 5, 8)
    note.run("packed", note.fixed(PackedQkv(**args)), {"x": x})
    note.run("packed_with_bias", note.fixed(PackedQkv(**args, qkv_bias=True)), {"x": x})
    kinds = {"averaged": {}, "per_head": {"average": False}, "without_weights": {"need_weights": False}}
    for name, more in kinds.items():
        note.run(name, note.fixed(MHAPyTorchClass(**args, dropout=0.0, **more)), {"x": x})
    tokens_first = MHAPyTorchClass(**args, dropout=0.0, qkv_bias=True, batch_first=False, average=False)
    note.run("tokens_first", note.fixed(tokens_first), {"x": x.transpose(0, 1).contiguous()})
    note.run("batch_first", note.fixed(MHAPyTorchClass(**args, dropout=0.0, qkv_bias=True, average=False)), {"x": x})
    note.save()


def note2():
    note = Note("note2_mask_fill")
    module = note.fixed(MultiHeadAttention2(12, 3))
    Q, K, V = (draw(f"note2/{n}", 2, 5, 12) for n in "QKV")
    mask = draw("note2/mask", 2, 3, 5, 5) > -0.5  # true: seen
    mask[1, 2, 3] = False  # a row that is filled completely attends evenly
    note.run("no_mask", module, {"Q": Q, "K": K, "V": V})
    note.run("mask_of_every_head", module, {"Q": Q, "K": K, "V": V, "mask": mask})
    note.run("causal", module, {"Q": Q, "K": Q, "V": Q, "mask": torch.tril(torch.ones(5, 5)).bool()[None, None]})
    note.save()


def note3():
    note = Note("note3_masked_fill")
    module = note.fixed(MultiHeadAttention3(8, 2))
    query, key, value = (draw(f"note3/{n}", 2, 5, 8) for n in ("query", "key", "value"))
    qkv = {"query": query, "key": key, "value": value}
    mask = draw("note3/mask", 2, 5, 5) > -0.3
    mask[0, 2] = False
    note.run("no_mask", module, qkv)
    note.run("cross", module, {"query": query[:, :3], "key": key, "value": value})
    note.run("mask_of_batch", module, {**qkv, "mask": mask[:, None]})
    note.run("mask_of_heads", module, {**qkv, "mask": mask})  # (B, L, L) with B = H: read as (1, H, L, L)
    note.run("mask_of_all", module, {**qkv, "mask": draw("note3/all", 2, 2, 5, 5) > -0.3})
    note.run("one_head", note.fixed(MultiHeadAttention3(8, 1)), {**qkv, "mask": mask[:, None]})
    note.run("four_heads", note.fixed(MultiHeadAttention3(8, 4)), {**qkv, "mask": mask[:, None]})
    note.save()


def note4():
    note = Note("note4_split_head")
    x, causal = draw("note4/x", 2, 3, 8), torch.triu(torch.ones(3, 3), diagonal=1)
    module = note.fixed(MultiHeadAttention4(8, 2))
    note.run("no_mask", module, {"x": x})
    note.run("mask_times_minus_1e9", module, {"x": x, "mask": causal})
    note.run("all_masked", module, {"x": x, "mask": torch.ones(3, 3)}, only_f32=True)
    note.run("wrong_split", note.fixed(MultiHeadAttention4(8, 2, wrong_split=True)), {"x": x})
    note.save()


def note5():
    note, args = Note("note5_triu_mask"), ModelArgs()
    q, k, v = draw("note5/q", 2, 6, 4), draw("note5/k", 2, 6, 4), draw("note5/v", 2, 6, 3)
    note.run("attention", attention, {"q": q, "k": k, "v": v})
    note.run("self_attention", lambda x: attention(x, x, x), {"x": q})
    stored = torch.triu(torch.full((1, args.max_seq_len, args.max_seq_len), float("-inf")), diagonal=1)
    note.run("masked", masked_attention, {"q": q, "k": k, "v": v, "mask": stored})
    x = draw("note5/x", 2, 6, args.dim)
    for name, causal in (("module", False), ("causal_module", True)):
        note.run(name, note.fixed(MultiHeadAttention5(args, is_causal=causal)), {"q": x, "k": x, "v": x})
    # Two modules with half the heads each: rows of wq, wk and wv, and the matching columns of wo.
    whole = note.fixed(MultiHeadAttention5(args, is_causal=True))
    for part in range(2):
        local = MultiHeadAttention5(args, is_causal=True, model_parallel_size=2).eval()
        rows = slice(part * args.dim // 2, (part + 1) * args.dim // 2)
        for name in ("wq", "wk", "wv"):
            getattr(local, name).weight.data = getattr(whole, name).weight.data[rows].clone()
        local.wo.weight.data = whole.wo.weight.data[:, rows].clone()
        note.run(f"slice{part}", local, {"q": x, "k": x, "v": x})
    note.save()


if __name__ == "__main__":
    assert torch.__version__.startswith("2.15."), torch.__version__
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    FOLDER.mkdir(exist_ok=True)
    for make in (note1, note2, note3, note4, note5):
        make()
