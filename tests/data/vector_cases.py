"""The cases whose results make_vectors.py computes with PyTorch: every option alone, every pair, and edge cases.

A case is plain data: sizes, options as in rapt::AttentionOptions, captures, and upstream gradients.
"""

from itertools import combinations

# Each option and the file its cases go to. A pair goes to the file of its first option.
FEATURES = {
    "scale": "scores", "softcap": "scores", "alibi": "scores", "sinks": "scores",
    "keep": "masks", "drop": "masks", "add": "masks", "fill": "masks", "fill_inf": "masks",
    "causal_top_left": "positions", "causal_bottom_right": "positions", "causal_offset": "positions",
    "window_left": "positions", "window_right": "positions", "window_both": "positions",
    "key_lengths": "lengths", "packed": "lengths",
    "gqa": "heads", "mqa": "heads", "dv": "heads", "layout": "heads",
    "dropout": "outputs", "mean": "outputs", "selection": "outputs", "dlse": "outputs", "dweights": "outputs",
}
GROUPS = ["scores", "masks", "positions", "lengths", "heads", "outputs", "broadcast", "nothing_seen", "edges", "types"]

# One call has one alignment, one window and one number of kv heads.
ONE_OF = [("causal_top_left", "causal_bottom_right", "causal_offset"), ("window_left", "window_right", "window_both"),
          ("gqa", "mqa")]

LENGTHS = [(4, 4), (3, 5), (5, 4), (4, 6), (5, 5), (3, 7)]
SLOPES = [0.5, 0.25, 1.5, 0.125]
MINUS_INFINITY = float("-inf")
WEIGHTS = {"stage": "dropped_weights"}


def exclusive(a, b):
    return any(a in family and b in family for family in ONE_OF)


def sizes(B=2, Hq=2, Hkv=None, Lq=4, Lk=5, D=3, Dv=None):
    return {"B": B, "Hq": Hq, "Hkv": Hkv or Hq, "Lq": Lq, "Lk": Lk, "D": D, "Dv": Dv or D}


def case(group, name, size, options, captures=(WEIGHTS,), dout=True, dlse=False, dweights=(), **more):
    return {"group": group, "name": name, "sizes": size, "options": options, "captures": list(captures),
            "upstream": {"dout": dout, "dlse": dlse, "dweights": list(dweights)}, **more}


def mask_shape(turn, s):
    """Full and broadcast shapes in turn: (B, Hq, Lq, Lk) with 1 for broadcast dimensions, and (Lq, Lk)."""
    b, h, q, k = s["B"], s["Hq"], s["Lq"], s["Lk"]
    return [[b, h, q, k], [b, 1, q, k], [q, k], [1, h, q, k], [1, 1, q, k]][turn % 5]


