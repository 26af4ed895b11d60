#!/usr/bin/env python3
"""Writes this machine's page and record in docs/benchmarks, and the tables in both READMEs, from the results of a run.

    report.py FOLDER ROOT                docs/benchmarks/MACHINE.md and .json of ROOT, and its READMEs
    report.py FOLDER --page PAGE.md      that page alone

FOLDER has the results of run.sh: own.json, decode.json and prefill.json as `rapt bench attention` printed them,
backward.json as `rapt bench backward` did, product.json as `rapt bench gemm` did, mha.json and layer_decode.json as
`rapt bench mha` and `rapt bench decode` did, and peers.json as compare.py wrote it. The page's text is in page.md.
"""

import json
import pathlib
import sys

import face
import goals
import machine

PART_ONE = ("lengths", "masks", "window")  # topics of the tables with both peers


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratio(value):
    return "–" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def threads_word(count):
    return "1 thread" if count == 1 else f"{count} threads"


def own_table(own):
    threads = sorted({case["threads"] for case in own["cases"]})
    header = ["case"]
    for count in threads:
        header += [f"{threads_word(count)}, GFLOP/s", "over sgemm", "over FMA peak"]
    rows = {}
    for case in own["cases"]:
        name = case["name"].removesuffix(f" t{case['threads']}")
        rows.setdefault(name, [name]).extend(
            [f"{case['gflops']:.0f}", ratio(case["over_sgemm"]), ratio(case["over_fma"])])
    return table(header, rows.values())


def baseline_table(own):
    rows = []
    for each in own["baselines"]:
        sgemm = "none found" if each["sgemm_gflops"] is None else f"{each['sgemm_gflops']:.0f} ({each['sgemm_library']})"
        rows.append([threads_word(each["threads"]), sgemm, f"{each['fma_gflops']:.0f}", f"{each['stream_gbps']:.1f}"])
    return table(["the machine itself", "sgemm, GFLOP/s", "FMA peak, GFLOP/s", "memory stream, GB/s"], rows)


def milliseconds(entry):
    return f"{min(entry['ms']):.2f}"


def beside(group, ours, name):
    """A peer's time, and rapt's speedup."""
    other = goals.twin_of(group, ours, contestant=name)
    return ["–", "–"] if other is None else [milliseconds(other), ratio(goals.of_bests(other, ours))]


def decode_table(decode):
    rows = [[case["name"].removesuffix(f" t{case['threads']}"), str(case["threads"]), f"{case['ms_median']:.2f}",
             f"{case['gbps']:.1f}", f"{case['stream_gbps']:.1f}", case["stream_way"], ratio(case["over_stream"]),
             ratio(case["over_streams"])]
            for case in decode["cases"]]
    return table(["case", "threads", "rapt, ms", "GB/s", "streaming read, GB/s", "read by", "rapt over that read",
                  "over the fastest read"], rows)


def decode_peers(peers):
    rows = []
    for group, ours in goals.entries_of(peers, "decoding", contestant="rapt"):
        other = goals.twin_of(group, ours, contestant="PyTorch")
        rows.append([ours["case"], str(ours["threads"]), milliseconds(ours), *beside(group, ours, "PyTorch"),
                     other["way"], *beside(group, ours, "PyTorch, folded")])
    return table(["case", "threads", "rapt, ms", "PyTorch, ms", "speedup", "PyTorch's way", "folded, ms",
                  "speedup"], rows)


def prefill_table(prefill):
    rows = [[case["name"].removesuffix(f" t{case['threads']}"), str(case["threads"]), f"{case['ms_median']:.2f}",
             f"{case['gflops']:.0f}", ratio(case["over_sgemm"])] for case in prefill["cases"]]
    return table(["case", "threads", "rapt, ms", "GFLOP/s", "over sgemm"], rows)


def product_table(product):
    libraries = list(product["cases"][0]["libraries"])
    rows = [[case["name"].removesuffix(f" t{case['threads']}"), str(case["threads"]), f"{case['ms_median']:.3f}",
             f"{case['gflops']:.0f}", *(f"{case['libraries'][name]:.0f}" for name in libraries),
             ratio(case["over_sgemm"]), ratio(case["over_stream"])] for case in product["cases"]]
    return table(["case", "threads", "rapt, ms", "GFLOP/s", *(f"{name}, GFLOP/s" for name in libraries),
                  "over the best", "over a plain read"], rows)


def beside_first(peers, group_name, heading, over):
    """The cases of a group, each relative to the first by `over`, and compared with PyTorch."""
    rows = []
    for group, ours in goals.entries_of(peers, group_name, contestant="rapt"):
        first = goals.twin_of(group, ours, case=group["cases"][0])
        rows.append([ours["case"], str(ours["threads"]), milliseconds(ours), ratio(over(first, ours)),
                     *beside(group, ours, "PyTorch")])
    return table(["case", "threads", "rapt, ms", heading, "PyTorch, ms", "speedup"], rows)


