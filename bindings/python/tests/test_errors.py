"""Errors: ValueError with the library's message in Python's terms, TypeError for a wrong type."""

import re

import ml_dtypes
import numpy as np
import pytest
import rapt
from conftest import ROOT

q = np.zeros((2, 4, 3, 8), np.float32)
k = np.zeros((2, 2, 5, 8), np.float32)
v = np.zeros((2, 2, 5, 6), np.float32)
dout = np.zeros((2, 4, 3, 6), np.float32)
bias = np.zeros((3, 5), np.float32)
hide = np.zeros((3, 5), bool)
sinks = np.zeros(4, np.float32)
INF = float("inf")


def texts(list_name):
    """The messages that tests/support/bad_calls.cc expects of the library, reworded for Python, by name of the bad
    call.

    test_error_words.py checks the rewording.
    """
    source = (ROOT / "tests/support/bad_calls.cc").read_text()
    rows = source.split(f"{list_name}() {{")[1].split("\n  };")[0].splitlines()
    found = (re.match(r'    \{"(\w+)", .*, "((?:[^"\\]|\\.)*)"\},?$', row) for row in rows)
    return {match[1]: rapt._rapt.in_python(match[2]) for match in found if match}


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


BF16 = ml_dtypes.bfloat16
_row = dict(query=q[:1], key=k[:1], value=v[:1])
_pages = dict(key=zeros(3, 2, 16, 8), value=zeros(3, 2, 16, 6), key_lengths=[20, 5], pages=rapt.Pages([[2, 0], [1, 99]]))
_i8 = dict(key=zeros(2, 2, 5, 8, dtype=np.int8), value=zeros(2, 2, 5, 6, dtype=np.int8), key_scales=zeros(2, 2, 5),
           value_scales=zeros(2, 2, 5))
_weights = zeros(2, 4, 3, 5)

