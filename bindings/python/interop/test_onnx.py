"""rapt.onnx: ONNX's own tests of its operators, and ONNX Runtime on random cases.

Where other implementations differ, rapt follows the operator's specification:

- For qk_matmul_output_mode 0, ONNX's reference gives the scores after softcap; the specification, like rapt and ONNX
  Runtime, means those before softcap.
- ONNX Runtime writes the lowest finite number into qk_matmul_output (mode 2) where a key is hidden; rapt and ONNX's
  reference write -inf.
- With is_causal and past keys, ONNX Runtime treats a single query as the last token, even if several keys came with it;
  in rapt and ONNX's reference the query sees the keys up to its own position.
"""

import re
import unittest
import warnings

import numpy as np
import onnx
import onnx.backend.base
import onnx.parser
import onnx.reference
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import rapt.onnx
from rapt.bridges import onnx as bridge

OPERATORS = ("Attention", "RotaryEmbedding")


def node_tests():
    """All of ONNX's operator tests. Generating some of the other operators' tests overflows on purpose, with
    warnings."""
    with warnings.catch_warnings(action="ignore"):
        return load_model_tests(kind="node")


# Tests that contain one of the operators. The _expanded ones do not: they decompose it into other operators.
CASES = {case.name: case for case in node_tests() if any(x.op_type in OPERATORS for x in case.model.graph.node)}


class CountingBackend(rapt.onnx.RaptBackend):
    """Counts the calls that rapt computed, because ONNX's runner may skip a case silently."""

    ran = []

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        prepared = super().prepare(model, device, **kwargs)
        (node,) = prepared._evaluator.rt_nodes_
        assert type(node) in (rapt.onnx.Attention, rapt.onnx.RotaryEmbedding)
        compute = node._run

        def counted(*inputs, **attributes):
            outputs = compute(*inputs, **attributes)
            cls.ran.append(node.op_type)
            return outputs

        node._run = counted
        return prepared


@pytest.fixture(scope="module")
def onnx_tests():
    """ONNX's generated backend tests, with their own tolerances."""
    return Runner(CountingBackend).test_cases["OnnxBackendNodeModelTest"]


@pytest.mark.parametrize("name", CASES)
def test_onnx_s_own_test(name, onnx_tests):
    before = len(CountingBackend.ran)
    result = unittest.TestResult()
    onnx_tests(f"{name}_cpu").run(result)
    assert not result.errors and not result.failures, "\n".join(text for _, text in result.errors + result.failures)
    assert result.testsRun == 1 and not result.skipped
    assert len(CountingBackend.ran) - before == len(CASES[name].data_sets)


def test_every_one_of_onnx_s_tests_is_among_them():
    """93 of Attention and 8 of RotaryEmbedding in ONNX 1.23; each of them has run above, if the whole file is run."""
    by_operator = {x: [c.name for c in CASES.values() if c.model.graph.node[0].op_type == x] for x in OPERATORS}
    found = {
        operator: [
            case.name
            for case in node_tests()
            if case.name.startswith(prefix) and "_expanded" not in case.name
        ]
        for operator, prefix in (("Attention", "test_attention"), ("RotaryEmbedding", "test_rotary_embedding"))
    }
    assert by_operator == found
    assert {operator: len(names) for operator, names in found.items()} == {"Attention": 93, "RotaryEmbedding": 8}


# ---------------------------------------------------------------- ONNX Runtime, and ONNX's reference in float64


