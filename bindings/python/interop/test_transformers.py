"""rapt.transformers: tiny models of transformers give the same results as with their own attention.

Differences in behaviour:

- A query whose keys are all hidden gives 0. transformers' written-out attention adds the lowest float to every score of
  such a row, which makes it attend evenly to all keys, later ones and padding included. Only padding has such rows (on
  the left, or on the right past a window); nothing reads them, and padding is left out where logits are compared.
"""

import contextlib
import itertools

import pytest
import torch
import transformers
from tiny_models import MODELS, on_rapt, without_dropout
from transformers import masking_utils

import rapt
import rapt.transformers
from rapt.bridges.transformers import attention as attention_module
from rapt.bridges.transformers.masks import Pattern, StructuredMask, read_pattern

by_name = {tiny.name: tiny for tiny in MODELS}
every_model = pytest.mark.parametrize("tiny", MODELS, ids=lambda tiny: tiny.name)
generating = pytest.mark.parametrize("tiny", [x for x in MODELS if x.generates], ids=lambda tiny: tiny.name)


def error(found, truth):
    """The maximum error and the root mean square error of the rows that are compared."""
    difference = (found.double() - truth).abs()
    return torch.stack([difference.max(), difference.square().mean().sqrt()])


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


def of_type(dtype, batch):
    return {name: x.to(dtype) if x.is_floating_point() else x for name, x in batch.items()}


@contextlib.contextmanager
def softmax_in_double():
    """Several models round scores to float32 for their softmax; float64's lowest number would overflow there."""
    softmax = torch.nn.functional.softmax
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "softmax", lambda x, dim=None, dtype=None: softmax(x, dim=dim))
        yield


def in_double(compute, model, batch):
    """Converts the model to float64, and returns the result with its own attention."""
    with softmax_in_double():
        return compute(model.double(), of_type(torch.float64, batch))


def compared_rows(batch, shape):
    """The rows that are not padding."""
    seen = batch.get("attention_mask")
    return slice(None) if seen is None or shape[1] != seen.shape[1] else seen.bool()


class Spy:
    """Counts calls of rapt's attention, and how many of them were given a matrix of Lq x Lk."""

    def __init__(self, monkeypatch):
        self.calls = self.matrices = 0
        compute = attention_module.attend

        def counted(query, key, value, *masks, **options):
            self.calls += 1
            self.matrices += any(mask.dtype == torch.bool and mask.shape[2] > 1 for mask in masks)
            return compute(query, key, value, *masks, **options)

        monkeypatch.setattr(attention_module, "attend", counted)


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


# ---------------------------------------------------------------- the models


@pytest.mark.parametrize("padding", [None, "left", "right"])
@every_model
def test_logits_are_as_exact_as_the_model_s_own(tiny, padding, spy):
    theirs, batch = tiny.make(), tiny.batch(padding)
    own, ours = logits(theirs, batch), logits(on_rapt(theirs), batch)
    truth = in_double(logits, theirs, batch)
    rows = compared_rows(batch, truth.shape)
    floor = torch.finfo(torch.float32).eps * truth.abs().max()
    assert (error(ours[rows], truth[rows]) <= 2 * error(own[rows], truth[rows]) + floor).all()
    assert spy.calls >= 3 and spy.matrices == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@every_model
def test_logits_in_16_bits_are_as_exact_as_the_model_s_own(tiny, dtype):
    theirs, batch = tiny.make().to(dtype), tiny.batch("right")
    batch = of_type(dtype, batch)
    own, ours = logits(theirs, batch), logits(on_rapt(theirs), batch)
    assert ours.dtype == dtype
    truth = in_double(logits, theirs, batch)
    rows = compared_rows(batch, truth.shape)
    floor = torch.finfo(dtype).eps * truth.abs().max()
    assert (error(ours[rows], truth[rows]) <= 2 * error(own[rows], truth[rows]) + floor).all()


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("padding", [None, "left"])
@generating
def test_greedy_generation_is_the_same(tiny, padding, cache, spy):
    theirs, batch = tiny.make(), tiny.batch(padding)
    del batch["labels"]
    settings = dict(max_new_tokens=64, min_new_tokens=64, do_sample=False, cache_implementation=cache,
                    no_repeat_ngram_size=3)  # fmt: skip
    expected = theirs.generate(**batch, **settings)
    found = on_rapt(theirs).generate(**batch, **settings)
    assert expected.shape[1] >= 64 and torch.equal(found, expected)
    assert len(expected[0].unique()) > 4  # not the same token repeatedly
    assert spy.calls >= 64 * 3 and spy.matrices == 0


@every_model
def test_twenty_steps_of_training_lose_as_much(tiny):
    theirs = without_dropout(tiny.make()).train()
    ours = on_rapt(theirs)
    assert training(ours, tiny) == pytest.approx(training(theirs, tiny), rel=1e-4)