# The bad calls of tests/support/bad_calls.cc.
FORWARD = {
    "QueryRank3": dict(query=zeros(2, 3, 32)),
    "KeyRank2": dict(key=zeros(5, 8)),
    "ValueRank5": dict(value=zeros(1, 2, 2, 5, 6)),
    "QueryBool": dict(query=q > 0),
    "KeyBatch": dict(key=k[:1]),
    "ValueBatch": dict(value=v[:1]),
    "KeyHeadSize": dict(key=k[..., :7]),
    "ValueHeads": dict(value=v[:, :1]),
    "ValueLength": dict(value=v[:, :, :4]),
    "HeadsNotMultiple": dict(query=q[:, :3]),
    "NoKvHeads": dict(key=k[:, :0], value=v[:, :0]),
    "HeadSizeZero": dict(query=q[..., :0], key=k[..., :0]),
    "ValueSizeZero": dict(value=v[..., :0]),
    "KeyAndValueTypes": dict(value=v.astype(BF16)),
    "F64WithF32": dict(query=q.astype(np.float64)),
    "ScaleNan": dict(scale=float("nan")),
    "ScaleInfinite": dict(scale=-INF),
    "ScaleBeyondF32": dict(scale=1e39),
    "SoftcapBeyondF32": dict(softcap=1e39),
    "SoftcapNegative": dict(softcap=-1.0),
    "SoftcapInfinite": dict(softcap=INF),
    "MaskRank3": dict(mask=rapt.Mask.drop(zeros(2, 3, 5, dtype=bool))),
    "MaskRank1": dict(mask=rapt.Mask.drop(zeros(5, dtype=bool))),
    "MaskTransposed": dict(mask=[rapt.Mask.keep(hide), rapt.Mask.add(bias.T)]),
    "MaskHeads": dict(mask=zeros(2, 2, 3, 5)),
    "MaskAddBool": dict(mask=rapt.Mask.add(hide)),
    "MaskKeepFloat": dict(mask=rapt.Mask.keep(bias)),
    "MaskFillNan": dict(mask=rapt.Mask.fill(hide, float("nan"))),
    "MaskFillPlusInfinity": dict(mask=rapt.Mask.fill(hide, INF)),
    "MaskFillBeyondF32": dict(mask=rapt.Mask.fill(hide, -1e300)),
    "MaskMissing": dict(mask=[None]),
    "MaskAddI8": dict(mask=zeros(3, 5, dtype=np.int8)),
    "WindowLeftNegative": dict(window=(-1, None)),
    "WindowRightNegative": dict(window=rapt.Window(right=-2)),
    "CausalWithoutAlignment": dict(causal=True),
    "AlibiWithoutAlignment": dict(alibi_slopes=[1, 1, 1, 1]),
    "OffsetCount": dict(alignment=[1, 2, 3]),
    "OffsetHuge": dict(alignment=1 << 41),
    "OffsetLowest": dict(alignment=-(1 << 63)),
    "KeyLengthsCount": dict(key_lengths=[5]),
    "KeyLengthNegative": dict(key_lengths=[5, -1]),
    "KeyLengthTooLong": dict(key_lengths=np.array([6, 5])),
    "PageSizeNoPower": _pages | dict(key=zeros(3, 2, 24, 8), value=zeros(3, 2, 24, 6)),
    "PageMissing": _pages | dict(pages=rapt.Pages([[2, 3], [1, 99]])),
    "PageNegative": _pages | dict(pages=rapt.Pages([[2, 0], [-1, 99]])),
    "PagesWithoutLengths": _pages | dict(key_lengths=None),
    "PagesLengthTooLong": _pages | dict(key_lengths=[33, 5]),
    "PagesPacked": _pages | dict(packed=([0, 3], [0, 5])),
    "PagesOfValue": _pages | dict(value=zeros(2, 2, 16, 6)),
    "PagesKeyRank": _pages | dict(key=zeros(3, 16)),
    "PagesMask": _pages | dict(mask=bias),
    "KeyBool": dict(key=k > 0),
    "QueryI8": dict(query=q.astype(np.int8)),
    "I8WithoutKeyScales": _i8 | dict(key_scales=None),
    "I8ScalesShape": _i8 | dict(key_scales=zeros(2, 2, 4)),
    "I8ScalesType": _i8 | dict(value_scales=zeros(2, 2, 5, dtype=BF16)),
    "ScalesWithoutI8": dict(key_scales=zeros(2, 2, 5)),
    "PackedBatch": dict(packed=([0, 3], [0, 5])),
    "PackedTooFew": _row | dict(packed=([0], [0, 5])),
    "PackedBegin": _row | dict(packed=([1, 3], [0, 5])),
    "PackedFalling": _row | dict(packed=([0, 2, 3], [0, 6, 5])),
    "AlibiCount": dict(alibi_slopes=[1.0, 0.5]),
    "AlibiNan": dict(alibi_slopes=np.array([1, 1, np.nan, 1])),
    "SinksShape": dict(sinks=zeros(2)),
    "SinksType": dict(sinks=zeros(4, dtype=np.float64)),
    "DropoutNegative": dict(dropout=rapt.Dropout(-0.1, 0)),
    "DropoutOverOne": dict(dropout=rapt.Dropout(1.5, 0)),
    "DropoutBatchStart": dict(dropout=rapt.Dropout(0, 0, batch_start=-1)),
    "DropoutHeadStart": dict(dropout=rapt.Dropout(0, 0, head_start=(1 << 32) - 3)),
    "DropoutQueryStart": dict(dropout=rapt.Dropout(0, 0, query_start=-7)),
    "ThreadsNegative": dict(threads=-2),
    "OutShape": dict(out=zeros(2, 4, 3, 8)),
    "OutType": dict(out=zeros(2, 4, 3, 6, dtype=BF16)),
    "CaptureShape": dict(captures=[rapt.Capture(out=_weights, mean_over_heads=True)]),
    "CaptureType": dict(captures=[rapt.Capture(dtype="float16")]),
    "CaptureHead": dict(captures=[rapt.Capture(heads=[0, 4])]),
    "CaptureQuery": dict(captures=[rapt.Capture(queries=[-1])]),
    "CaptureTwice": dict(captures=[rapt.Capture(out=_weights), rapt.Capture("raw", out=_weights)]),
}
BACKWARD = {
    "Pages": _pages,
    "I8": _i8,
    "NothingArrives": dict(dout=None),
    "DoutShape": dict(dout=zeros(2, 4, 3, 8)),
    "DoutType": dict(dout=zeros(2, 4, 3, 6, dtype=np.float16)),
    "OutShape": dict(out=zeros(2, 4, 2, 6)),
    "DlseShape": dict(dlse=zeros(2, 3, 4)),
    "LseType": dict(lse=zeros(2, 4, 3, dtype=BF16)),
    "DweightsStage": dict(dweights=[rapt.WeightsGradient(_weights, "raw")]),
    "DweightsShape": dict(dweights=zeros(2, 4, 5, 3)),
    "DweightsHead": dict(dweights=rapt.WeightsGradient(_weights, heads=[9])),
    "DweightsBool": dict(dweights=_weights > 0),
    "DsinksWithoutSinks": dict(gradients=["dsinks"]),
}


def text_of(call, **arguments):
    with pytest.raises(ValueError) as caught:
        call(**arguments)
    assert type(caught.value) is ValueError
    return str(caught.value)


@pytest.mark.parametrize("name", FORWARD)
def test_a_bad_call_has_the_librarys_text_and_writes_nothing(name):
    arguments = dict(query=q, key=k, value=v, out=np.full((2, 4, 3, 6), 7, np.float32)) | FORWARD[name]
    if "query" in FORWARD[name] or "value" in FORWARD[name]:
        arguments["out"] = FORWARD[name].get("out")  # of another shape
    assert text_of(rapt.attention, **arguments) == texts("bad_forward_calls")[name]
    out = arguments["out"]
    assert out is None or (out == out.flat[0]).all()


@pytest.mark.parametrize("name", BACKWARD)
def test_a_bad_backward_call_has_the_librarys_text(name):
    arguments = dict(query=q, key=k, value=v, dout=dout) | BACKWARD[name]
    assert text_of(rapt.attention_backward, **arguments) == texts("bad_backward_calls")[name]