def with_features(group, features, turn):
    """A case that uses exactly these options. `turn` varies lengths and shapes from case to case."""
    has = features.__contains__
    Lq, Lk = LENGTHS[turn % len(LENGTHS)]
    D = 2 + turn % 4
    s = sizes(Lq=Lq, Lk=Lk, D=D)
    if has("packed"):  # three sequences in one row: (2, 1, 3) queries against (2, 3, 3) keys
        s.update(B=1, Lq=6, Lk=8)
    if has("gqa"):
        s.update(Hq=4, Hkv=2)
    if has("mqa"):
        s.update(Hq=3, Hkv=1)
    if has("dv"):
        s["Dv"] = s["D"] + 2 if turn % 2 else max(1, s["D"] - 1)
    o, masks = {}, []
    if has("scale"):
        o["scale"] = -0.75 if turn % 3 == 0 else 0.375
    if has("softcap"):
        o["softcap"] = 1.25 + turn % 2
    for kind in ("keep", "drop"):
        if has(kind):
            masks.append({"kind": kind, "shape": mask_shape(turn + len(masks), s), "values": "row"})
    if has("add"):
        masks.append({"kind": "add", "shape": mask_shape(turn + len(masks), s)})
    if has("fill"):
        masks.append({"kind": "fill", "value": -1e9, "shape": mask_shape(turn + len(masks), s), "values": "row"})
    if has("fill_inf"):
        masks.append({"kind": "fill", "value": "-inf", "shape": mask_shape(turn + len(masks), s), "values": "row"})
    if masks:
        o["masks"] = masks
    if has("packed"):
        o["query_starts"], o["key_starts"] = [0, 2, 3, 6], [0, 2, 5, 8]
    rows = 3 if has("packed") else s["B"]
    if has("key_lengths"):
        o["key_lengths"] = [2, 1, 3] if has("packed") else [s["Lk"], s["Lk"] - 2]
    if has("window_left"):
        o["window"] = [1, None]
    if has("window_right"):
        o["window"] = [None, 1]
    if has("window_both"):
        o["window"] = [2, 1] if turn % 2 else [1, 0]
    if has("alibi"):
        o["alibi_slopes"] = SLOPES[: s["Hq"]]
    if has("causal_top_left") or has("alibi") or "window" in o:
        o["alignment"] = "top_left"
    if has("causal_bottom_right"):
        o["alignment"] = "bottom_right"
    if has("causal_offset"):
        o["alignment"] = [2] if turn % 2 else [1, 3, 0][:rows]
    if any(f.startswith("causal") for f in features):
        o["causal"] = True
    if has("sinks"):
        o["sinks"] = True
    if has("dropout"):
        o["dropout"] = {"rate": 0.25 if turn % 2 else 0.5, "seed": 0x9E3779B97F4A7C15 + turn}

    of = {}
    if has("selection"):
        of.update(heads=[s["Hq"] - 1] if turn % 2 else [], queries=[0, s["Lq"] - 1])
    if has("mean"):
        of["mean"] = True
    stages = ["dropped_weights"]
    if len(features) == 1:
        stages = ["raw", "capped", "masked", "weights", "dropped_weights"]
    elif has("dropout"):
        stages = ["weights", "dropped_weights"]
    dweights = [{"stage": stages[-1 - turn % len(stages[-2:])], **of}] if has("dweights") else []
    more = {"layout": ["blhd", "lbe", "padded", "reversed"][turn % 4]} if has("layout") else {}
    return case(group, "_and_".join(features), s, o, [{"stage": x, **of} for x in stages], dlse=has("dlse"),
                dweights=dweights, **more)


def alone_and_in_pairs():
    names = list(FEATURES)
    groups = [[a] for a in names] + [[a, b] for a, b in combinations(names, 2) if not exclusive(a, b)]
    return [with_features(FEATURES[g[0]], g, turn) for turn, g in enumerate(groups)]


def broadcast():
    """Every mask kind with every broadcast shape. One number per row shifts all its scores equally, which changes only
    lse."""
    s = sizes(B=2, Hq=3, Lq=3, Lk=4, D=2)
    cases = []
    for kind in ("keep", "drop", "add", "fill"):
        for bits in range(16):
            shape = [n if bits >> (3 - x) & 1 else 1 for x, n in enumerate((2, 3, 3, 4))]
            mask = {"kind": kind, "shape": shape}
            if kind == "fill":
                mask["value"] = -2.5
            if shape == [1, 1, 1, 1] and kind != "add":
                mask["values"] = "all"
            name = f"{kind}_of_shape_" + "x".join(map(str, shape))
            cases.append(case("broadcast", name, s, {"masks": [mask]}, dlse=kind == "add"))
    return cases


