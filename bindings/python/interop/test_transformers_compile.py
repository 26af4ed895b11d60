"""rapt.transformers under torch.compile: models with a window or chunks, whose masks are more than a triangle."""

import copy

import pytest
import torch
import transformers
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from tiny_models import MODELS, Tiny, decoder, on_rapt, without_dropout

import rapt.transformers  # noqa: F401

SLIDING = {"num_key_value_heads": 2, "head_dim": 12, "sliding_window": 8}
WINDOWED = [
    *(tiny for tiny in MODELS if tiny.name in ("Mistral", "Gemma 2", "gpt-oss")),
    Tiny("Gemma 3", transformers.Gemma3ForCausalLM,
         decoder(transformers.Gemma3TextConfig, layer_types=["sliding_attention"] * 2 + ["full_attention"], **SLIDING)),
    Tiny("Cohere 2", transformers.Cohere2ForCausalLM,
         decoder(transformers.Cohere2Config, layer_types=["sliding_attention"] * 2 + ["full_attention"], **SLIDING)),
    Tiny("Llama 4", transformers.Llama4ForCausalLM,
         decoder(transformers.Llama4TextConfig, num_key_value_heads=2, head_dim=12, attention_chunk_size=8,
                 intermediate_size_mlp=64, num_local_experts=2)),
    Tiny("Qwen2", transformers.Qwen2ForCausalLM,
         decoder(transformers.Qwen2Config, num_key_value_heads=2, use_sliding_window=True, sliding_window=8,
                 max_window_layers=1)),
]  # fmt: skip
COMPILED = [*(tiny for tiny in MODELS if tiny.name in ("Llama", "GPT-2")), *WINDOWED]
BREAKS_BY_ITSELF = ("gpt-oss",)  # its experts loop over the contents of a tensor
# PyTorch warns about its own access to values at a graph break.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
windowed = pytest.mark.parametrize("tiny", WINDOWED, ids=lambda tiny: tiny.name)
compiled = pytest.mark.parametrize("tiny", COMPILED, ids=lambda tiny: tiny.name)
llama_and_mistral = pytest.mark.parametrize("tiny", [x for x in COMPILED if x.name in ("Llama", "Mistral")],
                                            ids=lambda tiny: tiny.name)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch.compiler.reset()


def whole(batch, logits):
    """The rows that are not padding."""
    return logits[batch["attention_mask"].bool()] if "attention_mask" in batch else logits


def in_one_graph(tiny):
    return tiny.name not in BREAKS_BY_ITSELF


@pytest.mark.parametrize("padding", [None, "left", "right"])
@compiled
def test_a_compiled_model_gives_what_eager_attention_gives(tiny, padding):
    """In one graph, with the bits of rapt without a compiler."""
    theirs, batch = tiny.make(), tiny.batch(padding)
    del batch["labels"]
    ours = on_rapt(theirs)
    with torch.no_grad():
        expected, uncompiled = theirs(**batch).logits, ours(**batch).logits
        found = torch.compile(ours, backend="aot_eager", fullgraph=in_one_graph(tiny))(**batch).logits
    assert torch.equal(found, uncompiled)
    torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", [None, "left"])
@llama_and_mistral
def test_a_compiled_model_takes_no_matrix_for_a_mask(tiny, padding):
    masks = []

    def look(graph, inputs):
        for node in graph.graph.nodes:
            if node.target is torch.ops.rapt.attention.default:
                masks.append([None if x is None else x.meta["val"].shape for x in node.args[3:5]])
        return graph

    batch = tiny.batch(padding)
    del batch["labels"]
    with torch.no_grad():
        torch.compile(on_rapt(tiny.make()), backend=aot_autograd(fw_compiler=look), fullgraph=True)(**batch)
    keys = None if padding is None else (3, 1, 1, 21)
    assert masks == [[keys, None]] * 3  # for each layer


