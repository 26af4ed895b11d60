"""rapt::attention as a PyTorch operator: autograd, compilers, and PyTorch's own check of operators."""

import subprocess
import sys

import pytest
import rapt.torch
import torch
from rapt.torch import sdpa
from rapt.bridges.torch.operator import Attention
from torch.autograd import gradcheck, gradgradcheck

attention = torch.ops.rapt.attention.default
attention_backward = torch.ops.rapt.attention_backward.default


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(21)


def arguments(query, key, value, **given):
    """All arguments of the operator, in order: those that are not given are left out of the computation."""
    rest = dict(attn_mask=None, key_mask=None, sinks=None, seed=None, alignment=None, key_lengths=None, dropout_p=0.0,
                is_causal=False, scale=None, weights="none", softcap=0.0, left=None, right=None)  # fmt: skip
    assert given.keys() <= rest.keys()
    return query, key, value, *(rest | given).values()


def inputs(dtype=torch.float64, grad=True):
    """query (2, 4, 3, 5), key (2, 2, 4, 5), value (2, 2, 4, 6), mask (3, 4)."""
    shapes = ((2, 4, 3, 5), (2, 2, 4, 5), (2, 2, 4, 6), (3, 4))
    return [torch.randn(shape, dtype=dtype, requires_grad=grad) for shape in shapes]


# ---------------------------------------------------------------- autograd

CALLS = {
    "mask": lambda q, k, v, m: sdpa(q, k, v, m, enable_gqa=True),
    "causal": lambda q, k, v, m: sdpa(q, k, v, is_causal=True, enable_gqa=True),
    "scale": lambda q, k, v, m: sdpa(q, k, v, scale=-0.3, enable_gqa=True),
    "dropout": lambda q, k, v, m: (torch.manual_seed(3), sdpa(q, k, v, m, 0.4, enable_gqa=True))[1],
    "two dimensions": lambda q, k, v, m: sdpa(q[0, 0], k[0, 0], v[0, 0], m),
    "a row that sees nothing": lambda q, k, v, m: sdpa(q, k, v, m * 0 + SEES, enable_gqa=True),
}
SEES = torch.tensor([[0.0, 0.0, -torch.inf, 1.0], [-torch.inf] * 4, [0.0] * 4], dtype=torch.float64)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_gradcheck(call):
    assert gradcheck(call, inputs())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_gradgradcheck(call):
    assert gradgradcheck(call, inputs())


@pytest.mark.parametrize("weights", ["none", "mean", "per_head"])
def test_gradients_that_arrive_at_lse_and_weights(weights):
    *qkv, mask = inputs()
    padding = torch.tensor([True, True, False, True]).view(1, 1, 1, 4).expand(2, 1, 1, 4)

    def call(q, k, v, m):
        results = attention(*arguments(q, k, v, attn_mask=m.view(1, 1, 3, 4), key_mask=padding, weights=weights))
        return results[: 2 if weights == "none" else 3]

    assert gradcheck(call, (*qkv, mask))
    assert gradgradcheck(call, (*qkv, mask))


OPTIONS = {
    "causal from a position on": {"is_causal": True, "alignment": torch.tensor(1)},
    "window": {"left": 1, "right": 1, "alignment": torch.tensor(1)},
    "key lengths": {"key_lengths": torch.tensor([4, 2])},
    "softcap": {"softcap": 1.5, "scale": -0.7},
    "sinks": {"sinks": torch.randn(4, dtype=torch.float64)},
    "sinks of rows that see nothing": {"sinks": torch.randn(4, dtype=torch.float64),
                                       "key_lengths": torch.tensor([4, 0])},
    "dropout": {"dropout_p": 0.3, "seed": torch.tensor(9)},
    "all": {"is_causal": True, "left": 2, "alignment": torch.tensor(1), "key_lengths": torch.tensor([4, 3]),
            "softcap": 2.0, "sinks": torch.randn(4, dtype=torch.float64)},
}  # fmt: skip


