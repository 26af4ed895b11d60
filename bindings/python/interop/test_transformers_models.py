"""Every model class of transformers either gives the same result with rapt as with its own attention, or is refused by
name.

The test covers the models that any_model.py can create. The others are listed with the reason if the test runs with -s,
and the number of models that are compared must not decrease.
"""

import collections
import importlib
import re
import warnings

import any_model
import first_row
import pytest
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_MAPPING

import rapt.transformers
from rapt.bridges.transformers import attention as attention_module
from rapt.bridges.transformers.models import why_not

REFUSED, SERVED, WITHOUT_ATTENTION, NOT_MADE = "refused", "served", "without attention", "not made"
# The counts with the versions in bench/peers/requirements.txt, of 765 classes; 11 have no attention. Of those that
# cannot be created, 139 always have more than any_model.MOST_PARAMETERS, 17 require a library that is not installed,
# and 80 reject the sizes or inputs that are tried.
SERVED_AT_LEAST, REFUSED_AT_LEAST, NOT_MADE_AT_MOST = 362, 156, 236


def model_classes():
    """(class, class of its configuration, whether it is a causal language model), each class once."""
    seen = set()
    for name in transformers.CONFIG_MAPPING:
        config_class = transformers.CONFIG_MAPPING[name]
        for mapping in (MODEL_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING):
            try:
                found = mapping[config_class]
            except (KeyError, ValueError):  # there is none, or it is not in this mapping
                continue
            for model_class in found if isinstance(found, (list, tuple)) else [found]:
                if model_class not in seen and issubclass(model_class, transformers.PreTrainedModel):
                    seen.add(model_class)
                    yield model_class, config_class, mapping is MODEL_FOR_CAUSAL_LM_MAPPING


def refusal(model_class, config):
    """rapt's error message if it refuses the model or one inside it, else None."""
    try:
        with torch.device("meta"):
            model_class._from_config(config, attn_implementation="rapt")
    except ValueError as error:
        if str(error).startswith("rapt:"):
            return str(error)
    except Exception:  # this configuration is invalid: the model itself will report it
        pass
    return None


def pair(model_class, config_class):
    """(with eager attention, with rapt, inputs, result of the first), for the first combination with which the first
    runs."""
    reason = "no known inputs"
    for config in any_model.configurations(config_class):
        try:
            theirs = any_model.make(model_class, config, "eager")
            for batch in any_model.batches(theirs):
                try:
                    expected = any_model.answer(theirs, batch)
                    if not expected.isfinite().all():
                        raise any_model.CannotMake("eager attention gives NaN")
                except Exception as error:
                    reason = error
                    continue
                try:
                    ours = any_model.make(model_class, config, "rapt")
                    ours.load_state_dict(theirs.state_dict())
                except Exception as error:
                    raise AssertionError(f"{model_class.__name__}: made on eager attention and not on rapt: {error}") from error
                return theirs, ours, batch, expected
        except AssertionError:
            raise
        except Exception as error:
            reason = error
    raise any_model.CannotMake(f"{type(reason).__name__}: {str(reason).splitlines()[0]}" if str(reason) else repr(reason))


def without_padding(x, batch):
    """The rows of tokens, if the output has one per token."""
    seen = batch.get("attention_mask")
    return x[seen.bool()] if seen is not None and x.shape[:2] == seen.shape else x


def check(model_class, config_class, is_causal, calls):
    """(outcome of the model, reason). Fails if it is supported and its result is wrong."""
    try:
        if said := refusal(model_class, next(any_model.configurations(config_class))):
            assert "was asked to run with attn_implementation=" in said and "Use attn_implementation=" in said
            return REFUSED, said
        theirs, ours, batch, expected = pair(model_class, config_class)
    except AssertionError:
        raise
    except Exception as error:
        return NOT_MADE, str(error).splitlines()[0] if str(error) else repr(error)
    before = len(calls)
    found = any_model.answer(ours, batch)
    served = len(calls) > before
    # The output of a padding row is not defined: see test_transformers.py.
    one, other = without_padding(found, batch), without_padding(expected, batch)
    difference = (one - other).abs().max() / other.abs().max()
    assert difference < 2e-4, f"{model_class.__name__}: differs from eager attention by {difference:.1g} of its largest"
    if is_causal and "input_ids" in batch:
        check_that_the_last_token_leaves_the_first_alone(ours, theirs, batch)
    return (SERVED if served else WITHOUT_ATTENTION), ""