def model_of(node, arrays, opset):
    """A model of one node, with inputs of the arrays' types and shapes."""
    def value(name, dtype, rank):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), [None] * rank)

    first = next(iter(arrays.values()))
    inputs = [value(name, x.dtype, x.ndim) for name, x in arrays.items()]
    outputs = [value(name, first.dtype, 4 if n else first.ndim) for n, name in enumerate(node.output) if name]
    graph = helper.make_graph([node], "one", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def trimmed(names):
    while names and not names[-1]:
        names.pop()
    return names


def random_attention(rng, dtype):
    """(node, arrays by name, opset): a random case; every input and attribute is used in some of them."""
    def often(chance):
        return rng.random() < chance

    def normal(*shape):
        return rng.standard_normal(shape).astype(dtype)

    batch, kv_heads, group, queries, keys, size, value_size = rng.integers(1, (4, 4, 4, 8, 9, 17, 17)).tolist()
    heads, opset, attributes, past = kv_heads * group, int(rng.integers(23, 26)), {}, 0
    causal = often(0.4)
    has_past = often(0.4)
    if has_past:
        past = int(rng.integers(4))
        keys = queries if causal else keys  # see above: otherwise ONNX Runtime differs
    if often(0.4):
        shapes = ((batch, n, count * d) for n, count, d in
                  ((queries, heads, size), (keys, kv_heads, size), (keys, kv_heads, value_size)))
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    else:
        shapes = (batch, heads, queries, size), (batch, kv_heads, keys, size), (batch, kv_heads, keys, value_size)
    arrays = dict(zip("QKV", (normal(*shape) for shape in shapes)))
    if often(0.6):
        total = keys + past
        shapes = ((queries, total), (batch, 1, queries, total), (batch, heads, queries, total), (1, queries, total))
        shape = shapes[rng.integers(len(shapes))]
        arrays["attn_mask"] = rng.random(shape) < 0.7 if often(0.5) else normal(*shape)
    if has_past:
        arrays["past_key"] = normal(batch, kv_heads, past, size)
        arrays["past_value"] = normal(batch, kv_heads, past, value_size)
    elif opset >= 24 and often(0.5):
        arrays["nonpad_kv_seqlen"] = rng.integers(1, keys + 1, batch)
    if causal:
        attributes["is_causal"] = 1
    if often(0.3):
        attributes["scale"] = float(rng.uniform(0.1, 1))
    modes = [0, 1, 3]  # 2 has a test of its own
    if often(0.3):
        attributes["softcap"], modes = float(rng.uniform(0.5, 4)), [1, 3]  # and so has 0 with softcap
    outputs = ["Y"] + (["present_key", "present_value"] if has_past else ["", ""])
    if often(0.5):
        outputs.append("scores")
        attributes["qk_matmul_output_mode"] = modes[rng.integers(len(modes))]
    names = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    names = trimmed([name if name in arrays else "" for name in names])
    return helper.make_node("Attention", names, trimmed(outputs), **attributes), arrays, opset


def in_double(node, arrays, opset):
    arrays = {name: x.astype(np.float64) if x.dtype.kind == "f" else x for name, x in arrays.items()}
    return onnx.reference.ReferenceEvaluator(model_of(node, arrays, opset)).run(None, arrays)


def on_onnxruntime(node, arrays, opset):
    model = model_of(node, arrays, opset).SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, arrays)


