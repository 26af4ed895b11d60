"""rapt.transformers under torch.compile: models with a window or chunks, whose masks are more than a triangle."""

import pytest
import torch
import transformers
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
# PyTorch warns of its own look at what a broken graph hands on.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
windowed = pytest.mark.parametrize("tiny", WINDOWED, ids=lambda tiny: tiny.name)


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch.compiler.reset()


def whole(batch, logits):
    """The rows that are no padding."""
    return logits[batch["attention_mask"].bool()] if "attention_mask" in batch else logits


@pytest.mark.parametrize("padding", [None, "left", "right"])
@windowed
def test_a_compiled_model_gives_what_eager_attention_gives(tiny, padding):
    theirs, batch = tiny.make(), tiny.batch(padding)
    compiled = torch.compile(on_rapt(theirs), backend="eager")
    with torch.no_grad():
        expected, found = theirs(**batch).logits, compiled(**batch).logits
    torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)


@windowed
def test_a_compiled_model_trains(tiny):
    theirs, batch = without_dropout(tiny.make()).train(), tiny.batch("right")
    ours = on_rapt(theirs)
    losses = []
    for model in (theirs, torch.compile(ours, backend="aot_eager")):
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
    """Past the window, with a cache of a fixed size, as transformers compiles it; and with one that grows."""
    theirs, batch = tiny.make(), tiny.batch("left")
    del batch["labels"]
    ours = on_rapt(theirs)
    ours.forward = torch.compile(ours.forward, backend="eager")
    for cache in ("dynamic", "static"):
        settings = dict(max_new_tokens=12, do_sample=False, cache_implementation=cache, disable_compile=True)
        assert torch.equal(ours.generate(**batch, **settings), theirs.generate(**batch, **settings)), cache


def test_a_model_compiled_to_machine_code_gives_what_eager_attention_gives():
    tiny = WINDOWED[0]
    theirs, batch = tiny.make(), tiny.batch("left")
    with torch.no_grad():
        expected, found = theirs(**batch).logits, torch.compile(on_rapt(theirs))(**batch).logits
    torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)


def test_layers_that_are_compiled_alone_take_masks_that_were_made_outside():
    tiny = WINDOWED[0]
    theirs = tiny.make()
    ours = on_rapt(theirs)
    for layer in ours.model.layers:
        layer.forward = torch.compile(layer.forward, backend="aot_eager")
    for padding in (None, "left"):
        batch = tiny.batch(padding)
        with torch.no_grad():
            expected, found = theirs(**batch).logits, ours(**batch).logits
        torch.testing.assert_close(whole(batch, found), whole(batch, expected), rtol=1e-4, atol=1e-4)