def check_that_the_last_token_leaves_the_first_alone(ours, theirs, batch):
    """Checks that the first token's output keeps its bits when the last token changes. Models in which the first token
    sees the whole text are skipped: with their own attention, too, that output changes.

    In a model with experts, the bits change even without attention. PyTorch multiplies all tokens of an expert by its
    weights at once, and the bits of a row of such a product depend on its number of rows. Where the last token goes to
    another expert, other tokens' outputs change in the last bit. gpt-oss's experts without any attention did so in 234
    of 300 trials, and the whole model about as often on eager attention as on rapt (PyTorch 2.15 on two threads). So in
    such a model the change must begin in the experts, and attention must give equal bits wherever it gets equal bits.
    """
    batch = {name: x for name, x in batch.items() if name != "attention_mask"}
    changed = batch | {"input_ids": batch["input_ids"].clone()}
    changed["input_ids"][:, -1] += 1
    own, own_again = (any_model.answer(theirs, x)[:, 0] for x in (batch, changed))
    if (own - own_again).abs().max() > 1e-5 * own.abs().max():
        return
    (first, steps), (again, steps_again) = (first_row.follow(ours, x) for x in (batch, changed))
    name, begins = type(ours).__name__, first_row.changes(steps, steps_again)
    assert None not in begins, f"{name}: rapt's attention gives the first token other bits when the last one changes"
    if not torch.equal(first[:, 0], again[:, 0]):
        where = type(begins[0]).__name__ if begins else "no module"
        change = (first[:, 0] - again[:, 0]).abs().max() / again[:, 0].abs().max()
        assert begins and first_row.is_of_experts(begins[0]) and change < 1e-5, (
            f"{name}: the last token changes the first one's output by {change:.1g}, from {where} on"
        )


@pytest.fixture
def calls(monkeypatch):
    """Records one entry for each call of rapt's attention."""
    found = []
    compute = attention_module.attend
    monkeypatch.setattr(attention_module, "attend", lambda *x, **options: found.append(1) or compute(*x, **options))
    return found


@pytest.fixture(autouse=True)
def quietly():
    """Models with default configurations give many irrelevant warnings."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    with warnings.catch_warnings(action="ignore"):
        yield
    transformers.logging.set_verbosity(before)


# ---------------------------------------------------------------- refusals by name

WRITTEN_OUT = "it implements attention itself and does not call transformers' attention interface"
OFFENDERS = {
    transformers.BloomForCausalLM: WRITTEN_OUT,
    transformers.MptForCausalLM: WRITTEN_OUT,
    transformers.CodeGenForCausalLM: WRITTEN_OUT,
    transformers.LongformerModel: WRITTEN_OUT,
    transformers.BigBirdPegasusModel: "transformers declares that it supports only eager attention",
    transformers.DeepseekV32ForCausalLM: 'its code has a special case for "sdpa"',
    transformers.SamModel: 'its code has a special case for "sdpa"',
}


def refused(model_class, why):
    expected = f'rapt: {model_class.__name__} was asked to run with attn_implementation="rapt"; {why}'
    return pytest.raises(ValueError, match=re.escape(expected))


@pytest.fixture
def bloom():
    return transformers.BloomForCausalLM(next(any_model.configurations(transformers.BloomConfig))).eval()


@pytest.mark.parametrize("model_class", OFFENDERS, ids=lambda x: x.__name__)
def test_a_model_that_cannot_be_served_is_refused_when_it_is_made(model_class):
    config = next(any_model.configurations(model_class.config_class))
    with refused(model_class, OFFENDERS[model_class]), torch.device("meta"):
        model_class._from_config(config, attn_implementation="rapt")


def test_it_is_refused_when_it_is_loaded(bloom, tmp_path):
    bloom.save_pretrained(tmp_path)
    with refused(transformers.BloomForCausalLM, WRITTEN_OUT):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="rapt")


@pytest.mark.parametrize("asked", ["rapt", {"": "rapt"}], ids=str)
def test_it_is_refused_when_it_is_to_change_over_and_stays_as_it_was(bloom, asked):
    with refused(transformers.BloomForCausalLM, WRITTEN_OUT):
        bloom.set_attn_implementation(asked)
    assert bloom.config._attn_implementation == "eager"


def text_and_pictures():
    """A vision-language model with Bloom as its text model and a ViT for pictures."""
    vision = transformers.ViTConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
                                    image_size=16, patch_size=8)  # fmt: skip
    return transformers.VisionTextDualEncoderConfig.from_vision_text_configs(
        vision, next(any_model.configurations(transformers.BloomConfig)), projection_dim=16
    )


def test_a_model_inside_another_is_refused_and_the_other_part_can_be_served():
    with refused(transformers.BloomModel, WRITTEN_OUT):
        transformers.VisionTextDualEncoderModel._from_config(text_and_pictures(), attn_implementation="rapt")
    model = transformers.VisionTextDualEncoderModel(text_and_pictures())
    for asked in ("rapt", {"text_config": "rapt"}):
        with refused(transformers.BloomModel, WRITTEN_OUT):
            model.set_attn_implementation(asked)
    model.set_attn_implementation({"vision_config": "rapt"})
    assert model.vision_model.config._attn_implementation == "rapt"
    assert model.text_model.config._attn_implementation == "eager"


def test_a_class_of_one_s_own_is_judged_by_those_it_is_made_of():
    made = {"__module__": "nowhere"}  # as in an interpreter, where there is no source file
    for base, is_refused in ((transformers.LlamaForCausalLM, False), (transformers.BloomForCausalLM, True)):
        assert bool(why_not(type("Mine", (base,), made))) == is_refused


OWN_MODEL = """
import torch.nn as nn
import transformers