def sixteen_bits(peers):
    return beside_first(peers, "16 bits", "rate over f32's", lambda first, ours: goals.of_bests(first, ours))


def weights_table(peers):
    return beside_first(peers, "weights", "time over none", lambda first, ours: goals.of_bests(ours, first))


def layer_table(mha):
    rows = [[case["name"].removesuffix(f" t{case['threads']}"), str(case["threads"]), f"{case['ms_median']:.0f}",
             f"{case['gflops']:.0f}", ratio(case["time_over_sgemm"]), ratio(case["time_over_packed"])]
            for case in mha["cases"]]
    return table(["variant", "threads", "ms", "GFLOP/s", "time over sgemm's for the same work", "time over packed qkv's"],
                 rows)


def layer_sizes(mha):
    sizes = mha["sizes"]
    text = "batch {batch}, {tokens} tokens, {embed} wide, {heads} heads".format(**sizes)
    return text + (", causal" if sizes["causal"] else "")


def layer_decode_table(run):
    rows = [[case["name"].removesuffix(f" t{case['threads']}"), str(case["threads"]), f"{case['ms_median']:.2f}",
             f"{(case['weight_bytes'] + case['cache_bytes']) / 1e6:.0f}", f"{case['gbps']:.1f}",
             ratio(case["time_over_stream"]), ratio(case["time_over_contiguous"]), ratio(case["cache_bytes_over_f32"]),
             f"{case['error']:.1e}"]
            for case in run["cases"]]
    return table(["cache", "threads", "ms", "MB", "GB/s", "over a streaming read", "over contiguous",
                  "cache's bytes over f32's", "error"], rows)


def decode_sizes(run):
    return ("one token after {cached} cached, batch {batch}, {embed} wide, {heads} heads, pages of {page_size}"
            .format(**run["sizes"]))


def layer_peers(peers):
    rows = []
    for group, ours in goals.entries_of(peers, "layer", "layer with weights", "layer as classes", contestant="rapt"):
        for other in group["entries"]:
            if other["threads"] != ours["threads"] or other["contestant"] == "rapt":
                continue
            name = other["contestant"]
            if name == "PyTorch":
                name += f", need_weights={group['about'] == 'layer with weights'}"
            way = f" ({other['way']})" if other["way"] else ""
            rows.append([name + way, str(ours["threads"]), milliseconds(other), milliseconds(ours),
                         ratio(goals.of_bests(other, ours))])
    return table(["", "threads", "ms", "rapt, ms", "speedup"], rows)


def backward_peers(peers):
    rows = [[ours["case"].removesuffix(" backward"), str(ours["threads"]), milliseconds(ours),
             *beside(group, ours, "PyTorch")]
            for group, ours in goals.entries_of(peers, "backward", "backward of one head", contestant="rapt")]
    return table(["case", "threads", "rapt, ms", "PyTorch, ms", "speedup"], rows)


def training_table(mha, peers):
    own = {(case["variant"], case["threads"]): case for case in mha["cases"]}
    rows = []
    for group, ours in goals.entries_of(peers, "training", "training with dropout", contestant="rapt"):
        dropout = group["about"] == "training with dropout"
        alone = own.get(("training-dropout" if dropout else "training", ours["threads"]))
        rows.append(["0.1" if dropout else "none", str(ours["threads"]), milliseconds(ours),
                     ratio(alone and alone["time_over_sgemm"]), *beside(group, ours, "PyTorch"),
                     *beside(group, ours, "PyTorch, SDPA")])
    return table(["dropout", "threads", "rapt, ms", "time over sgemm's for the same work", "PyTorch's layer, ms",
                  "speedup", "PyTorch's class, ms", "speedup"], rows)


def peer_table(peers):
    names = list(peers["versions"])
    header = ["case", "threads", "rapt, ms"]
    for name in names:
        header += [f"{name}, ms", "speedup"]
    rows, seen = [], set()
    for group, ours in goals.entries_of(peers, *PART_ONE, contestant="rapt"):
        if (ours["case"], ours["threads"]) in seen:  # in the table already, from another group
            continue
        seen.add((ours["case"], ours["threads"]))
        row = [ours["case"], str(ours["threads"]), milliseconds(ours)]
        for name in names:
            row += beside(group, ours, name)
        rows.append(row)
    return table(header, rows)