def nothing_seen():
    """Every way to hide a key, hiding all keys of some row: with and without a sink, which then gets all the weight."""
    s = sizes(Lq=4, Lk=4)
    full = [2, 2, 4, 4]
    ways = {
        "causal_before_the_first_key": (s, {"causal": True, "alignment": [-2]}),
        "causal_bottom_right_with_fewer_keys": (sizes(Lq=5, Lk=3), {"causal": True, "alignment": "bottom_right"}),
        "window_past_the_last_key": (s, {"window": [1, 1], "alignment": [4]}),
        "window_before_the_first_key": (s, {"window": [0, 0], "alignment": [-3]}),
        "keep_of_nothing": (s, {"masks": [{"kind": "keep", "shape": full, "values": "row"}]}),
        "drop_of_everything": (s, {"masks": [{"kind": "drop", "shape": full, "values": "row"}]}),
        "drop_of_all_rows": (s, {"masks": [{"kind": "drop", "shape": full, "values": "all"}]}),
        "adding_infinity": (s, {"masks": [{"kind": "add", "shape": full, "number": MINUS_INFINITY}]}),
        "filling_with_infinity": (s, {"masks": [{"kind": "fill", "value": "-inf", "shape": full, "values": "row"}]}),
        "key_length_zero": (s, {"key_lengths": [0, 3]}),
        "packed_sequence_without_keys": (
            sizes(B=1, Lq=5, Lk=4), {"query_starts": [0, 2, 3, 5], "key_starts": [0, 2, 2, 4]}),
        "packed_sequence_of_key_length_zero": (
            sizes(B=1, Lq=5, Lk=4), {"query_starts": [0, 2, 5], "key_starts": [0, 2, 4], "key_lengths": [2, 0]}),
        "keep_and_causal_together": (
            s, {"causal": True, "masks": [
                {"kind": "drop", "shape": [4, 4], "values": "causal"}, {"kind": "keep", "shape": [2, 1, 1, 4]}]}),
    }
    cases = []
    for name, (size, options) in ways.items():
        cases.append(case("nothing_seen", name, size, options, dlse=True))
        cases.append(case("nothing_seen", name + "_with_sinks", size, {**options, "sinks": True}, dlse=True))
    return cases