def training(model, tiny):
    """The losses of twenty steps, alternating between a full and a padded batch."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for step in range(20):
        odd = step % 2
        loss = model(**tiny.batch("right" if odd else None, seed=odd)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-2] < losses[0] and losses[-1] < losses[1]
    return losses


@every_model
def test_gradients_of_every_parameter_are_as_exact_as_the_model_s_own(tiny):
    """Including sinks and the position bias."""
    theirs, batch = without_dropout(tiny.make()).train(), tiny.batch("right")
    own, ours = gradients(theirs, batch), gradients(on_rapt(theirs), batch)
    truth = in_double(gradients, theirs, batch)
    assert own.keys() == ours.keys() == truth.keys()
    # The gradient of a key bias is 0; what remains is rounding.
    floor = torch.finfo(torch.float32).eps * max(x.abs().max() for x in truth.values())
    for name, expected in truth.items():
        assert (error(ours[name], expected) <= 2 * error(own[name], expected) + floor).all(), name


def gradients(model, batch):
    model.zero_grad()
    model(**batch).loss.backward()
    return {name: x.grad for name, x in model.named_parameters() if x.grad is not None}


# ---------------------------------------------------------------- ways of training


def losses_and_gradients(model, batch, seed):
    torch.manual_seed(seed)
    model.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    return loss.item(), [x.grad for x in model.parameters() if x.grad is not None]


def test_dropout_follows_pytorch_s_seed_and_survives_checkpointing():
    tiny = by_name["Llama"]
    model, batch = on_rapt(tiny.make(attention_dropout=0.3)).train(), tiny.batch("right")
    loss, found = losses_and_gradients(model, batch, 5)
    again, the_same = losses_and_gradients(model, batch, 5)
    other, _ = losses_and_gradients(model, batch, 6)
    assert loss == again and loss != other
    assert all(map(torch.equal, found, the_same))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    checkpointed, through = losses_and_gradients(model, batch, 5)
    assert checkpointed == loss and all(map(torch.equal, found, through))


def test_dropout_drops_at_its_rate_and_scales_what_it_keeps():
    tiny = by_name["Llama"]
    theirs, batch = tiny.make(attention_dropout=0.25), tiny.batch(rows=8, length=40)
    with torch.no_grad():
        whole = theirs(**batch, output_attentions=True).attentions[0]
        dropped = on_rapt(theirs).train()(**batch, output_attentions=True).attentions[0]
    seen = whole > 0
    kept = dropped[seen] > 0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.01)
    torch.testing.assert_close(dropped[seen][kept], whole[seen][kept] / 0.75)


def test_autocast_computes_in_its_type():
    tiny = by_name["Llama"]
    theirs, batch = tiny.make(), tiny.batch("right")
    with torch.autocast("cpu", torch.bfloat16):
        own, ours = logits(theirs, batch), logits(on_rapt(theirs), batch)
    truth = in_double(logits, theirs, batch)
    rows = compared_rows(batch, truth.shape)
    assert (error(ours[rows], truth[rows]) <= 2 * error(own[rows], truth[rows])).all()


def test_weights_are_given_where_they_are_asked_for():
    tiny = by_name["gpt-oss"]
    theirs, batch = tiny.make(), tiny.batch()
    with torch.no_grad():
        own, ours = (model(**batch, output_attentions=True).attentions for model in (theirs, on_rapt(theirs)))
    for one, other in zip(own, ours, strict=True):
        torch.testing.assert_close(other, one)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_mask_of_one_s_own(kind):
    tiny = by_name["Llama"]
    theirs, batch = tiny.make(), tiny.batch()
    mask = (torch.rand(3, 1, 21, 21) > 0.4) | torch.eye(21, dtype=torch.bool)
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    own = logits(theirs, batch | {"attention_mask": added})
    ours = logits(on_rapt(theirs), batch | {"attention_mask": mask if kind == "bool" else added})
    torch.testing.assert_close(ours, own)


def test_packed_sequences_do_not_see_each_other(spy):
    tiny = by_name["Mistral"]
    theirs, batch = tiny.make(), tiny.batch() | {"use_cache": False}
    batch["position_ids"] = torch.cat([torch.arange(9), torch.arange(12)]).expand(3, -1)
    torch.testing.assert_close(logits(on_rapt(theirs), batch), logits(theirs, batch))
    assert spy.matrices == spy.calls > 0  # that pattern is passed as a matrix


def test_what_is_not_supported_says_so():
    attend = rapt.transformers.attention_forward
    x = torch.empty(1, 1, 2, 8, device="meta")
    with pytest.raises(ValueError, match="tensors are on meta; rapt's attention runs on the CPU"):
        attend(torch.nn.Module(), x, x, x, None)
    x = torch.randn(1, 1, 2, 8)
    with pytest.raises(NotImplementedError, match="continuous batching"):
        attend(torch.nn.Module(), x, x, x, None, cache=object())


@pytest.mark.parametrize("keys", [1, 5, 9])
def test_a_layer_without_a_mask_is_causal_where_it_says_so(keys):
    """As with transformers' sdpa: query 0 is aligned to the first key, and a single query sees all keys."""
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, keys, 8), torch.randn(2, 2, keys, 8)
    sdpa = transformers.AttentionInterface()["sdpa"]
    module = torch.nn.Module()
    module.num_key_value_groups = 2
    for module.is_causal, queries in itertools.product((True, False), (1, 5)):
        arguments = (module, q[:, :, :queries], k, v, None)
        torch.testing.assert_close(rapt.transformers.attention_forward(*arguments)[0], sdpa(*arguments)[0])