def own_ratios(peers):
    rows = []
    for group, ours in goals.entries_of(peers, *PART_ONE, contestant="rapt"):
        first = goals.twin_of(group, ours, case=group["cases"][0])
        second = goals.twin_of(group, ours, threads=2)
        if group["about"] != "lengths" and not goals.is_first(group, ours):
            rows.append([ours["case"], "time over that of the plain case", ratio(goals.of_bests(ours, first))])
        elif ours["threads"] == 1 and second:
            rows.append([ours["case"], "rate of 2 threads over 1", ratio(goals.of_bests(ours, second))])
    return table(["case", "", "ratio"], [[case, what, value] for case, what, value in rows])


def goal_table(runs, peers):
    rows = []
    for what, floor, target, found, more in goals.goals(runs, peers):
        verdict = "–"
        if found is not None:
            reached = (lambda mark: found >= mark) if more else (lambda mark: found <= mark)
            verdict = "target" if reached(target) else "floor" if reached(floor) else "**missed**"
        sign = "≥" if more else "≤"
        rows.append([what, f"{sign} {floor:.2f}", f"{sign} {target:.2f}", ratio(found), verdict])
    return table(["", "floor", "target", "measured", "reached"], rows)


def record(runs, peers, name):
    """The data of a run for the READMEs' tables: rapt's speedup over each peer in each case."""
    cases = [
        {
            **{key: ours[key] for key in ("case", "dtype", "causal", "threads")},
            "about": group["about"],
            "plain": goals.is_first(group, ours),  # without the mask, window or weights of the group's topic
            "peer": other["contestant"],
            "ratio": round(goals.of_bests(other, ours), 3),
        }
        for group in peers["groups"]
        for ours in group["entries"] if ours["contestant"] == "rapt"
        for other in group["entries"]
        if other["contestant"] != "rapt" and all(other[key] == ours[key] for key in ("case", "threads"))
    ]
    seen = runs["own"]["machine"]
    about = {"name": name, "cpu": seen["cpu"], "cores": seen["cores"], "isa": seen["isa"],
             "page": f"{machine.slug(name)}.md"}
    return {"machine": about, "date": peers["date"], "versions": peers["versions"], "cases": cases}


def as_json(data):
    """One case per line, so that a diff shows which cases changed."""
    head = {key: value for key, value in data.items() if key != "cases"}
    lines = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in data["cases"])
    return json.dumps(head, ensure_ascii=False)[:-1] + ', "cases": [\n  ' + lines + "\n]}\n"


def main():
    if len(sys.argv) != 3 and sys.argv[2:3] != ["--page"]:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])

    def read(name):
        return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))

    runs = {name: read(name) for name in ("own", "decode", "prefill", "backward", "product", "mha", "layer_decode")}
    own, mha, peers = runs["own"], runs["mha"], read("peers")
    libraries = sorted({each["sgemm_library"] or "none found" for each in own["baselines"]})
    words = pathlib.Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    name = machine.name(own["machine"]["cpu"])
    page = words.format(
        machine=name,
        date=peers["date"],
        cpu=own["machine"]["cpu"],
        cores=own["machine"]["cores"],
        version=own["machine"]["version"],
        isa=own["machine"]["isa"],
        sgemm=", ".join(libraries),
        peers="\n".join(f"| {name} | {version} |" for name, version in peers["versions"].items()),
        own_rounds=own["cases"][0]["rounds"],
        own=own_table(own),
        baseline=baseline_table(own),
        decode=decode_table(runs["decode"]),
        decode_peers=decode_peers(peers),
        prefill=prefill_table(runs["prefill"]),
        product=product_table(runs["product"]),
        peer_table=peer_table(peers),
        sixteen_bits=sixteen_bits(peers),
        weights=weights_table(peers),
        layer=layer_table(mha),
        layer_sizes=layer_sizes(mha),
        layer_gflop=f"{mha['flops'] / 1e9:.1f}",
        layer_rounds=mha["cases"][0]["rounds"],
        layer_peers=layer_peers(peers),
        layer_decode=layer_decode_table(runs["layer_decode"]),
        decode_sizes=decode_sizes(runs["layer_decode"]),
        backward=own_table(runs["backward"]),
        backward_peers=backward_peers(peers),
        training=training_table(mha, peers),
        own_ratios=own_ratios(peers),
        goal_table=goal_table(runs, peers),
    )
    if sys.argv[2] == "--page":
        pathlib.Path(sys.argv[3]).write_text(page, encoding="utf-8")
        return
    root = pathlib.Path(sys.argv[2])
    place = root / "docs" / "benchmarks" / machine.slug(name)
    place.parent.mkdir(exist_ok=True)
    place.with_suffix(".md").write_text(page, encoding="utf-8")
    place.with_suffix(".json").write_text(as_json(record(runs, peers, name)), encoding="utf-8")
    face.write(root)
    print(f"peers: wrote {place}.md", file=sys.stderr)


if __name__ == "__main__":
    main()