def edges():
    def edge(name, size, options, *rest, **more):
        return case("edges", name, size, options, *rest, **more)

    def add(shape, **more):
        return {"masks": [{"kind": "add", "shape": shape, **more}]}

    def fill(value, **more):
        return {"masks": [{"kind": "fill", "value": value, "shape": [4, 4], **more}]}

    square = sizes(Lq=4, Lk=4)
    stages = [{"stage": x} for x in ("raw", "capped", "masked", "weights", "dropped_weights")]
    cases = [
        edge("nothing_but_defaults", square, {}, stages),
        edge("one_query_and_one_key", sizes(Lq=1, Lk=1), {}),
        edge("one_query_of_many_keys", sizes(Lq=1, Lk=9), {"causal": True, "alignment": "bottom_right"}),
        edge("many_queries_of_one_key", sizes(Lq=7, Lk=1), {}),
        edge("one_of_everything", sizes(B=1, Hq=1, Lq=1, Lk=1, D=1), {}),
        edge("head_size_one", sizes(Lq=5, Lk=3, D=1), {}),
        edge("odd_sizes_everywhere", sizes(B=3, Hq=3, Lq=7, Lk=9, D=5, Dv=7), {
            "causal": True, "alignment": "top_left"}),
        edge("value_size_one", sizes(Dv=1), {}),
        edge("more_queries_than_keys", sizes(Lq=9, Lk=4), {"causal": True, "alignment": "top_left"}),
        edge("causal_without_a_named_alignment", square, {"causal": True}),
        edge("window_without_a_named_alignment", square, {"window": [1, 1]}),
        edge("alibi_without_a_named_alignment", square, {"alibi_slopes": [0.5, 0.25]}),
        edge("window_of_the_query_itself", square, {"window": [0, 0]}),
        edge("window_wider_than_the_keys", square, {"window": [100, 100]}),
        edge("alibi_bottom_right", sizes(Lq=3, Lk=6), {
            "alibi_slopes": [0.5, 0.25], "alignment": "bottom_right"}),
        edge("alibi_with_an_offset_per_row", sizes(Lq=3, Lk=6), {
            "alibi_slopes": [0.5, -0.25], "alignment": [3, 1]}),
        edge("causal_bottom_right_with_key_lengths", sizes(Lq=3, Lk=6), {
            "causal": True, "alignment": "bottom_right", "key_lengths": [6, 4], "window": [2, None]}),
        edge("scale_zero", square, {"scale": 0.0}),
        edge("filling_rows_with_minus_1e9", square, fill(-1e9, values="row"), stages),
        edge("filling_all_with_minus_1e9", square, fill(-1e9, values="all")),
        edge("filling_all_with_the_lowest_f32", square, fill(-3.4028234663852886e38, values="all")),
        edge("filling_a_causal_triangle_with_minus_1e9", square, fill(-1e9, values="causal"), stages),
        edge("adding_a_causal_triangle_of_minus_1e9", square, add([4, 4], values="causal", number=-1e9)),
        edge("adding_a_causal_triangle_of_minus_infinity", square, add([4, 4], values="causal", number=MINUS_INFINITY)),
        # In f32 the score is rounded away when -1e9 is added, in f64 it is not: such rows have only f32 results.
        edge("adding_minus_1e9_to_whole_rows", square, add([2, 1, 4, 4], number=-1e9), only_f32=True),
        edge("adding_minus_1e9_to_everything", square, add([4, 4], values="all", number=-1e9), only_f32=True),
        edge("adding_minus_1e9_and_causal", square, {**add([4, 4], values="all", number=-1e9), "causal": True},
             only_f32=True),
        edge("scores_up_to_100", sizes(Lq=5, Lk=6, D=4), {}, stages, spread=6.0),
        edge("scores_up_to_100_with_softcap", sizes(Lq=5, Lk=6, D=4), {"softcap": 30.0}, stages, spread=6.0),
        edge("scores_up_to_100_with_sinks", sizes(Lq=5, Lk=6, D=4), {"sinks": True}, spread=6.0),
        edge("scores_up_to_100_causal", sizes(Lq=5, Lk=5, D=4), {"causal": True}, spread=6.0),
        edge("scores_up_to_100_with_key_lengths", sizes(Lq=5, Lk=6, D=4), {"key_lengths": [4, 6]}, spread=6.0),
        edge("two_additive_masks", square, {"masks": [
            {"kind": "add", "shape": [4, 4]}, {"kind": "add", "shape": [2, 2, 1, 4]}]}),
        edge("all_four_mask_kinds", square, {"masks": [
            {"kind": "fill", "value": -3.0, "shape": [2, 1, 4, 4]}, {"kind": "drop", "shape": [1, 2, 4, 4]},
            {"kind": "add", "shape": [4, 4]}, {"kind": "keep", "shape": [2, 1, 1, 4]}]}, stages),
        edge("the_later_of_two_fills_wins", square, {"masks": [
            {"kind": "fill", "value": 1.0, "shape": [4, 4]}, {"kind": "fill", "value": -1.0, "shape": [2, 1, 1, 4]}]}),
        edge("dropout_of_rate_zero", square, {"dropout": {"rate": 0.0, "seed": 7}}),
        edge("dropout_of_almost_all", sizes(Lq=5, Lk=9), {"dropout": {"rate": 0.875, "seed": 3}}, stages[3:]),
        edge("dropout_of_a_tenth", sizes(Lq=5, Lk=9), {"dropout": {"rate": 0.1, "seed": 2**64 - 1}}, stages[3:]),
        edge("dropout_of_a_slice", sizes(Lq=3, Lk=9), {"dropout": {
            "rate": 0.4, "seed": 11, "batch_start": 5, "head_start": 2, "query_start": 1000}}, stages[3:]),
        edge("gradient_of_lse_only", square, {}, dout=False, dlse=True),
        edge("gradient_of_weights_only", square, {"sinks": True}, dout=False, dweights=[{"stage": "weights"}]),
        edge("gradient_of_dropped_weights_and_weights", square, {"dropout": {"rate": 0.5, "seed": 5}}, stages[3:],
             dweights=[{"stage": "weights"}, {"stage": "dropped_weights", "mean": True, "heads": [1]}]),
        edge("selection_in_another_order", sizes(Hq=3), {}, [
            {"stage": "weights", "heads": [2, 0], "queries": [3, 1]}]),
        edge("mean_of_chosen_heads", sizes(Hq=3), {}, [
            {"stage": "weights", "heads": [0, 2], "mean": True},
            {"stage": "raw", "heads": [1, 2], "queries": [2], "mean": True}]),
        edge("packed_self_attention", sizes(B=1, Lq=7, Lk=7), {
            "query_starts": [0, 3, 4, 7], "key_starts": [0, 3, 4, 7], "causal": True}, stages, layout="packed_qkv"),
    ]
    for layout in ("blhd", "lbe", "packed_qkv", "padded", "reversed"):
        cases.append(edge(f"layout_{layout}", square, {"causal": True}, dlse=True, layout=layout))
    everything = {"scale": 0.5, "softcap": 4.0, "causal": True, "window": [3, None], "alignment": "bottom_right",
                  "key_lengths": [6, 4], "alibi_slopes": SLOPES, "sinks": True, "dropout": {"rate": 0.25, "seed": 42}}
    for dropout in (0.0, 0.25):
        options = {**everything, "dropout": {"rate": dropout, "seed": 42}, "masks": [
            {"kind": "keep", "shape": [2, 1, 1, 6]}, {"kind": "add", "shape": [1, 4, 5, 6]},
            {"kind": "fill", "value": -1e9, "shape": [5, 6]}]}
        cases.append(edge("everything_at_once" + ("_with_dropout" if dropout else ""),
                          sizes(Hq=4, Hkv=2, Lq=5, Lk=6, D=4, Dv=3), options, stages, dlse=True,
                          dweights=[{"stage": "weights"}], layout="blhd"))
    return cases