# ---------------------------------------------------------------- masks

WINDOW = 4
PATTERNS = {
    "causal": (masking_utils.causal_mask_function, Pattern(causal=True)),
    "full": (masking_utils.bidirectional_mask_function, Pattern()),
    "window": (masking_utils.sliding_window_causal_mask_function(WINDOW), Pattern(causal=True, left=WINDOW - 1)),
    "two-sided window": (
        masking_utils.sliding_window_bidirectional_mask_function(WINDOW),
        Pattern(left=WINDOW, right=WINDOW),
    ),
    "chunks": (masking_utils.chunked_causal_mask_function(WINDOW, torch.tensor([0, 2, 0])), None),
    "packed": (
        masking_utils.and_masks(
            masking_utils.causal_mask_function,
            masking_utils.packed_sequence_mask_function(torch.arange(12).expand(3, -1) // 5),
        ),
        None,
    ),
    "one's own": (lambda b, h, q, k: (q + k) % 2 == 0, None),
}
PADDINGS = {
    "none": None,
    "whole": torch.ones(3, 12, dtype=torch.bool),
    "left": torch.arange(12) >= torch.tensor([[0], [3], [7]]),
    "right": torch.arange(12) < torch.tensor([[12], [9], [5]]),
    "both": torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0], [1] * 8 + [0] * 4, [0, 1, 1, 1] + [0] * 8]) == 1,
    "holes": torch.arange(12) % 3 != torch.tensor([[0], [1], [2]]),
    "short": torch.ones(3, 7, dtype=torch.bool),
    "nothing": torch.zeros(3, 12, dtype=torch.bool),
}
# q_length, kv_length, q_offset, kv_offset: all tokens; one token after a cache; several tokens after a cache; a cache
# with free room; the cache of a window (two cases).
PLACES = [(12, 12, 0, 0), (1, 9, 8, 0), (4, 12, 8, 0), (3, 12, 2, 0), (1, 4, 8, 5), (2, 6, 9, 5)]


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_mask_hides_what_transformers_own_hides(name, padding, place):
    function, pattern = PATTERNS[name]
    assert read_pattern(function) == pattern
    q_length, kv_length, q_offset, kv_offset = place
    arguments = dict(batch_size=3, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
                     mask_function=function, attention_mask=PADDINGS[padding])  # fmt: skip
    matrix = masking_utils.sdpa_mask(**arguments, allow_is_causal_skip=False)
    mask = rapt.transformers.attention_mask(**arguments, allow_is_bidirectional_skip=True)
    if mask is None:
        assert matrix.all()
        return
    assert isinstance(mask, StructuredMask) == (pattern is not None)
    assert mask.shape == matrix.shape and mask.dtype == matrix.dtype
    q, k, v = torch.randn(3, 2, q_length, 8), torch.randn(3, 2, kv_length, 8), torch.randn(3, 2, kv_length, 8)
    module = torch.nn.Module()
    found, _ = rapt.transformers.attention_forward(module, q, k, v, mask)
    expected, _ = rapt.transformers.attention_forward(module, q, k, v, matrix.contiguous())
    assert torch.equal(found, expected)
    if pattern is not None:
        assert mask.matrix is None
    assert torch.equal(mask, matrix)


def test_a_mask_that_is_changed_is_what_it_was_changed_to():
    mask = rapt.transformers.attention_mask(batch_size=1, q_length=5, kv_length=5)
    assert "StructuredMask((1, 1, 5, 5)" in repr(mask) and mask.matrix is None
    x = torch.randn(1, 1, 5, 8)
    expected = torch.ones(5, 5, dtype=torch.bool).tril()
    expected[3, :2] = False
    mask[:, :, 3, :2] = False
    found, _ = rapt.transformers.attention_forward(torch.nn.Module(), x, x, x, mask)
    assert torch.equal(found, rapt.attention(x, x, x, mask=rapt.Mask.keep(expected)).transpose(1, 2))
    shorter = mask[..., :4]
    assert type(shorter) is torch.Tensor and torch.equal(shorter[0, 0], expected[:, :4])


def test_a_mask_is_of_the_moment_it_was_made_in():
    """A static cache keeps its count in a tensor, which may advance before a layer reads the mask."""
    count = torch.tensor(3)
    arguments = dict(batch_size=1, q_length=2, kv_length=8)
    mask = rapt.transformers.attention_mask(**arguments, q_offset=count)
    expected = masking_utils.sdpa_mask(**arguments, q_offset=3, allow_is_causal_skip=False)
    count += 2
    assert mask.matrix is None and torch.equal(mask, expected)
