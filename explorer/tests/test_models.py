"""Tests Your data with the files of models: several layers, their inputs, and the number of heads."""

import json
import subprocess

import numpy as np
import pytest
from conftest import COMMAND, LANGUAGES, PAGE, ROOT, until
from data_files import (EMBED, LENGTH, WEIGHTS, check, drop, numbers, npy, npz, read, safetensors, shown, split,
                        weights_of)

ORDER = [0, 1, 10, 2]  # of the layers in the file, by their names as text


def model_of(layers=ORDER, width=EMBED, kv_width=EMBED, **more):
    tensors = {f"layers.{n}.attn.W_{x}.weight": numbers(kv_width if x in "kv" else width, width, seed=10 * n + s) / 3
               for n in layers for s, x in enumerate("qkvo")}
    return {**tensors, **more}


def weights_in(tensors, layer, x, heads):
    wq, wk = (tensors[f"layers.{layer}.attn.W_{part}.weight"] for part in "qk")
    return weights_of(split(x, wq, 0, EMBED // heads), split(x, wk, 0, EMBED // heads))


def choose(page, layer):
    page.select_option("#data-subject", f"layer:model.safetensors:layers.{layer}.attn.")


def lacking(page, words):
    until(page, f"document.querySelector('.data-lacking')?.textContent.includes({json.dumps(words)})")
    assert page.locator(".data-canvas").count() == 0


HEADS = {"rapt.heads": "4"}


def test_an_input_belongs_to_one_layer(page_at):
    tensors = model_of()
    x, x10 = numbers(LENGTH, EMBED, seed=90), numbers(LENGTH, EMBED, seed=91)
    page = page_at("#data?lang=en")
    drop(page, model_safetensors=safetensors(tensors, HEADS), x_npy=npy(x))
    check(page, weights_in(tensors, 0, x, 4))
    assert page.locator("#data-subject option").all_inner_texts() == [f"layer “layers.{n}.attn”" for n in (0, 1, 2, 10)]
    assert "x is taken as the input of layer layers.0.attn, and of no other layer" in page.inner_text(".data-note")
    choose(page, 10)
    lacking(page, "The input of layer layers.10.attn is not known")
    assert page.input_value("#data-input") == ""
    drop(page, later_npy=npy(x10))  # the answer
    check(page, weights_in(tensors, 10, x10, 4))
    assert page.input_value("#data-input") == "later.npy:"
    choose(page, 0)
    check(page, weights_in(tensors, 0, x, 4))
    choose(page, 2)
    lacking(page, "The input of layer layers.2.attn is not known")
    page.select_option("#data-input", "x.npy:")  # the user says so
    check(page, weights_in(tensors, 2, x, 4))
    choose(page, 0)
    lacking(page, "The input of layer layers.0.attn is not known")  # x is the input of layer 2 now
    choose(page, 10)
    check(page, weights_in(tensors, 10, x10, 4))


def test_a_layer_that_is_alone_needs_no_confirmation(page_at):
    tensors, x = model_of([3]), numbers(LENGTH, EMBED, seed=90)
    page = page_at("#data?lang=en")
    drop(page, model_safetensors=safetensors(tensors, HEADS), x_npy=npy(x))
    check(page, weights_in(tensors, 3, x, 4))
    assert page.locator("#data-input, .data-note").count() == 0


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_number_of_heads_is_never_guessed(page_at, lang):
    tensors, x = model_of(width=128, kv_width=128), numbers(LENGTH, 128, seed=90)  # 2 heads of 64, or 4 of 32
    page = page_at(f"#data?lang={lang}")
    drop(page, model_safetensors=safetensors(tensors), x_npy=npy(x))
    lacking(page, {"en": "The number of heads of layer layers.0.attn is not known", "zh": "层 layers.0.attn 的头数未知"}[lang])
    assert page.input_value("#data-heads") == ""
    assert "1 head of size 128" in page.inner_text("#data-heads") or lang == "zh"
    page.select_option("#data-heads", "4")
    shown(page)
    assert {"en": "as you chose", "zh": "由你选择"}[lang] in page.inner_text(".data-about")
    choose(page, 1)
    page.wait_for_selector(".data-lacking")
    assert page.input_value("#data-heads") == "4"  # the layers of a model are alike


def test_a_chosen_number_of_heads_does_not_hold_for_another_model(page_at):
    x = numbers(LENGTH, EMBED, seed=90)
    page = page_at("#data?lang=en")
    drop(page, model_safetensors=safetensors(model_of([0])), x_npy=npy(x))
    page.select_option("#data-heads", "4")
    shown(page)
    drop(page, other_safetensors=safetensors(model_of([0])))
    until(page, "document.querySelectorAll('#data-subject option').length === 2")
    page.select_option("#data-subject", "layer:other.safetensors:layers.0.attn.")
    lacking(page, "The number of heads")


CONFIG = json.dumps({"hidden_size": EMBED, "num_attention_heads": 4, "num_key_value_heads": 2}).encode()


@pytest.mark.parametrize("order", ["together", "before", "after"])
def test_a_config_states_the_heads(page_at, order):
    tensors, x = model_of([0, 1], kv_width=12), numbers(LENGTH, EMBED, seed=90)
    files = {"model_safetensors": safetensors(tensors), "x_npy": npy(x)}
    page = page_at("#data?lang=en")
    if order == "together":
        drop(page, **files, config_json=CONFIG)
    elif order == "before":
        drop(page, config_json=CONFIG)
        until(page, "document.querySelector('.data-loaded')?.textContent.includes('4 heads, as config.json states')")
        drop(page, **files)
    else:
        drop(page, **files)
        lacking(page, "The number of heads")
        drop(page, config_json=CONFIG)
    check(page, weights_in(tensors, 0, x, 4))
    assert "number of heads: num_attention_heads in config.json" in page.inner_text(".data-about")
    assert "shared key heads" in page.inner_text(".data-about")
    drop(page, model_safetensors=safetensors(model_of([0, 1], kv_width=12)))  # another file: its config is not known
    lacking(page, "The number of heads")


@pytest.mark.parametrize("config, says", [
    ({"n_head": 5}, "config.json does not fit this layer: n_head is 5"),
    ({"n_heads": 4, "num_key_value_heads": 4}, "config.json does not fit this layer: num_key_value_heads is 4"),
])
def test_a_config_that_contradicts_the_shapes_is_refused(page_at, config, says):
    tensors, x = model_of([0], kv_width=12), numbers(LENGTH, EMBED, seed=90)
    page = page_at("#data?lang=en")
    drop(page, model_safetensors=safetensors(tensors), x_npy=npy(x), config_json=json.dumps(config).encode())
    lacking(page, says)
    page.select_option("#data-heads", "4")
    check(page, weights_in(tensors, 0, x, 4))


@pytest.mark.parametrize("config, says", [
    (b"{", "is not a JSON object"), (b"[4]", "is not a JSON object"), (b"", "is not a JSON object"),
    (b"{}", "states no number of heads"), (b'{"num_heads": null}', "states no number of heads"),
    (b'{"num_heads": "4"}', 'num_heads is "4"'), (b'{"num_heads": 0}', "num_heads is 0"),
    (b'{"num_heads": [4, 4]}', "num_heads is [4,4]"), (b'{"num_heads": 2.5}', "num_heads is 2.5"),
    (b'{"n_head": 4, "n_heads": 2}', "n_head is 4, but n_heads is 2"),
])
def test_a_damaged_config_is_refused_and_the_page_goes_on(page_at, config, says):
    page = page_at("#data?lang=en")
    drop(page, weights_npy=npy(WEIGHTS[0]), config_json=config)
    until(page, f"document.querySelector('.data-alerts').textContent.includes({json.dumps(says)})")
    assert page.inner_text(".data-alerts").startswith("config.json")
    shown(page)
    assert read(page, 1, 1) == pytest.approx(WEIGHTS[0][0, 1, 1], abs=1e-7)


# Names as in BERT, an nn.Parameter, and a shard of a model without layers.
@pytest.mark.parametrize("name", ["embeddings.position_embeddings.weight", "position_embeddings", "wte.embedding"])
def test_parameters_are_no_input(page_at, name):
    table = numbers(16, EMBED, seed=5)
    page = page_at("#data?lang=en")
    drop(page, model_safetensors=safetensors(model_of([0], **{name: table}), HEADS))
    lacking(page, f"drop a file with an array of (length, {EMBED})")
    drop(page, shard_safetensors=safetensors({"embed_tokens.weight": table}))
    until(page, "document.querySelector('.data-loaded').textContent.includes('shard.safetensors')")
    lacking(page, "It needs its input")


def test_a_model_and_its_input_in_one_archive(page_at):
    tensors, x = model_of([0]), numbers(LENGTH, EMBED, seed=90)
    page = page_at("#data?lang=en")
    drop(page, all_npz=npz(**tensors, x=x, position_embeddings=numbers(16, EMBED)), config_json=b'{"n_head": 4}')
    check(page, weights_in(tensors, 0, x, 4))
    assert page.locator("#data-input").count() == 0


def test_the_command_puts_tokens_and_a_config_into_the_page(page_at, tmp_path):
    tensors, x = model_of([0]), numbers(LENGTH, EMBED, seed=90)
    (tmp_path / "model.safetensors").write_bytes(safetensors(tensors))
    (tmp_path / "x.npy").write_bytes(npy(x))
    (tmp_path / "tokens.txt").write_text(" ".join(f"词{n}" for n in range(LENGTH)), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"num_heads": 1}', encoding="utf-8")
    files = ["tokens.txt", "config.json", "model.safetensors", "x.npy"]
    subprocess.run([COMMAND, "view", *(part for file in files for part in ("--file", file)), "--out", "out.html"],
                   cwd=tmp_path, check=True, env={"RAPT_EXPLORER": str(PAGE)}, capture_output=True)
    page = page_at("#data?lang=en", path=tmp_path / "out.html")
    check(page, weights_in(tensors, 0, x, 1))
    assert page.inner_text(".data-reading").startswith(f"query {LENGTH - 1} “词{LENGTH - 1}”")
    about = page.inner_text(".data-about")
    assert about.startswith("model.safetensors") and "one head" in about and "num_heads in config.json" in about


def test_layers_that_pytorch_saved_ask_for_the_input_of_the_second(page_at):
    page = page_at("#data?lang=en")
    page.set_input_files("#data-files", ROOT / "tests/data/layers/several.safetensors")
    page.wait_for_selector("#data-heads")
    page.select_option("#data-heads", "4")
    second = page.locator("#data-subject option").nth(1).get_attribute("value")
    page.select_option("#data-subject", second)
    lacking(page, "The input of layer")


def test_long_words_of_the_page_wrap(page_at):
    page = page_at("#data?lang=en", width=390, height=844)
    name = "layers." + "x" * 150
    tensors = {f"{name}.W_{x}.weight": np.zeros((EMBED, EMBED), np.float32) for x in "qkvo"}
    drop(page, model_safetensors=safetensors(tensors), broken_npy=b"x", **{"y" * 150 + "_npy": b"x"})
    page.wait_for_selector(".data-lacking")
    assert page.locator(".data-alerts p").count() == 2
    for place in (".data-alerts p", ".data-lacking p"):
        assert page.evaluate(f"[...document.querySelectorAll({json.dumps(place)})]"
                             ".every((each) => each.scrollWidth <= each.clientWidth)"), place
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