def types():
    """Inputs that are exact in bf16 and f16, so that one f64 result serves every type."""
    s = sizes(Lq=4, Lk=6, D=4)
    square = sizes(Lq=5, Lk=5, D=4)
    options = {
        "nothing": {}, "causal": {"causal": True, "alignment": "bottom_right"}, "softcap": {"softcap": 2.0},
        "keep": {"masks": [{"kind": "keep", "shape": [2, 1, 4, 6], "values": "row"}]},
        "add": {"masks": [{"kind": "add", "shape": [1, 2, 4, 6]}]},
        "fill": {"masks": [{"kind": "fill", "value": -1e9, "shape": [4, 6], "values": "row"}]},
        "alibi": {"alibi_slopes": [0.5, 0.25], "alignment": "bottom_right"}, "sinks": {"sinks": True},
        "key_lengths": {"key_lengths": [6, 0]}, "dropout": {"dropout": {"rate": 0.25, "seed": 9}},
        "window": {"window": [1, 1], "alignment": "top_left"}, "scale": {"scale": 0.25},
    }
    cases = [case("types", f"sixteen_bits_{n}", s, o, grid=True, dlse=n in ("keep", "sinks"))
             for n, o in options.items()]
    cases.append(case("types", "sixteen_bits_gqa", sizes(Hq=4, Hkv=2), {}, grid=True))
    cases.append(case("types", "sixteen_bits_packed_qkv", square, {"causal": True}, grid=True, layout="packed_qkv"))
    cases.append(case("types", "sixteen_bits_mean", s, {}, [{"stage": "dropped_weights", "mean": True}], grid=True))
    cases.append(case("types", "sixteen_bits_dweights", s, {}, grid=True, dweights=[{"stage": "weights"}]))
    return cases


def all_cases():
    return alone_and_in_pairs() + broadcast() + nothing_seen() + edges() + types()
