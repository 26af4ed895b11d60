"""The performance goals of rapt, and the results of a run: each goal is compared with the worst of its cases."""


def of_bests(above, below):
    """The best time of `above` divided by the best time of `below`. Other load on the machine makes times longer, and
    not all by the same factor: a call that uses two cores loses more than one that uses a single core."""
    return min(above["ms"]) / min(below["ms"])


def entries_of(peers, *about, **wanted):
    """(group, entry) for the entries with the wanted fields, in the groups with one of these topics."""
    return [
        (group, entry)
        for group in peers["groups"] if group["about"] in about
        for entry in group["entries"]
        if all(entry[key] == value for key, value in wanted.items())
    ]


def twin_of(group, entry, **changes):
    """The entry of the same group that differs from `entry` only in these fields; None if there is none."""
    wanted = {key: entry[key] for key in ("case", "contestant", "threads")} | changes
    return next((each for each in group["entries"] if all(each[k] == v for k, v in wanted.items())), None)


def measured(run, ratio, **wanted):
    """The values of the field `ratio` in the matching cases of a run of `rapt bench`."""
    return [
        case[ratio] for case in run["cases"]
        if all(case[key] == value for key, value in wanted.items()) and case[ratio] is not None
    ]


def over_sgemm(own, lengths, dim, causal):
    return [ratio for length in lengths
            for ratio in measured(own, "over_sgemm", queries=length, dim=dim, causal=causal)]


def is_first(group, entry):
    """Whether this is the plain case of a group, with which the others are compared."""
    return entry["case"] == group["cases"][0]


def over_peer(peers, peer, keep, causal):
    """The peer's time divided by rapt's, for the cases without masks and windows that `keep` accepts."""
    found = []
    for group, entry in entries_of(peers, "lengths", "masks", "window", contestant="rapt", causal=causal):
        other = twin_of(group, entry, contestant=peer)
        if other and (group["about"] == "lengths" or is_first(group, entry)) and keep(entry):
            found.append(of_bests(other, entry))
    return found


def over_peer_in(peers, peer, about, keep=lambda group, entry: True):
    return [
        of_bests(twin_of(group, entry, contestant=peer), entry)
        for group, entry in entries_of(peers, about, contestant="rapt")
        if twin_of(group, entry, contestant=peer) and keep(group, entry)
    ]


def over_first(peers, about):
    """For each other case of a group, rapt's time divided by its time for the first, plain case."""
    return [
        of_bests(entry, twin_of(group, entry, case=group["cases"][0]))
        for group, entry in entries_of(peers, about, contestant="rapt") if not is_first(group, entry)
    ]


def rate_over_first(peers, about):
    return [
        of_bests(twin_of(group, entry, case=group["cases"][0]), entry)
        for group, entry in entries_of(peers, about, contestant="rapt") if not is_first(group, entry)
    ]


def second_thread(peers):
    return [
        of_bests(entry, twin_of(group, entry, threads=2))
        for group, entry in entries_of(peers, "lengths", contestant="rapt", threads=1)
        if entry["length"] >= 1024 and twin_of(group, entry, threads=2)
    ]