@pytest.mark.parametrize("eager", [True, False], ids=["function", "operator"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gradients_of_every_option(options, eager):
    """First and second gradients, from the function that eager calls use and from the operator."""
    *qkv, bias = inputs()
    bias = bias.detach().view(1, 1, 3, 4).requires_grad_()
    keep = (torch.rand(2, 1, 1, 4) > 0.3).expand(2, 1, 3, 4)
    sinks = [options["sinks"].requires_grad_()] if "sinks" in options else []

    def call(q, k, v, bias, *sinks):
        given = arguments(q, k, v, **options | {"attn_mask": bias, "key_mask": keep, "weights": "per_head"}
                          | ({"sinks": sinks[0]} if sinks else {}))  # fmt: skip
        return Attention.apply(*given) if eager else attention(*given)

    assert gradcheck(call, (*qkv, bias, *sinks))
    if eager:  # from here on, both run the same code
        assert gradgradcheck(call, (*qkv, bias, *sinks))


def first_and_second(call, *given):
    """The gradients of a sum, computed once, and computed so that they can be differentiated again."""
    return [torch.autograd.grad(call(*given).sum(), given, create_graph=again) for again in (False, True)]


def test_a_nan_in_a_query_reaches_gradients_of_both_kinds():
    q, k, v = (torch.randn(1, 1, 3, 4, dtype=torch.float64) for _ in range(3))
    q[0, 0, 1, 2] = torch.nan
    once, again = first_and_second(sdpa, *(x.requires_grad_() for x in (q, k, v)))
    for first, second in zip(once, again):
        torch.testing.assert_close(second.detach(), first, equal_nan=True)
    assert once[0][0, 0, 1].isnan().all() and not once[0][0, 0, [0, 2]].isnan().any()


@pytest.mark.parametrize("hide", ["key_lengths", "key_mask"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_no_query_sees_reaches_no_gradient_of_either_kind(bad, hide):
    *qkv, _ = inputs(grad=False)
    for x in qkv[1:]:
        x[:, :, 3] = bad
    hidden = {"key_lengths": torch.tensor([3, 3]),
              "key_mask": torch.tensor([True, True, True, False]).expand(2, 1, 3, 4)}  # fmt: skip
    once, again = first_and_second(
        lambda q, k, v: Attention.apply(*arguments(q, k, v, **{hide: hidden[hide]}))[0],
        *(x.requires_grad_() for x in qkv),
    )
    for first, second in zip(once, again):
        assert second.isfinite().all()
        torch.testing.assert_close(second.detach(), first)


@pytest.mark.parametrize("types", [("bfloat16", "bfloat16", "float32", "float32"), ("float16", "float16", "float16",
                                   "float32"), ("bfloat16", "float32", "float32", "bfloat16")], ids="-".join)  # fmt: skip
def test_gradients_of_inputs_of_several_types_can_be_differentiated_again(types):
    query, key, bias, sinks = (getattr(torch, name) for name in types)
    q, k, v, mask = inputs(torch.float32, grad=False)
    given = [x.requires_grad_() for x in (q.to(query), k.to(key), v.to(key), mask.view(1, 1, 3, 4).to(bias),
                                          torch.randn(4).to(sinks))]  # fmt: skip
    once, again = first_and_second(
        lambda q, k, v, m, s: Attention.apply(*arguments(q, k, v, attn_mask=m, sinks=s))[0], *given
    )
    for x, first, second in zip(given, once, again):
        assert first.dtype == second.dtype == x.dtype
        torch.testing.assert_close(second.detach(), first, rtol=0.02, atol=0.02)
    assert all(x.isfinite().all() for x in torch.autograd.grad(sum(x.float().square().sum() for x in again), given))


def test_second_gradients_where_everything_is_dropped():
    q, k, v, _ = inputs()
    once, again = first_and_second(
        lambda q, k, v: Attention.apply(*arguments(q, k, v, dropout_p=1.0, seed=torch.tensor(5)))[0], q, k, v
    )
    for first, second in zip(once, again):
        assert not first.any() and not second.any()


def test_one_function_and_one_operator_are_differentiable():
    """sdpa, the layer, transformers and compilers share them."""
    import rapt.transformers  # noqa: F401

    found, left = set(), [torch.autograd.Function]
    while left:
        for kind in left.pop().__subclasses__():
            left.append(kind)
            found.add(f"{kind.__module__}.{kind.__name__}")
    assert {x for x in found if x.startswith("rapt.")} == {"rapt.bridges.torch.operator.Attention"}
    schemas = [str(x) for x in torch._C._jit_get_all_schemas() if x.name.startswith("rapt::")]
    assert sorted(x.partition("(")[0] for x in schemas) == ["rapt::attention", "rapt::attention_backward"]
    q, k, v, _ = inputs()
    results = {
        "sdpa": sdpa(q, k, v, enable_gqa=True),
        "transformers": rapt.transformers.attention_forward(torch.nn.Module(), q, k, v, None)[0],
    }
    for name, out in results.items():
        steps, nodes = [out.grad_fn], set()
        while steps:
            step = steps.pop()
            nodes.add(step.name())
            steps += [x for x, _ in step.next_functions if x is not None]
        assert "AttentionBackward" in nodes, name


def test_gradients_are_computed_for_what_asks_for_them_alone(monkeypatch):
    asked = []
    backward = rapt._rapt.attention_backward
    monkeypatch.setattr(rapt._rapt, "attention_backward", lambda *a: (asked.append(list(a[5])), backward(*a))[1])
    q, k, v, m = inputs(grad=False)
    for chosen in ((q,), (k, v), (m,)):
        for x in (q, k, v, m):
            x.requires_grad_(any(x is y for y in chosen))
        sdpa(q, k, v, m, enable_gqa=True).sum().backward()
    assert asked == [["dquery"], ["dkey", "dvalue"], ["dmasks"]]


def test_what_changes_in_place_is_noticed():
    q, k, v, _ = inputs()
    k2 = k * 1.0
    out = sdpa(q, k2, v, enable_gqa=True)
    k2 += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


# ---------------------------------------------------------------- PyTorch's check of operators


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # opcheck reads it itself
def test_opcheck_of_attention():
    q, k, v, m = inputs()
    mask = m.detach().view(1, 1, 3, 4).requires_grad_()
    padding = torch.tensor([True, True, False, True]).expand(2, 1, 1, 4)
    seed = torch.tensor(5)
    plain = [x.detach() for x in (q, k, v)]
    turned = q.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    sinks = torch.randn(4, dtype=torch.float64, requires_grad=True)
    at, lengths = torch.tensor(2), torch.tensor([4, 3])
    for call in (
        arguments(q, k, v, is_causal=True),
        arguments(q, k, v, attn_mask=mask, key_mask=padding, seed=seed, dropout_p=0.3, scale=0.2, weights="per_head"),
        arguments(q, k, v, attn_mask=padding, key_mask=mask, weights="mean"),
        arguments(q, k, v, sinks=sinks, alignment=at, key_lengths=lengths, is_causal=True, softcap=2.0, left=1),
        arguments(turned, k, v, attn_mask=mask),
        arguments(*plain, alignment=at, left=2, right=0, weights="mean"),
        arguments(*[x.bfloat16().requires_grad_() for x in plain]),
    ):
        assert set(torch.library.opcheck(attention, call).values()) == {"SUCCESS"}


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # opcheck reads it itself
def test_opcheck_of_attention_backward():
    q, k, v, m = inputs(grad=False)
    mask = m.view(1, 1, 3, 4)
    call = arguments(q, k, v, attn_mask=mask, sinks=torch.randn(4, dtype=torch.float64), weights="per_head")
    out, lse, weights = attention(*call)
    for arrived, wanted in (
        ((out, lse, weights), [True, True, True, True, False, True]),
        ((out, None, None), [False, True, False, False, False, False]),
    ):
        checked = torch.library.opcheck(attention_backward, (*arrived, out, lse, wanted, *call))
        assert set(checked.values()) == {"SUCCESS"}


# ---------------------------------------------------------------- torch.compile


def with_gradients(function, tensors):
    tensors = [x.detach().clone().requires_grad_() for x in tensors]
    out = function(*tensors)
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape))
    return [out, *[x.grad for x in tensors]]


COMPILED = {
    "mask": lambda q, k, v, m: sdpa(q, k, v, m, enable_gqa=True),
    "causal": lambda q, k, v, m: sdpa(q, k, v, is_causal=True, enable_gqa=True) + m.sum(),
    "broadcast": lambda q, k, v, m: sdpa(q, k[:1, :1], v[0, :1], m),
}


# "inductor", PyTorch's own compiler, is slow to generate C++, so only one call uses it, with each kind of shapes. The
# decomposition before the backend is the same with "aot_eager".
WAYS = [("mask", "inductor", False), ("mask", "inductor", True), ("causal", "aot_eager", False),
        ("causal", "aot_eager", True), ("broadcast", "aot_eager", False), ("broadcast", "aot_eager", True)]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of PyTorch's compiler
@pytest.mark.parametrize("call, backend, dynamic", WAYS)
def test_compiled_it_gives_its_eager_bits(call, backend, dynamic):
    torch._dynamo.reset()
    call = COMPILED[call]
    compiled = torch.compile(call, fullgraph=True, dynamic=dynamic, backend=backend)
    for queries, keys in ((3, 4), (6, 9)) if dynamic else ((3, 4),):
        tensors = [torch.randn(*shape) for shape in ((2, 4, queries, 8), (2, 2, keys, 8), (2, 2, keys, 6),
                                                     (queries, keys))]  # fmt: skip
        for mine, eager in zip(with_gradients(compiled, tensors), with_gradients(call, tensors)):
            assert torch.equal(mine, eager)
        with torch.no_grad():
            assert torch.equal(compiled(*tensors), call(*tensors))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_with_dynamic_shapes_it_is_compiled_once():
    torch._dynamo.reset()
    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph

    compiled = torch.compile(lambda q: sdpa(q, q, q, is_causal=True), backend=count, fullgraph=True, dynamic=True)
    for length in (3, 5, 17):
        q = torch.randn(2, 4, length, 8)
        assert torch.equal(compiled(q), sdpa(q, q, q, is_causal=True))
    assert len(graphs) == 1
    assert "rapt.attention" in graphs[0].print_readable(print_output=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_dropout_follows_manual_seed_and_drops_the_same_on_the_way_back():
    torch._dynamo.reset()
    q = torch.zeros(1, 2, 16, 4)
    v = torch.ones(1, 2, 16, 4)
    compiled = torch.compile(lambda q, v: sdpa(q, q, v, dropout_p=0.5), fullgraph=True, backend="aot_eager")
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(with_gradients(lambda v: compiled(q, v), [v]))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
    assert not torch.equal(results[0][0], results[2][0])
    out, dv = results[0]
    # All weights are 1/16, so the output of row i shows which of them are kept, and so does the gradient of the values.
    dout = torch.linspace(-1, 1, out.numel()).view(out.shape)
    torch.testing.assert_close((dv * v).sum(), (dout * out).sum())


def test_exported_it_is_one_operator():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return sdpa(q, k, v, is_causal=True)

    q = torch.randn(2, 4, 6, 8)
    program = torch.export.export(Model(), (q, q, q))
    assert attention in [node.target for node in program.graph.nodes]
    assert torch.equal(program.module()(q, q, q), sdpa(q, q, q, is_causal=True))


# ---------------------------------------------------------------- imports


def test_importing_rapt_imports_no_torch():
    code = "import sys, rapt; assert not {'torch', 'transformers', 'onnx', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_importing_rapt_torch_imports_no_compiler():
    code = "import sys, torch; before = set(sys.modules); import rapt.torch; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", code], check=True, timeout=300, capture_output=True, text=True)
    new = set(run.stdout.split())
    assert "rapt.torch" in new
    assert not {"sympy", "torch._dynamo", "torch._inductor"} & new
