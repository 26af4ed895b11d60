"""The speed tables of README.md and README.zh-CN.md, from the records of every machine in docs/benchmarks."""

import json
import math
import pathlib
import re
import textwrap

PLACE = re.compile(r"(<!-- ratios, by make bench -->\n).*?(<!-- end of ratios -->)", re.S)
PEERS = ("PyTorch", "ONNX Runtime")
# The rows of the table: the name of a row, the groups of bench/peers/cases.py that it covers, and a function that
# selects their cases.
LINES = (
    ("full", ("lengths", "masks", "window"), lambda case: case["plain"] and not case["causal"]),
    ("causal", ("lengths",), lambda case: case["causal"]),
    ("bf16", ("16 bits",), lambda case: case["dtype"] == "bf16"),
    ("f16", ("16 bits",), lambda case: case["dtype"] == "f16"),
    ("masks", ("masks",), lambda case: not case["plain"]),
    ("window", ("window",), lambda case: not case["plain"]),
    ("decode", ("decoding",), lambda case: case["dtype"] == "f32"),
    ("decode 16", ("decoding",), lambda case: case["dtype"] != "f32"),
    ("weights", ("weights",), lambda case: not case["plain"]),
    ("layer", ("layer", "layer as classes"), lambda case: True),
    ("layer with weights", ("layer with weights",), lambda case: True),
    ("backward", ("backward", "backward of one head"), lambda case: True),
    ("training", ("training",), lambda case: True),
    ("training with dropout", ("training with dropout",), lambda case: True),
)
WORDS = {
    "README.md": {
        "over": "Speedup over {peer}, {machine}", "and": ", ",
        "full": "forward, n 128–8192", "causal": "forward, causal", "bf16": "forward in bf16, n 2048",
        "f16": "forward in f16, n 2048", "masks": "a bool or float mask of full size",
        "window": "a window of 256 among 8192 keys", "decode": "decoding, 32 heads on 8 kv heads, 32768 keys",
        "decode 16": "the same in bf16 and f16", "weights": "forward with mean weights",
        "layer": "`MultiheadAttention`, 1024 tokens, causal", "layer with weights": "the same with `need_weights=True`",
        "backward": "backward, n 512–4096", "training": "a training step of the layer",
        "training with dropout": "the same with dropout 0.1",
        "below": "A range gives the worst and the best case, with 1 and with 2 threads where both were measured; a "
                 "single number means one case, or cases that round alike. Below 1, the other library is faster. "
                 "Inputs are f32 unless the row names another type.",
        "machine": "{name}: {cpu}, {cores} cores, {isa}; {versions}; {date} ([every case](docs/benchmarks/{page})).",
        "ahead": "Every case in which the other library is faster (b: batch, h: heads, n: tokens, d: head size):",
        "case": "case", "none": "None.",
        "columns": ("machine", "library", "case", "1 thread", "2 threads"),
    },
    "README.zh-CN.md": {
        "over": "相对 {peer} 的加速比，{machine}", "and": "、",
        "full": "前向，n 128–8192", "causal": "前向，因果掩码", "bf16": "bf16 前向，n 2048",
        "f16": "f16 前向，n 2048", "masks": "完整尺寸的布尔或浮点掩码",
        "window": "8192 个键，窗口大小 256", "decode": "解码，32 个查询头、8 个键值头，32768 个键",
        "decode 16": "同上，bf16 和 f16", "weights": "前向并返回平均权重",
        "layer": "`MultiheadAttention`，1024 个词元，因果", "layer with weights": "同上，`need_weights=True`",
        "backward": "反向，n 512–4096", "training": "该层的一个训练步", "training with dropout": "同上，dropout 0.1",
        "below": "区间为最差与最好的情形，涵盖 1 线程和 2 线程（若两者都测过）；单个数表示只有一种情形，或各情形舍入后相同。"
                 "小于 1 表示对比库更快。未注明类型的为 f32。",
        "machine": "{name}：{cpu}，{cores} 核，{isa}；{versions}；{date}（[全部结果](docs/benchmarks/{page})）。",
        "ahead": "对比库更快的全部情形（b：批大小，h：头数，n：词元数，d：头大小）：", "case": "情形", "none": "无。",
        "columns": ("机器", "对比库", "情形", "1 线程", "2 线程"),
    },
}


def family(peer):
    """The peer's name without the way it is called: a row covers all ways to call PyTorch."""
    return peer.partition(",")[0]


def ratios(record, line, peer):
    _, groups, keep = line
    return [case["ratio"] for case in record["cases"]
            if case["about"] in groups and family(case["peer"]) == peer and keep(case)]


def span(found):
    if not found:
        return "–"
    # A ratio below 1 is rounded down, so that it never becomes 1.00.
    written = [f"{math.floor(100 * each) / 100:.2f}" if each < 1 else f"{each:.2f}" if each < 10 else f"{each:.0f}"
               for each in (min(found), max(found))]
    return written[0] if written[0] == written[1] else "–".join(written)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def speed_table(words, records):
    columns = [(peer, record) for peer in PEERS for record in records]
    lines = [row(["", *(words["over"].format(peer=peer, machine=record["machine"]["name"]) for peer, record in columns)]),
             "|---" + "|---:" * len(columns) + "|"]
    for line in LINES:
        cells = [span(ratios(record, line, peer)) for peer, record in columns]
        lines.append(row([words[line[0]], *cells]))
    return "\n".join(lines)


def ahead_table(words, records):
    """Each case in which a peer is faster, with the worst ratio of each machine first."""
    found = {}
    for record in records:
        for case in record["cases"]:
            if case["ratio"] < 1.0:
                key = (record["machine"]["name"], case["peer"], case["case"])
                found.setdefault(key, {})[case["threads"]] = case["ratio"]
    if not found:
        return words["none"]
    lines = [row(words["columns"]), "|---|---|---|---:|---:|"]
    for key, by_threads in sorted(found.items(), key=lambda item: (item[0][0], min(item[1].values()))):
        lines.append(row([*key, *(span([by_threads[n]] if n in by_threads else []) for n in (1, 2))]))
    return "\n".join(lines)


def text(words, records):
    parts = [speed_table(words, records), words["below"]]
    for record in records:
        versions = words["and"].join(f"{peer} {version}" for peer, version in record["versions"].items())
        parts.append(words["machine"].format(**record["machine"], versions=versions, date=record["date"]))
    parts += [words["ahead"], ahead_table(words, records)]
    wrap = lambda part: part if part.startswith("|") else textwrap.fill(
        part, 118, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(wrap(part) for part in parts) + "\n"


INDEX = """# Benchmarks

`make bench` writes a page for the machine that it runs on, a record of the measured ratios (`.json`) beside that page,
and this list. The speed tables of the READMEs come from the records of all machines.

"""


def write(root):
    """Writes the index of docs/benchmarks, and inserts the tables in both READMEs."""
    root = pathlib.Path(root)
    folder = root / "docs" / "benchmarks"
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    pages = ["- [{name}]({page}): {cpu}, {cores} cores, {isa}".format(**record["machine"]) for record in records]
    (folder / "README.md").write_text(INDEX + "\n".join(pages) + "\n", encoding="utf-8")
    for name, words in WORDS.items():
        page = root / name
        before = page.read_text(encoding="utf-8")
        if not PLACE.search(before):
            raise SystemExit(f"{page}: no place for the ratios")
        page.write_text(PLACE.sub(lambda found: found[1] + text(words, records) + found[2], before), encoding="utf-8")
