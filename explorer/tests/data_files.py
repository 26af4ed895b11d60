"""Shared by tests of Your data: files, their weights computed by NumPy, and the view's keys and buttons."""

import csv
import io
import json
import pathlib
import re
import struct

import numpy as np
import pytest
from conftest import until

READ = "document.querySelector('.data-reading').textContent"


def softmax(scores):
    high = np.exp(scores - scores.max(-1, keepdims=True))
    return high / high.sum(-1, keepdims=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights_of(q, k, causal=False):
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1 + scores.shape[-1] - scores.shape[-2])
        scores = np.where(hidden, -np.inf, scores)
    return softmax(scores)


def safetensors(tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, tensor in tensors.items():
        kind = {"float32": "F32", "float64": "F64", "float16": "F16", "uint16": "BF16"}[tensor.dtype.name]
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(compressed=True, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def drop(page, **files):
    """Loads files in the page; the keyword weights_npy stands for the name weights.npy."""
    page.set_input_files("#data-files", [
        {"name": re.sub(r"_(npy|npz|safetensors|txt|json)$", r".\1", name), "mimeType": "", "buffer": content}
        for name, content in files.items()])


def shown(page, seconds=30):
    until(page, "document.querySelector('.data-canvas')?.getAttribute('aria-busy') === 'false'", seconds)


def filled(page, seconds=60):
    until(page, "document.querySelector('.data-filling progress')?.hidden", seconds)


def select(page, head):
    if page.locator(".data-head").count() > 1:
        page.click(f".data-head[data-head='{head}']")
    until(page, f"document.querySelector('#data-heading').textContent.endsWith(' {head}')")
    shown(page)


def read(page, query, key):
    """The exact weight that the view reports for a cell, which is selected with the keyboard."""
    page.focus(".data-canvas")
    for press in ["0", "Home", "PageUp", "PageUp", "PageUp", *["ArrowDown"] * query, *["ArrowRight"] * key]:
        page.keyboard.press(press)
    until(page, f"/^query {query}( .*)? → key {key}( .*)?: /.test({READ})")
    return float(page.get_attribute(".data-reading", "data-value"))


def check(page, weights, places=((0, 0, 0), (-1, 3, 1), (-1, -1, -1)), within=2e-6):
    """Compares cells of `weights`, (H, Lq, Lk), with what the view shows."""
    shown(page)
    assert page.inner_text(".data-alerts") == ""
    for head, query, key in places:
        head, query, key = (range(size)[place] for size, place in zip(weights.shape, (head, query, key)))
        select(page, head)
        assert read(page, query, key) == pytest.approx(weights[head, query, key], abs=within), (head, query, key)


WEIGHTS = softmax(2 * numbers(2, 3, 9, 12).astype(np.float64)).astype(np.float32)


EMBED, LENGTH = 24, 11


def layer_of(family):
    """The tensors of a layer, its query weight and bias, and its key weight and bias. Weights are (width, EMBED)."""
    wq, wk, wv, wo = (numbers(EMBED, EMBED, seed=n) / 3 for n in range(4))
    bq, bk, bv = (numbers(EMBED, seed=n) / 2 for n in range(4, 7))
    none = np.zeros(EMBED, np.float32)
    if family == "torch":
        return {"in_proj_weight": np.concatenate([wq, wk, wv]), "in_proj_bias": np.concatenate([bq, bk, bv]),
                "out_proj.weight": wo}, wq, bq, wk, bk
    if family == "W_q":
        return {"a.W_q.weight": wq, "a.W_q.bias": bq, "a.W_k.weight": wk, "a.W_k.bias": bk, "a.W_v.weight": wv,
                "a.W_v.bias": bv, "a.W_o.weight": wo}, wq, bq, wk, bk
    if family == "c_attn":
        return {"h.0.attn.c_attn.weight": np.ascontiguousarray(np.concatenate([wq, wk, wv]).T),
                "h.0.attn.c_attn.bias": np.concatenate([bq, bk, bv]), "h.0.attn.c_proj.weight": wo}, wq, bq, wk, bk
    # Two query heads share one key head.
    return {"q_proj.weight": wq, "k_proj.weight": wk[:12], "v_proj.weight": wv[:12], "o_proj.weight": wo}, \
        wq, none, wk[:12], none[:12]


def split(x, weight, bias, size):
    return (x.astype(np.float64) @ weight.T + bias).reshape(len(x), -1, size).swapaxes(0, 1)


def saved(page, kind):
    with page.expect_download() as waiting:
        page.click(f"#data-{kind}")
    return waiting.value.path().read_bytes()


def table(content):
    rows = list(csv.reader(io.StringIO(content.decode())))
    return rows[0][1:], [row[0] for row in rows[1:]], np.array([[float(each) for each in row[1:]] for row in rows[1:]])


# The peak and the current memory, in MB, of the renderer with the highest peak.
def memory():
    largest = (0, 0)
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if "--type=renderer" in (status.parent / "cmdline").read_text():
                text = status.read_text()
                largest = max(largest, tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) // 1024
                                             for name in ("VmHWM", "VmRSS")))
        except (OSError, TypeError):
            pass
    return largest
