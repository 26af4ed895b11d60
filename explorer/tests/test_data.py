"""Tests Your data with files of every kind, against weights that NumPy computes."""

import base64
import json

import numpy as np
import pytest
from conftest import PAGE, ROOT, until
from data_files import (EMBED, LENGTH, WEIGHTS, check, drop, layer_of, memory, npy, npz, numbers, read, safetensors,
                        select, shown, split, weights_of)


@pytest.mark.parametrize("name, content, weights", [
    ("one_npy", npy(WEIGHTS[0, 0]), WEIGHTS[0, :1]),
    ("heads_npy", npy(WEIGHTS[0]), WEIGHTS[0]),
    ("double_npy", npy(WEIGHTS[0].astype(np.float64)), WEIGHTS[0]),
    ("half_npy", npy(WEIGHTS[0].astype(np.float16)), WEIGHTS[0].astype(np.float16)),
    ("fortran_npy", npy(np.asfortranarray(WEIGHTS[0])), WEIGHTS[0]),
    ("big_npy", npy(WEIGHTS[0].astype(">f4")), WEIGHTS[0]),
    ("packed_npz", npz(a=WEIGHTS[0], b=numbers(3)), WEIGHTS[0]),
    ("stored_npz", npz(compressed=False, a=WEIGHTS[0]), WEIGHTS[0]),
    ("plain_safetensors", safetensors({"w": WEIGHTS[0]}), WEIGHTS[0]),
    ("bf16_safetensors", safetensors({"w": (WEIGHTS[0].view(np.uint32) >> 16).astype(np.uint16)}),
     (WEIGHTS[0].view(np.uint32) >> 16 << 16).view(np.float32)),
], ids=lambda each: each if isinstance(each, str) else "")
def test_weights_of_every_kind_of_file(page_at, name, content, weights):
    page = page_at("#data?lang=en")
    drop(page, **{name: content})
    check(page, weights, within=1e-7)


def test_rows_of_a_batch_are_chosen(page_at):
    page = page_at("#data?lang=en")
    drop(page, weights_npy=npy(WEIGHTS))
    check(page, WEIGHTS[0])
    page.select_option("#data-batch", "1")
    check(page, WEIGHTS[1])


@pytest.mark.parametrize("heads, kv_heads, queries, keys", [(4, 4, 10, 10), (4, 2, 10, 10), (3, 1, 6, 11)])
def test_queries_and_keys(page_at, heads, kv_heads, queries, keys):
    q, k = 2 * numbers(1, heads, queries, 8), numbers(1, kv_heads, keys, 8, seed=1)
    page = page_at("#data?lang=en")
    drop(page, inputs_npz=npz(query=q, key=k, value=k))
    check(page, weights_of(q, k)[0])
    page.select_option("#data-causal", "yes")
    check(page, weights_of(q, k, causal=True)[0])


def test_queries_and_keys_in_files_of_these_names_in_any_order(page_at):
    q, k = numbers(4, 10, 8), numbers(4, 10, 8, seed=1)
    page = page_at("#data?lang=en")
    drop(page, k_npy=npy(k))
    until(page, "document.querySelector('.data-lacking')")
    drop(page, q_npy=npy(q))
    check(page, weights_of(q, k))


@pytest.mark.parametrize("family", ["torch", "W_q", "c_attn", "q_proj"])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_layers_and_inputs(page_at, family, apart):
    tensors, wq, bq, wk, bk = layer_of(family)
    x = numbers(2, LENGTH, EMBED, seed=9)
    page = page_at("#data?lang=en")
    if apart:
        drop(page, layer_safetensors=safetensors(tensors))
        until(page, "document.querySelector('.data-lacking')?.textContent.includes('24')")
        drop(page, x_npy=npy(x))
    else:
        drop(page, layer_npz=npz(**tensors, input=x))
    page.wait_for_selector("#data-heads")
    assert page.locator(".data-canvas").count() == 0  # the number of heads is not known
    for heads in (4, 2):
        page.select_option("#data-heads", str(heads))
        size = EMBED // heads
        page.select_option("#data-batch", "1")
        check(page, weights_of(split(x[1], wq, bq, size), split(x[1], wk, bk, size)))
    page.select_option("#data-causal", "yes")
    check(page, weights_of(split(x[1], wq, bq, size), split(x[1], wk, bk, size), causal=True))


@pytest.mark.parametrize("pairs", ["halfSplit", "interleaved"])
def test_layers_with_rotary_embedding(page_at, pairs):
    tensors, wq, bq, wk, bk = layer_of("q_proj")
    x, size = numbers(LENGTH, EMBED, seed=9), 6

    def turned(heads):
        one, two = (heads[..., :3], heads[..., 3:]) if pairs == "halfSplit" else (heads[..., ::2], heads[..., 1::2])
        angle = np.arange(LENGTH)[:, None] * 10000.0 ** (-np.arange(3) / 3)
        return np.concatenate([one * np.cos(angle) - two * np.sin(angle), two * np.cos(angle) + one * np.sin(angle)], -1)

    page = page_at("#data?lang=en")
    drop(page, all_safetensors=safetensors({**tensors, "x": x}, {"rapt.heads": "4"}))
    shown(page)
    page.select_option("#data-rotary", f"{pairs}:10000")
    check(page, weights_of(turned(split(x, wq, bq, size)), turned(split(x, wk, bk, size))))


