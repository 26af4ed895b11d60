"""The table of ratios in README.md and README.zh-CN.md, written anew by each `make bench`."""

import pathlib
import re
import textwrap

import goals

PLACE = re.compile(r"(<!-- ratios, by make bench -->\n).*?(<!-- end of ratios -->)", re.S)
WORDS = {
    "README.md": {
        "header": ["rapt is faster by", "than PyTorch {torch}", "than ONNX Runtime {onnx}"],
        "full": "forward, n 128–4096", "causal": "forward, causal", "masks": "a bool or float mask of full size",
        "window": "a window of 256 among 8192 keys", "decode": "decoding, 32 heads on 8, 32768 keys",
        "weights": "forward with mean weights", "layer": "`MultiheadAttention`, 1024 tokens, causal",
        "layer with weights": "the same with `need_weights=True`", "backward": "backward, n 512–4096",
        "training": "a training step of the layer", "training with dropout": "the same with dropout 0.1",
        "below": "On {cpu}, {cores} cores, f32 (decoding: f32, bf16 and f16), 1 and 2 threads, {date}: from the least "
                 "favourable case to the most ([all of them](docs/benchmarks.md)).",
    },
    "README.zh-CN.md": {
        "header": ["rapt 快多少倍", "比 PyTorch {torch}", "比 ONNX Runtime {onnx}"],
        "full": "前向，n 128–4096", "causal": "前向，因果掩码", "masks": "完整大小的布尔或浮点掩码",
        "window": "8192 个键里的窗口 256", "decode": "解码，32 个头共用 8 个，32768 个键",
        "weights": "前向并返回平均权重", "layer": "`MultiheadAttention`，1024 个词元，因果",
        "layer with weights": "同上，`need_weights=True`", "backward": "反向，n 512–4096",
        "training": "这一层的一步训练", "training with dropout": "同上，dropout 0.1",
        "below": "{cpu}，{cores} 核，f32（解码：f32、bf16、f16），1 和 2 个线程，{date}：从最不利的情形到最有利的情形"
                 "（[全部结果](docs/benchmarks.md)）。",
    },
}


def rows(peers):
    """(key, ratios over PyTorch, ratios over ONNX Runtime)"""
    everything = lambda entry: True
    later = lambda group, entry: not goals.is_first(group, entry)

    def over(name, about, keep=lambda group, entry: True):
        return goals.over_peer_in(peers, name, about, keep)

    return [
        *((key, *(goals.over_peer(peers, name, everything, causal) for name in ("PyTorch", "ONNX Runtime")))
          for key, causal in (("full", False), ("causal", True))),
        *((key, over("PyTorch", key, later), over("ONNX Runtime", key, later)) for key in ("masks", "window")),
        ("decode", over("PyTorch", "decoding"), []),
        ("weights", over("PyTorch", "weights", later), []),
        *((key, over("PyTorch", key), []) for key in ("layer", "layer with weights")),
        ("backward", over("PyTorch", "backward") + over("PyTorch", "backward of one head"), []),
        *((key, over("PyTorch", key), []) for key in ("training", "training with dropout")),
    ]


def span(ratios):
    if not ratios:
        return "–"
    written = [f"{each:.2f}" if each < 10 else f"{each:.0f}" for each in (min(ratios), max(ratios))]
    return written[0] if written[0] == written[1] else "–".join(written)


def table(words, peers, machine):
    versions = {"torch": peers["versions"]["PyTorch"], "onnx": peers["versions"]["ONNX Runtime"]}
    lines = ["| " + " | ".join(each.format(**versions) for each in words["header"]) + " |", "|---|---:|---:|"]
    lines += [f"| {words[key]} | {span(torch)} | {span(onnx)} |" for key, torch, onnx in rows(peers)]
    below = words["below"].format(cpu=machine["cpu"], cores=machine["cores"], date=peers["date"])
    wrapped = textwrap.fill(below, 118, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + f"\n\n{wrapped}\n"


def write(root, peers, machine):
    """Puts the table in its place in both pages."""
    for name, words in WORDS.items():
        page = pathlib.Path(root) / name
        text = page.read_text(encoding="utf-8")
        if not PLACE.search(text):
            raise SystemExit(f"{page}: no place for the ratios")
        page.write_text(PLACE.sub(lambda found: found[1] + table(words, peers, machine) + found[2], text),
                        encoding="utf-8")