def assert_as_exact(ours, theirs, truth):
    """The error of every output, relative to float64, is at most twice that of ONNX Runtime, plus one rounding."""
    assert len(ours) == len(theirs) == len(truth)
    for one, other, expected in zip(ours, theirs, truth):
        assert one.shape == other.shape == expected.shape and one.dtype == other.dtype
        if expected.size:
            floor = np.finfo(one.dtype).eps * np.abs(expected).max()
            assert np.abs(one - expected).max() <= 2 * np.abs(other - expected).max() + floor


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("seed", range(60))
def test_random_attention_is_as_exact_as_onnxruntime_s(seed, dtype):
    node, arrays, opset = random_attention(np.random.default_rng(seed), dtype)
    ours = rapt.onnx.run_model(model_of(node, arrays, opset), list(arrays.values()))
    assert_as_exact(ours, on_onnxruntime(node, arrays, opset), in_double(node, arrays, opset))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("given", [True, False], ids=["positions", "rows"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
def test_random_rotary_embedding_is_as_exact_as_onnxruntime_s(rng, interleaved, rank, given, dtype):
    batch, heads, length, size = 2, 3, 5, 16
    table = (20, size // 2) if given else (batch, length, size // 2)
    angles = rng.uniform(0, 6, table)
    shape = (batch, heads, length, size) if rank == 4 else (batch, length, heads * size)
    arrays = {"X": rng.standard_normal(shape), "cos": np.cos(angles), "sin": np.sin(angles)}
    arrays = {name: x.astype(dtype) for name, x in arrays.items()}
    if given:
        arrays["positions"] = rng.integers(20, size=(batch, length))
    node = helper.make_node("RotaryEmbedding", list(arrays), ["Y"], interleaved=interleaved, num_heads=heads)
    ours = rapt.onnx.run_node(node, list(arrays.values()), opset_version=23)
    assert_as_exact(ours, on_onnxruntime(node, arrays, 23), in_double(node, arrays, 23))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def qkv(rng):
    return {name: rng.standard_normal((2, 3, 4, 8), np.float32) for name in "QKV"}


def test_scores_of_mode_0_are_those_before_softcap(qkv):
    """The first difference above."""
    def scores(run, **attributes):
        node = helper.make_node("Attention", list("QKV"), ["Y", "", "", "scores"], **attributes)
        return run(node)[-1]

    def ours(node):
        return rapt.onnx.run_node(node, list(qkv.values()), opset_version=23)

    found = scores(ours, softcap=0.5)
    np.testing.assert_array_equal(found, scores(ours))
    theirs = scores(lambda node: on_onnxruntime(node, qkv, 23), softcap=0.5)
    np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
    assert np.abs(found).max() > 0.5


def test_scores_of_mode_2_are_those_with_the_mask(qkv, rng):
    """The second difference above."""
    qkv["attn_mask"] = rng.random((4, 4)) < 0.6
    node = helper.make_node("Attention", list(qkv), ["Y", "", "", "scores"], qk_matmul_output_mode=2, is_causal=1)
    ours = rapt.onnx.run_node(node, list(qkv.values()), opset_version=23)[-1]
    theirs, truth = on_onnxruntime(node, qkv, 23)[-1], in_double(node, qkv, 23)[-1]
    hidden = np.isneginf(truth)
    assert np.array_equal(np.isneginf(ours), hidden) and hidden.any() and not hidden.all()
    assert_as_exact([ours[~hidden]], [theirs[~hidden]], [truth[~hidden]])


# ---------------------------------------------------------------- cases that those tests do not cover


def attend(arrays, opset=25, outputs=("Y",), **attributes):
    names = [name if x is not None else "" for name, x in arrays.items()]
    node = helper.make_node("Attention", names, outputs, **attributes)
    return rapt.onnx.run_node(node, [x for x in arrays.values() if x is not None], opset_version=opset)


@pytest.mark.parametrize("precision", ["FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])
def test_softmax_precision_is_at_least_what_is_asked_for(qkv, precision):
    (plain,), (asked,) = attend(qkv), attend(qkv, softmax_precision=TensorProto.DataType.Value(precision))
    assert asked.dtype == np.float32
    np.testing.assert_allclose(asked, plain, rtol=1e-5, atol=1e-6)
    double = {name: x.astype(np.float64) for name, x in qkv.items()}
    if precision == "DOUBLE":
        np.testing.assert_array_equal(asked, attend(double)[0].astype(np.float32))


@pytest.mark.parametrize("key, value", [("float16", "float32"), ("float32", "float16"), ("float32", "float64")])
def test_values_may_have_a_type_of_their_own(qkv, key, value):
    mixed = {name: x.astype(value if name == "V" else key) for name, x in qkv.items()}
    (found,) = attend(mixed)
    (expected,) = attend({name: x.astype(np.float64) for name, x in mixed.items()})
    assert found.dtype == key
    rounding = float(np.finfo(key).eps)
    np.testing.assert_allclose(found, expected, rtol=8 * rounding, atol=8 * rounding)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_a_mask_of_integers_is_added(qkv, rng, dtype):
    mask = rng.integers(0, 3, (4, 4)).astype(dtype)
    (found,), (expected,) = attend(qkv | {"attn_mask": mask}), attend(qkv | {"attn_mask": mask.astype("f4")})
    np.testing.assert_array_equal(found, expected)


def test_a_shorter_mask_hides_the_rest_since_opset_24(qkv):
    mask = np.ones((4, 2), bool)
    whole = np.broadcast_to(np.arange(4) < 2, (4, 4))
    np.testing.assert_array_equal(attend(qkv | {"attn_mask": mask})[0], attend(qkv | {"attn_mask": whole})[0])
    with pytest.raises(ValueError, match="mask"):
        attend(qkv | {"attn_mask": mask}, opset=23)


def test_other_operators_functions_and_branches_run_with_them(qkv, monkeypatch):
    """A model of several operators, with attention in a function and in a branch."""
    calls = []
    compute = bridge.attention
    monkeypatch.setattr(bridge, "attention", lambda *args, **kwargs: calls.append(1) or compute(*args, **kwargs))
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 23, "mine" : 1]>
        several (float[2,3,4,8] Q, float[2,3,4,8] K, float[2,3,4,8] V, bool causal) => (float[2,3,4,8] Z)
        {
            twice = Add (Q, Q)
            Y = mine.attend (twice, K, V)
            Z = If (causal) <
                then_branch = yes () => (float[2,3,4,8] A) { A = Attention <is_causal = 1> (Y, K, V) },
                else_branch = no () => (float[2,3,4,8] B) { B = Attention (Y, K, V) }
            >
        }
        <opset_import: ["" : 23], domain: "mine">
        attend (q, k, v) => (y) { y = Attention (q, k, v) }
    """)
    for causal in (True, False):
        inputs = qkv | {"causal": np.array(causal)}
        (found,) = rapt.onnx.prepare(model).run(inputs)
        (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    assert len(calls) == 4


def test_it_is_a_backend():
    assert issubclass(rapt.onnx.RaptBackend, onnx.backend.base.Backend)
    assert rapt.onnx.supports_device("CPU") and not rapt.onnx.supports_device("CUDA:0")
    model = CASES["test_attention_4d"].model
    assert rapt.onnx.is_compatible(model) and not rapt.onnx.is_compatible(model, "CUDA")


WRONG = {
    "past_key and past_value must be given together": dict(attn_mask=None, past_key=np.zeros((2, 3, 1, 8), "f4")),
    "Q, K and V have ranks [3, 4, 4]; all must have 3, or all 4": dict(Q=np.zeros((2, 4, 24), "f4")),
    "attn_mask has rank 5": dict(attn_mask=np.zeros((1, 1, 1, 4, 4), "f4")),
    "key has head size 8, query has 6": dict(Q=np.zeros((2, 3, 4, 6), "f4")),
    "softmax_precision is 7; it may be one of FLOAT16 (10)": dict(softmax_precision=7),
    "qk_matmul_output_mode is 4": dict(qk_matmul_output_mode=4),
    "left_window_size is -2": dict(left_window_size=-2),
    "q_num_heads and kv_num_heads are for Q, K and V of rank 3": dict(q_num_heads=3),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_fit_is_said(message, qkv):
    arrays = qkv | {name: x for name, x in WRONG[message].items() if x is None or isinstance(x, np.ndarray)}
    attributes = {name: x for name, x in WRONG[message].items() if isinstance(x, int)}
    with pytest.raises(ValueError, match=re.escape(message)):
        attend(arrays, **attributes)


def test_what_cannot_be_run_is_said(qkv):
    model = CASES["test_attention_4d"].model
    with pytest.raises(ValueError, match="device 'CUDA' was requested; rapt runs on 'CPU'"):
        rapt.onnx.prepare(model, "CUDA")
    with pytest.raises(ValueError, match="2 inputs were given; the model has 3: Q, K, V"):
        rapt.onnx.prepare(model).run([qkv["Q"], qkv["K"]])
    rotate = helper.make_node("RotaryEmbedding", ["X", "cos", "sin"], ["Y"])
    x, table = np.zeros((2, 4, 24), "f4"), np.zeros((2, 4, 3), "f4")
    with pytest.raises(ValueError, match="num_heads must give the number of heads"):
        rapt.onnx.run_node(rotate, [x, table, table])
    with pytest.raises(ValueError, match=re.escape("cos_cache has shape (2, 4, 3); it must be (2, 4, 4)")):
        rapt.onnx.run_node(rotate, [qkv["Q"], table, table])


@pytest.mark.parametrize("position", [-1, 7, 2**40])
def test_a_position_that_the_tables_do_not_have_is_refused(qkv, position):
    rotate = helper.make_node("RotaryEmbedding", ["X", "cos", "sin", "positions"], ["Y"])
    positions, table = np.zeros((2, 4), np.int64), np.zeros((7, 4), "f4")
    positions[1, 2] = position
    expected = f"position_ids holds {position}; cos_cache has 7 positions, so it must be from 0 to 6"
    with pytest.raises(ValueError, match=re.escape(expected)):
        rapt.onnx.run_node(rotate, [qkv["Q"], table, table, positions])