def test_layers_that_pytorch_saved(page_at):
    page = page_at("#data?lang=en")
    for path in sorted((ROOT / "tests/data/layers").glob("*.safetensors")):
        page.set_input_files("#data-files", path)
        page.wait_for_timeout(150)
        until(page, "document.querySelector('.data-loaded') || document.querySelector('.data-alerts p')")
        if page.locator("#data-heads").count():
            page.select_option("#data-heads", "4")
            if path.name != "several.safetensors":
                shown(page)
        assert page.inner_text(".data-alerts") == "", path.name
        page.evaluate("document.querySelector('#data-remove').click()")


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_broken_files_are_refused_and_the_page_goes_on(page_at, kind):
    page = page_at("#data?lang=en")
    drop(page, weights_npy=npy(WEIGHTS[0]))
    shown(page)
    refused = looked = 0
    for path in sorted((ROOT / "fuzz/corpus" / kind).iterdir()):
        name = f"{path.name}.{kind}"
        page.set_input_files("#data-files", [{"name": name, "mimeType": "", "buffer": path.read_bytes()}])
        until(page, f"document.querySelector('.data-alerts').textContent.includes({json.dumps(name)})"
                    f" || document.querySelector('.data-loaded')?.textContent.includes({json.dumps(name)})", 10)
        if page.locator(".data-alerts p").count():
            refused += 1
            assert len(page.inner_text(".data-alerts")) > len(name) + 10
        else:
            looked += 1
    print(f"{kind}: {refused} refused, {looked} read")
    assert refused > 5
    assert "weights" in page.inner_text(".data-about")  # earlier files are still loaded
    read(page, 1, 1)


def test_other_files_and_files_with_nothing_to_see_say_so(page_at):
    page = page_at("#data?lang=en")
    drop(page, picture=b"GIF89a")
    until(page, "document.querySelector('.data-alerts').textContent.includes('picture: unknown file extension')")
    drop(page, scores_npy=npy(numbers(3, 8, 8)))
    until(page, "document.querySelector('.data-lacking')?.textContent.includes('nothing to show')")
    drop(page, layer_safetensors=safetensors(layer_of("torch")[0]), wrong_npy=npy(numbers(9, 23)))
    until(page, "document.querySelector('.data-lacking')?.textContent.includes('(length, 24)')")


def test_a_result_in_the_page_is_shown(page_at, tmp_path):
    result = {"title": "my run", "labels": [f"t{n}" for n in range(12)],
              "files": [{"name": "weights.npz", "base64": base64.b64encode(npz(weights=WEIGHTS[0])).decode()}]}
    path = tmp_path / "result.html"
    element = f'<script type="application/json" id="result">{json.dumps(result)}</script>'
    text = PAGE.read_text()
    path.write_text(text.replace("<!--RESULT-->", element))
    page = page_at("", path=path)
    until(page, "document.querySelector('.data-about')?.textContent.includes('my run')")
    page.click("#lang") if page.get_attribute("html", "lang") != "en" else None
    check(page, WEIGHTS[0])


def test_files_are_dropped_anywhere(page_at):
    page = page_at("#data?lang=en")
    page.click("#data-sample")
    shown(page)
    page.evaluate("""(bytes) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], 'weights.npy'));
      document.querySelector('footer').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
    }""", list(npy(WEIGHTS[0])))
    until(page, "document.querySelector('.data-about').textContent.startsWith('weights')")
    check(page, WEIGHTS[0])  # the sample and its words are removed
    assert "sample" not in page.text_content(".data-loaded")


def test_a_file_larger_than_memory_is_read_in_parts_or_refused(page_at, tmp_path):
    length = 4096
    big = np.lib.format.open_memmap(tmp_path / "weights.npy", mode="w+", dtype=np.float32, shape=(24, length, length))
    for head in range(24):  # a sparse file
        big[head, np.arange(length), np.arange(length) // (head + 1)] = 1
    big.flush()
    page = page_at("#data?lang=en")
    page.set_input_files("#data-files", tmp_path / "weights.npy")
    shown(page, 60)
    select(page, 3)
    assert read(page, 8, 2) == 1
    print(f"1.6 GB of weights: {memory()[0]} MB at most")
    page.evaluate("document.querySelector('#data-remove').click()")
    whole = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(24, length, length),
                                      fortran_order=True)
    whole.flush()
    page.set_input_files("#data-files", tmp_path / "x.npy")
    until(page, "document.querySelector('.data-alerts').textContent.includes('x.npy: too large')")