def goals(runs, peers):
    """(name, floor, target, worst measured value or None, whether more is better). `runs` are those of `rapt bench`, by
    name."""
    own, decode, prefill, product, mha, layer_decode, backward = (
        runs[name] for name in ("own", "decode", "prefill", "product", "mha", "layer_decode", "backward"))
    with_weights = lambda threads: lambda group, entry: not is_first(group, entry) and entry["threads"] == threads
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
        ("time with a bool or float mask of full size, over none", 1.2, 1.1, over_first(peers, "masks"), False),
        ("time with a window of (256, 0) at n 8192, over none", 0.08, 0.05, over_first(peers, "window"), False),
        ("2 threads over 1, n ≥ 1024", 1.8, 1.95, second_thread(peers), True),
        ("decoding in f32: keys' and values' bytes over a streaming read's", 0.85, 0.95,
         measured(decode, "over_stream", dtype="f32"), True),
        ("decoding in bf16 and f16: time over f32's", 0.62, 0.55, over_first(peers, "decoding"), False),
        ("decoding over PyTorch, every type", 3.0, 5.0, over_peer_in(peers, "PyTorch", "decoding"), True),
        ("64 queries on 8192 cached keys: rate over sgemm's", 0.75, 0.85, measured(prefill, "over_sgemm"), True),
        ("bf16 and f16, n 2048: rate over f32's", 0.88, 0.97, rate_over_first(peers, "16 bits"), True),
        ("time with mean weights, n 1024, over none", 1.9, 1.7, over_first(peers, "weights"), False),
        ("mean weights over PyTorch's, 1 thread", 1.2, 1.5,
         over_peer_in(peers, "PyTorch", "weights", with_weights(1)), True),
        ("mean weights over PyTorch's, 2 threads", 1.6, 2.0,
         over_peer_in(peers, "PyTorch", "weights", with_weights(2)), True),
        ("packed product, 512 rows: over the best sgemm", 0.95, 1.0, measured(product, "over_sgemm", rows=512), True),
        ("packed product, 32 rows", 1.1, 1.3, measured(product, "over_sgemm", rows=32), True),
        ("packed product, 1 row: weights' bytes over a streaming read's", 0.9, 0.97,
         measured(product, "over_stream", rows=1), True),
        ("the layer, packed qkv: time over that of the same work at sgemm's rate", 1.18, 1.08,
         measured(mha, "time_over_sgemm", variant="packed"), False),
        ("the layer over PyTorch's, need_weights=False", 1.15, 1.4, over_peer_in(peers, "PyTorch", "layer"),
         True),
        ("the layer with mean weights over PyTorch's, need_weights=True", 1.5, 2.2,
         over_peer_in(peers, "PyTorch", "layer with weights"), True),
        ("the layer, one token on 8192 cached: time over a streaming read of its bytes", 1.25, 1.1,
         measured(layer_decode, "time_over_stream", type="f32", paged=False), False),
        ("pages over a contiguous cache, time, every type", 1.05, 1.02,
         measured(layer_decode, "time_over_contiguous", paged=True), False),
        ("i8 cache: bytes over f32's", 0.3, 0.28, measured(layer_decode, "cache_bytes_over_f32", type="i8"), False),
        ("i8 cache: error of the output", 0.01, 0.005, measured(layer_decode, "error", type="i8"), False),
        ("backward, full, n 1024–4096, d64: rate over sgemm's", 0.74, 0.80, over_sgemm(backward, long, 64, False), True),
        ("backward, full, n 1024–4096, d128", 0.80, 0.88, over_sgemm(backward, long, 128, False), True),
        ("backward, causal, n ≥ 1024, both d", 0.70, 0.80,
         over_sgemm(backward, long, 64, True) + over_sgemm(backward, long, 128, True), True),
        ("backward over PyTorch, full", 1.0, 1.15,
         over_peer_in(peers, "PyTorch", "backward", lambda group, entry: not entry["causal"]), True),
        ("backward over PyTorch, causal, n ≤ 1024", 1.3, 1.5,
         over_peer_in(peers, "PyTorch", "backward", lambda group, entry: entry["causal"] and entry["length"] <= 1024),
         True),
        ("backward over PyTorch, causal, n > 1024", 1.1, 1.2,
         over_peer_in(peers, "PyTorch", "backward", lambda group, entry: entry["causal"] and entry["length"] > 1024),
         True),
        ("backward of 1 head on 2 threads, over PyTorch", 1.6, 1.9,
         over_peer_in(peers, "PyTorch", "backward of one head"), True),
        ("training the layer, over PyTorch's layer and class", 1.15, 1.3,
         over_peer_in(peers, "PyTorch", "training") + over_peer_in(peers, "PyTorch, SDPA", "training"), True),
        ("training the layer with dropout 0.1", 2.0, 3.0,
         over_peer_in(peers, "PyTorch", "training with dropout")
         + over_peer_in(peers, "PyTorch, SDPA", "training with dropout"), True),
    ]
    return [(what, floor, target, (min if more else max)(found) if found else None, more)
            for what, floor, target, found, more in rows]
