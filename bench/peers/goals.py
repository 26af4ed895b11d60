"""What rapt holds itself to, and how a run did: each goal takes the worst of the cases it speaks of."""

import statistics


def paired(above, below):
    """The median, over rounds, of one row of times over another."""
    return statistics.median(a / b for a, b in zip(above["ms"], below["ms"]))


def entries_of(peers, **wanted):
    return [
        (group, entry)
        for group in peers["groups"]
        for entry in group["entries"]
        if all(entry[key] == value for key, value in wanted.items())
    ]


def twin_of(group, entry, **changes):
    """The entry of the same rounds that differs in these things only; None where it did not take part."""
    wanted = {key: entry[key] for key in ("case", "contestant", "threads")} | changes
    return next((each for each in group["entries"] if all(each[k] == v for k, v in wanted.items())), None)


def over_sgemm(own, lengths, dim, causal):
    return [
        case["over_sgemm"] for case in own["cases"]
        if case["queries"] in lengths and case["dim"] == dim and case["causal"] == causal
        and case["over_sgemm"] is not None
    ]


def plain(entry):
    return "window" not in entry["case"] and "mask" not in entry["case"]


def over_peer(peers, peer, keep, causal):
    """Peer's time over ours, for the plain cases that `keep` takes."""
    found = []
    for group, entry in entries_of(peers, contestant="rapt", causal=causal):
        other = twin_of(group, entry, contestant=peer)
        if other and plain(entry) and keep(entry):
            found.append(paired(other, entry))
    return found


def over_first(peers, word):
    """Our time on a case with `word` in its name over that on the group's first, plain case."""
    return [
        paired(entry, twin_of(group, entry, case=group["cases"][0]))
        for group, entry in entries_of(peers, contestant="rapt") if word in entry["case"]
    ]


def second_thread(peers):
    return [
        paired(entry, twin_of(group, entry, threads=2))
        for group, entry in entries_of(peers, contestant="rapt", threads=1)
        if entry["length"] >= 1024 and plain(entry) and twin_of(group, entry, threads=2)
    ]


def goals(own, peers):
    """(what, floor, target, the worst measured, does more mean better), a measure being None where nothing was."""
    long = (1024, 2048, 4096)
    big = lambda entry: entry["length"] > 128
    small = lambda entry: entry["case"].startswith("b8 h12 n128 d64")
    rows = [
        ("full, n 1024–4096, d64: rate over sgemm's", 0.84, 0.88, over_sgemm(own, long, 64, False), True),
        ("full, n 1024–4096, d128", 0.89, 0.94, over_sgemm(own, long, 128, False), True),
        ("causal, n 512, both d", 0.72, 0.80,
         over_sgemm(own, (512,), 64, True) + over_sgemm(own, (512,), 128, True), True),
        ("causal, n ≥ 1024, d64", 0.80, 0.86, over_sgemm(own, long, 64, True), True),
        ("causal, n ≥ 1024, d128", 0.84, 0.90, over_sgemm(own, long, 128, True), True),
        ("over PyTorch, full", 1.0, 1.1, over_peer(peers, "PyTorch", big, False), True),
        ("over PyTorch, causal, n ≤ 1024", 1.3, 1.6,
         over_peer(peers, "PyTorch", lambda e: big(e) and e["length"] <= 1024, True), True),
        ("over PyTorch, causal, n > 1024", 1.1, 1.2,
         over_peer(peers, "PyTorch", lambda e: e["length"] > 1024, True), True),
        ("over PyTorch, b8 h12 n128 d64, full", 1.1, 1.2, over_peer(peers, "PyTorch", small, False), True),
        ("over PyTorch, b8 h12 n128 d64, causal", 1.8, 2.2, over_peer(peers, "PyTorch", small, True), True),
        ("time with a bool or float mask of full size, over none", 1.2, 1.1, over_first(peers, "mask"), False),
        ("time with a window of (256, 0) at n 8192, over none", 0.08, 0.05, over_first(peers, "window"), False),
        ("2 threads over 1, n ≥ 1024", 1.8, 1.95, second_thread(peers), True),
    ]
    return [(what, floor, target, (min if more else max)(found) if found else None, more)
            for what, floor, target, found, more in rows]