class MyAttention(nn.Module):
    pass

class MyLlama(transformers.LlamaForCausalLM):
    pass
"""


@pytest.mark.parametrize("calls_interface", [False, True])
def test_an_attention_in_a_file_of_one_s_own_is_judged_by_that_file(tmp_path, monkeypatch, calls_interface):
    """A subclass may implement attention that bypasses the interface, although its base class calls the interface."""
    name = f"own_model_{calls_interface}"
    call = "\nattend = lambda name: transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS[name]\n"
    (tmp_path / f"{name}.py").write_text(OWN_MODEL + call * calls_interface)
    monkeypatch.syspath_prepend(tmp_path)
    assert (why_not(importlib.import_module(name).MyLlama) is None) == calls_interface


def test_other_implementations_are_asked_for_as_before(bloom):
    bloom.set_attn_implementation("eager")
    config = next(any_model.configurations(transformers.BloomConfig))
    with pytest.raises(ValueError, match="does not support an attention implementation through torch"):
        transformers.BloomForCausalLM._from_config(config, attn_implementation="sdpa")


# ---------------------------------------------------------------- the first token and the last


@pytest.mark.parametrize("model_class", [transformers.LlamaForCausalLM, transformers.GptOssForCausalLM])
def test_a_trace_of_the_last_token_in_the_first_one_s_attention_is_found(model_class, monkeypatch):
    compute = attention_module.attend

    def leaking(query, key, value, *masks, **options):
        out, weights = compute(query, key, value, *masks, **options)
        return out + 1e-6 * value[:, :, -1].sum(), weights

    theirs, ours, batch, _ = pair(model_class, model_class.config_class)
    check_that_the_last_token_leaves_the_first_alone(ours, theirs, batch)
    monkeypatch.setattr(attention_module, "attend", leaking)
    with pytest.raises(AssertionError, match="rapt's attention gives the first token other bits"):
        check_that_the_last_token_leaves_the_first_alone(ours, theirs, batch)


# ---------------------------------------------------------------- all of them


def test_every_model_gives_what_its_own_attention_gives_or_is_refused(calls):
    found, wrong = collections.defaultdict(list), []
    for model_class, config_class, is_causal in model_classes():
        try:
            kind, why = check(model_class, config_class, is_causal, calls)
            found[kind].append(f"{model_class.__name__}: {why}")
        except AssertionError as error:
            wrong.append(str(error))
    print(*(f"{kind}: {len(each)}" for kind, each in found.items()), sep="\n")
    print("not made:", *sorted(found[NOT_MADE]), sep="\n  ")
    assert not wrong, "\n".join(wrong)
    assert len(found[SERVED]) >= SERVED_AT_LEAST and len(found[REFUSED]) >= REFUSED_AT_LEAST
    assert len(found[NOT_MADE]) <= NOT_MADE_AT_MOST