@windowed
def test_a_compiled_model_trains(tiny):
    theirs, batch = without_dropout(tiny.make()).train(), tiny.batch("right")
    ours = on_rapt(theirs)
    losses = []
    for model in (theirs, torch.compile(ours, backend="aot_eager", fullgraph=in_one_graph(tiny))):
        loss = model(**batch).loss
        loss.backward()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    for expected, found in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert (expected.grad is None) == (found.grad is None)
        if expected.grad is not None:
            torch.testing.assert_close(found.grad, expected.grad, rtol=1e-3, atol=1e-4)


@windowed
def test_a_compiled_model_generates(tiny):
    """Generates past the window, with a cache that grows and with one of a fixed size."""
    theirs, batch = tiny.make(), tiny.batch("left")
    del batch["labels"]
    ours = on_rapt(theirs)
    ours.forward = torch.compile(ours.forward, backend="eager")
    for cache in ("dynamic", "static"):
        settings = dict(max_new_tokens=12, do_sample=False, cache_implementation=cache, disable_compile=True)
        assert torch.equal(ours.generate(**batch, **settings), theirs.generate(**batch, **settings)), cache


@pytest.mark.parametrize("padding", [None, "left"])
@llama_and_mistral
def test_generate_compiles_one_graph_for_a_static_cache(tiny, padding):
    """As transformers compiles it: no break, no more graphs than with sdpa, and the bits of rapt without a compiler."""
    theirs, batch = tiny.make(), tiny.batch(padding)
    del batch["labels"]
    settings = dict(max_new_tokens=6, do_sample=False, cache_implementation="static", return_dict_in_generate=True,
                    output_logits=True)  # fmt: skip
    how = transformers.CompileConfig(fullgraph=True, dynamic=False, backend="aot_eager", mode=None)
    how._compile_all_devices = True
    graphs, answers = {}, {}
    for name in ("sdpa", "rapt"):
        model = copy.deepcopy(theirs)
        model.set_attn_implementation(name)
        uncompiled = model.generate(**batch, **settings, disable_compile=True)
        torch.compiler.reset()
        counters.clear()
        answers[name] = model.generate(**batch, **settings, compile_config=how)
        graphs[name] = counters["stats"]["unique_graphs"]
        if name == "rapt":
            assert torch.equal(answers[name].sequences, uncompiled.sequences)
            assert all(map(torch.equal, answers[name].logits, uncompiled.logits))
    assert graphs["rapt"] == graphs["sdpa"] >= 1
    assert torch.equal(answers["rapt"].sequences, answers["sdpa"].sequences)
    for one, other in zip(answers["rapt"].logits, answers["sdpa"].logits, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_model_compiled_to_machine_code_gives_what_eager_attention_gives():
    tiny = WINDOWED[0]
    theirs, batch = tiny.make(), tiny.batch("left")
    del batch["labels"]
    with torch.no_grad():
        expected, found = theirs(**batch).logits, torch.compile(on_rapt(theirs), fullgraph=True)(**batch).logits
    torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)


def test_layers_that_are_compiled_alone_take_masks_that_were_made_outside():
    tiny = WINDOWED[0]
    theirs = tiny.make()
    ours = on_rapt(theirs)
    for layer in ours.model.layers:
        layer.forward = torch.compile(layer.forward, backend="aot_eager", fullgraph=True)
    for padding in (None, "left"):
        batch = tiny.batch(padding)
        with torch.no_grad():
            expected, found = theirs(**batch).logits, ours(**batch).logits
        torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("made", ["outside", "inside"])
def test_a_mask_that_compiled_code_reads_and_attends_with(made):
    x = torch.randn(1, 2, 5, 8)

    def compute(x, mask):
        if mask is None:
            mask = rapt.transformers.attention_mask(batch_size=1, q_length=5, kv_length=5)
        attend = rapt.transformers.attention_forward
        shorter = attend(torch.nn.Module(), x, x[:, :, :4], x[:, :, :4], mask[..., :4])[0]
        return mask.sum(), shorter, attend(torch.nn.Module(), x, x, x, mask)[0]

    def mask():
        return rapt.transformers.attention_mask(batch_size=1, q_length=5, kv_length=5) if made == "outside" else None

    found = torch.compile(compute, backend="aot_eager", fullgraph=True)(x, mask())
    assert all(map(torch.equal, found, compute(x, mask())))