@pytest.mark.parametrize(("changes", "text"), [
    (dict(sofcap=1.0), "attention() got an unexpected keyword argument 'sofcap'"),
    (dict(softcap="1"), "attention: softcap must be a number, not str"),
    (dict(softcap=None), "attention: softcap must be a number, not NoneType"),
    (dict(scale=[1]), "attention: scale must be a number, not list"),
    (dict(causal=1), "attention: causal must be a bool, not int"),
    (dict(causal=hide), "attention: causal must be a bool, not numpy.ndarray"),
    (dict(window=3), "attention: window must be a rapt.Window or (left, right), with None for no limit, not int"),
    (dict(window=("a", 1)), "attention: window must be an integer, not str"),
    (dict(alignment=1.5), "attention: alignment must be a list or an array of integers, not float"),
    (dict(key_lengths=3), "attention: key_lengths must be a list or an array of integers, not int"),
    (dict(key_lengths=[1, 2.5]), "attention: key_lengths must be an integer, not float"),
    (dict(packed=[[0], [0]]), "attention: packed must be a rapt.PackedSequences or (query_starts, key_starts), not list"),
    (dict(pages=[[0]]), "attention: pages must be a rapt.Pages or (table, keys), not list"),
    (dict(alibi_slopes=["a"] * 4), "attention: alibi_slopes must be a number, not str"),
    (dict(sinks=[0.0] * 4), "attention: sinks is of type list; rapt takes arrays"),
    (dict(dropout=0.5), "attention: dropout must be a rapt.Dropout or (rate, seed), not float"),
    (dict(dropout=(0.5, 1.5)), "attention: dropout must be an integer, not float"),
    (dict(engine=1), "attention: engine must be a str, not int"),
    (dict(threads=1.0), "attention: threads must be an integer, not float"),
    (dict(mask="causal"), "attention: mask is of type str; rapt takes arrays"),
    (dict(captures=["raw"]), "attention: captures must be a rapt.Capture, not str"),
    (dict(captures=3), "int"),
    (dict(out=[1.0]), "attention: out is of type list; rapt takes arrays"),
], ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_wrong_keyword_or_type_is_a_type_error_that_names_it(changes, text):
    with pytest.raises(TypeError) as caught:
        rapt.attention(q, k, v, **changes)
    assert text in str(caught.value)


@pytest.mark.parametrize(("changes", "text"), [
    (dict(alignment="left"), "attention: alignment is 'left'; it may be 'top_left' or 'bottom_right'"),
    (dict(window=(1,)), "attention: window is a tuple of length 1; it must be a rapt.Window or (left, right)"),
    (dict(window=(1, 2, 3)), "attention: window is a tuple of length 3; it must be a rapt.Window or (left, right)"),
    (dict(key_lengths=np.zeros((2, 2), int)), "attention: key_lengths has 2 dimensions; it must have 1"),
    (dict(key_lengths=np.zeros(2)), "attention: key_lengths holds float64; it must hold integers"),
    (dict(alibi_slopes=np.zeros((2, 2))), "attention: alibi_slopes has 2 dimensions; it must have 1"),
    (dict(alignment=2**70, causal=True), "attention: alignment is 1180591620717411303424, which is not a 64-bit integer"),
    (dict(dropout=(0.5, -1)), "attention: dropout has the seed -1; it must be 0 to 2**64 - 1"),
    (dict(pages=([[0, 1], [2]],)), "attention: pages has rows of 2 and of 1 numbers; they must have the same length"),
    (dict(pages=([[2**40]],)), "attention: pages holds 1099511627776, which is not a 32-bit integer"),
    (dict(mask=rapt.Mask("hide", hide)), "attention: mask is 'hide'; it may be 'keep', 'drop', 'add' or 'fill'"),
    (dict(return_weights="means"), "attention: return_weights is 'means'; it may be False, True or 'mean'"),
    (dict(captures=[rapt.Capture("soft")]), "attention: stage is 'soft'; it may be 'raw', 'capped', 'masked', 'weights' or "
                                            "'dropped_weights'"),
    (dict(captures=[rapt.Capture(heads=[])]), "attention: heads is empty; None means all"),
    (dict(captures=[rapt.Capture(dtype="half")]), "attention: dtype is 'half'; it may be 'float32', 'float64'"),
    (dict(threads=2**40), "attention: threads is 1099511627776"),
], ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_wrong_value_is_a_value_error_that_names_it(changes, text):
    assert text in text_of(rapt.attention, query=q, key=k, value=v, **changes)


def test_a_gradient_that_there_is_not_is_refused():
    text = text_of(rapt.attention_backward, query=q, key=k, value=v, dout=dout, gradients=["dq"])
    assert text == "attention_backward: gradients is 'dq'; it may be 'dquery', 'dkey', 'dvalue', 'dsinks' or 'dmasks'"


def test_too_much_memory_is_a_memory_error():
    tall = np.broadcast_to(np.float32(1), (1, 1, 2**31, 8))
    with pytest.raises(MemoryError):
        rapt.attention(tall, tall, tall, return_weights=True)
