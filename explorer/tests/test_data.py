"""Your data: files of every kind, against weights that NumPy computes; what the view saves, read back; its speed."""

import base64
import csv
import io
import json
import re
import struct
import time
import xml.etree.ElementTree

import numpy as np
import pytest
from accessibility import serious_violations
from conftest import LANGUAGES, PAGE, ROOT, until

READ = "document.querySelector('.data-reading').textContent"


def softmax(scores):
    high = np.exp(scores - scores.max(-1, keepdims=True))
    return high / high.sum(-1, keepdims=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights_of(q, k, causal=False):
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1 + scores.shape[-1] - scores.shape[-2])
        scores = np.where(hidden, -np.inf, scores)
    return softmax(scores)


def safetensors(tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, tensor in tensors.items():
        kind = {"float32": "F32", "float64": "F64", "float16": "F16", "uint16": "BF16"}[tensor.dtype.name]
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(compressed=True, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def drop(page, **files):
    """Gives files to the page: drop(page, weights_npy=…) is weights.npy."""
    page.set_input_files("#data-files", [
        {"name": re.sub(r"_(npy|npz|safetensors|txt)$", r".\1", name), "mimeType": "", "buffer": content}
        for name, content in files.items()])


def shown(page, seconds=30):
    until(page, "document.querySelector('.data-canvas')?.getAttribute('aria-busy') === 'false'", seconds)


def filled(page, seconds=60):
    until(page, "document.querySelector('.data-filling progress')?.hidden", seconds)


def select(page, head):
    if page.locator(".data-head").count() > 1:
        page.click(f".data-head[data-head='{head}']")
    until(page, f"document.querySelector('#data-heading').textContent.endsWith(' {head}')")
    shown(page)


def read(page, query, key):
    """The exact weight that the view says, by the keyboard."""
    page.focus(".data-canvas")
    for press in ["0", "Home", "PageUp", "PageUp", "PageUp", *["ArrowDown"] * query, *["ArrowRight"] * key]:
        page.keyboard.press(press)
    until(page, f"/^query {query}( .*)? → key {key}( .*)?: /.test({READ})")
    return float(page.get_attribute(".data-reading", "data-value"))


def check(page, weights, places=((0, 0, 0), (-1, 3, 1), (-1, -1, -1)), within=2e-6):
    """Cells of (H, L, L), as the view shows them."""
    shown(page)
    assert page.inner_text(".data-alerts") == ""
    for head, query, key in places:
        head, query, key = (range(size)[place] for size, place in zip(weights.shape, (head, query, key)))
        select(page, head)
        assert read(page, query, key) == pytest.approx(weights[head, query, key], abs=within), (head, query, key)


WEIGHTS = softmax(2 * numbers(2, 3, 9, 12).astype(np.float64)).astype(np.float32)


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


EMBED, LENGTH = 24, 11


def layer_of(family):
    """Tensors of a layer, and its q and k of (width, EMBED) with their biases."""
    wq, wk, wv, wo = (numbers(EMBED, EMBED, seed=n) / 3 for n in range(4))
    bq, bk, bv = (numbers(EMBED, seed=n) / 2 for n in range(4, 7))
    none = np.zeros(EMBED, np.float32)
    if family == "torch":
        return {"in_proj_weight": np.concatenate([wq, wk, wv]), "in_proj_bias": np.concatenate([bq, bk, bv]),
                "out_proj.weight": wo}, wq, bq, wk, bk
    if family == "W_q":
        return {"a.W_q.weight": wq, "a.W_q.bias": bq, "a.W_k.weight": wk, "a.W_k.bias": bk, "a.W_v.weight": wv,
                "a.W_v.bias": bv, "a.W_o.weight": wo}, wq, bq, wk, bk
    if family == "c_attn":
        return {"h.0.attn.c_attn.weight": np.ascontiguousarray(np.concatenate([wq, wk, wv]).T),
                "h.0.attn.c_attn.bias": np.concatenate([bq, bk, bv]), "h.0.attn.c_proj.weight": wo}, wq, bq, wk, bk
    # Two heads of queries share one of keys.
    return {"q_proj.weight": wq, "k_proj.weight": wk[:12], "v_proj.weight": wv[:12], "o_proj.weight": wo}, \
        wq, none, wk[:12], none[:12]


def split(x, weight, bias, size):
    return (x.astype(np.float64) @ weight.T + bias).reshape(len(x), -1, size).swapaxes(0, 1)


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
    shown(page)
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
        if page.locator(".data-canvas").count():
            shown(page)
        assert page.inner_text(".data-alerts") == "", path.name
        page.evaluate("document.querySelector('#data-remove').click()")


def test_labels_lines_and_a_locked_row(page_at):
    page = page_at("#data?lang=en")
    words = [f"w{n}" for n in range(12)]
    drop(page, weights_npy=npy(WEIGHTS[0]), labels_txt=" ".join(words).encode())
    shown(page)
    read(page, 2, 5)
    assert page.inner_text(".data-reading").startswith("query 2 “w5” → key 5 “w5”")  # the last nine are queries
    page.keyboard.press("Enter")
    page.wait_for_selector(".data-top li")
    best = np.argsort(-WEIGHTS[0, 0, 2])[:10]
    rows = page.locator(".data-top li").all_inner_texts()
    assert [int(re.match(r"\d+", row)[0]) for row in rows] == list(best)
    assert f"{WEIGHTS[0, 0, 2, best[0]]:.6f}" in rows[0]
    lines = page.locator(".data-lines line")
    assert lines.count() == (WEIGHTS[0, 0] > 0.004).sum()
    page.hover(".data-lines text[data-side=query][data-place='3']")
    seen = page.evaluate("[...document.querySelectorAll('.data-lines line')].filter((each) => each.style.display === '')"
                         ".map((each) => each.dataset.query)")
    assert set(seen) == {"3"}
    page.focus(".data-canvas")
    page.keyboard.press("Escape")
    assert page.locator(".data-top li").count() == 0


def saved(page, kind):
    with page.expect_download() as waiting:
        page.click(f"#data-{kind}")
    return waiting.value.path().read_bytes()


def table(content):
    rows = list(csv.reader(io.StringIO(content.decode())))
    return rows[0][1:], [row[0] for row in rows[1:]], np.array([[float(each) for each in row[1:]] for row in rows[1:]])


def test_what_is_saved_can_be_read_back(page_at):
    weights = softmax(3 * numbers(2, 200, 200)).astype(np.float32)
    page = page_at("#data?lang=en")
    drop(page, weights_npy=npy(weights))
    shown(page)
    png = saved(page, "png")
    width, height = struct.unpack(">II", png[16:24])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and width > 600 and height > 600
    keys, queries, values = table(saved(page, "csv"))
    assert len(keys) == len(queries) == 200
    np.testing.assert_allclose(values, weights[0], rtol=1e-6)
    drawing = xml.etree.ElementTree.fromstring(saved(page, "svg"))
    svg = "{http://www.w3.org/2000/svg}"
    assert drawing.find(f".//{svg}image").get("href").startswith("data:image/png;base64,")

    page.focus(".data-canvas")
    for _ in range(3):
        page.keyboard.press("+")
    page.wait_for_timeout(500)
    drawing = xml.etree.ElementTree.fromstring(saved(page, "svg"))
    keys, queries, values = table(saved(page, "csv"))
    assert 50 < len(keys) < 70
    np.testing.assert_allclose(values, weights[0, int(queries[0]):int(queries[-1]) + 1, int(keys[0]):int(keys[-1]) + 1],
                               rtol=1e-6)
    assert len(drawing.findall(f".//{svg}g/{svg}rect")) == len(keys) * len(queries)
    page.focus(".data-canvas")
    page.keyboard.press("Enter")
    page.wait_for_selector(".data-top li")
    keys, queries, values = table(saved(page, "csv"))
    assert len(keys) == 200 and len(queries) == 1
    np.testing.assert_allclose(values[0], weights[0, int(queries[0])], rtol=1e-6)


def order(page):
    return page.evaluate("[...document.querySelectorAll('.data-head')].map((each) => Number(each.dataset.head))")


def test_heads_are_sorted(page_at):
    sharp = np.array([3, 0.1, 8, 1, 5])[:, None, None]
    weights = softmax(sharp * numbers(5, 50, 50)).astype(np.float32)
    page = page_at("#data?lang=en")
    drop(page, weights_npy=npy(weights))
    filled(page)
    entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(-1).mean(-1)
    away = np.abs(np.arange(50)[:, None] - np.arange(50))
    distance = (weights * away).sum(-1).mean(-1)
    alike = np.minimum(weights, weights[2]).sum(-1).mean(-1)
    page.select_option("#data-sort", "entropy")
    until(page, "document.querySelector('.data-head').dataset.head === '2'")
    assert order(page) == list(np.argsort(entropy))
    assert f"{entropy[2]:.2f}" in page.inner_text(".data-head[data-head='2']")
    page.select_option("#data-sort", "distance")
    page.wait_for_timeout(200)
    assert order(page) == list(np.argsort(distance))
    select(page, 2)
    page.select_option("#data-sort", "similarity")
    until(page, "document.querySelector('.data-head').textContent.includes('1.00')")
    assert order(page) == list(np.argsort(-alike))
    assert "sort=similarity" in page.url and "head=2" in page.url


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
    assert "weights" in page.inner_text(".data-about")  # what was there is there still
    read(page, 1, 1)


def test_other_files_and_files_with_nothing_to_see_say_so(page_at):
    page = page_at("#data?lang=en")
    drop(page, picture=b"GIF89a")
    until(page, "document.querySelector('.data-alerts').textContent.includes('picture is none of')")
    drop(page, scores_npy=npy(numbers(3, 8, 8)))
    until(page, "document.querySelector('.data-lacking')?.textContent.includes('nothing here')")
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


def test_the_keyboard_alone_is_enough(page_at):
    page = page_at("#data?lang=en")
    page.focus("#view")

    def tab_to(selector):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"no way to {selector}")

    tab_to("#data-sample")
    page.keyboard.press("Enter")
    shown(page)
    filled(page)
    tab_to(".data-head")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#data-heading').textContent === 'Head 1'")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('.data-canvas')")
    shown(page)
    for key in ["+", "+", "ArrowDown", "ArrowDown", "ArrowRight"]:
        page.keyboard.press(key)
    until(page, "/^query 2 .* → key 1 .*: [\\d.e-]+$/.test(document.querySelector('#announcer').textContent)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".data-top li")
    page.keyboard.press("Escape")
    tab_to("#data-csv")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == "attention-head1.csv"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_read_and_reach_the_maps(page_at, lang, width, dark):
    page = page_at(f"#data?lang={lang}", width=width, height=800, dark=dark)
    page.click("#data-sample")
    shown(page)
    filled(page)
    page.focus(".data-canvas")
    page.keyboard.press("Enter")
    page.wait_for_selector(".data-top li")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_violations(page) == []
    page.click("#lang")  # what is loaded stays
    shown(page)
    page.evaluate("document.querySelector('#data-remove').click()")
    page.wait_for_selector("#data-sample")


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
    check(page, WEIGHTS[0])  # the sample is gone, and its words with it
    assert "sample" not in page.text_content(".data-loaded")


def test_drag_wheel_and_pinch_move_the_map(page_at):
    weights = softmax(3 * numbers(400, 400)).astype(np.float32)
    page = page_at("#data?lang=en", has_touch=True)
    drop(page, weights_npy=npy(weights))
    shown(page)
    page.locator(".data-canvas").scroll_into_view_if_needed()
    box = page.locator(".data-canvas").bounding_box()
    x, y = box["x"] + 300, box["y"] + 250

    def where():
        keys, queries, _ = table(saved(page, "csv"))
        return int(queries[0]), int(queries[-1]), int(keys[0]), int(keys[-1])

    def under():
        page.mouse.move(x + 1, y)
        page.mouse.move(x, y)
        until(page, f"/^query .* → key .*: /.test({READ})")
        page.wait_for_timeout(200)
        query, key, value = re.match(r"query (\d+) → key (\d+): (.*)", page.inner_text(".data-reading")).groups()
        assert float(value) == pytest.approx(weights[int(query), int(key)], abs=1e-6)
        return int(query), int(key)

    first = under()
    page.mouse.wheel(0, -800)
    page.wait_for_timeout(400)
    assert np.abs(np.subtract(under(), first)).max() <= 1  # what is under the pointer stays there
    before = where()
    assert before[1] - before[0] < 200
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y - 90, steps=4)
    page.mouse.up()
    after = where()
    assert after[0] > before[0] + 5 and after[2] > before[2] + 5 and after[1] - after[0] <= before[1] - before[0] + 1
    assert page.locator(".data-top li").count() == 0  # dragging locks nothing

    touch = page.context.new_cdp_session(page)
    for kind, apart in [("touchStart", 40), ("touchMove", 60), ("touchMove", 90), ("touchMove", 120)]:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [
            {"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)
    pinched = where()
    assert pinched[1] - pinched[0] < 0.6 * (after[1] - after[0])


def test_a_file_larger_than_memory_is_read_in_parts_or_refused(page_at, tmp_path):
    length = 4096
    big = np.lib.format.open_memmap(tmp_path / "weights.npy", mode="w+", dtype=np.float32, shape=(24, length, length))
    for head in range(24):  # on the disk it is mostly a hole
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


# The renderers' memory in MB: now, and the most there was.
def memory():
    largest = (0, 0)
    for status in __import__("pathlib").Path("/proc").glob("[0-9]*/status"):
        try:
            if "--type=renderer" in (status.parent / "cmdline").read_text():
                text = status.read_text()
                largest = max(largest, tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) // 1024
                                             for name in ("VmHWM", "VmRSS")))
        except (OSError, TypeError):
            pass
    return largest


MOVE = """() => new Promise((done) => {
  const canvas = document.querySelector('.data-canvas'), box = canvas.getBoundingClientRect();
  let frames = 0, first;
  const step = (now) => {
    first ??= now;
    if (now - first > 2000) return done(frames / (now - first) * 1000);
    ++frames;
    const place = {clientX: box.left + 300 + 100 * Math.sin(now / 200), clientY: box.top + 300, cancelable: true};
    canvas.dispatchEvent(new WheelEvent('wheel', {...place, deltaY: now - first < 1000 ? -40 : 30}));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def test_a_layer_of_32_heads_and_4096_tokens(page_at, tmp_path):
    embed, length = 2048, 4096
    wq, wk = (2 / np.sqrt(embed) * numbers(embed, embed, seed=n) for n in range(2))
    x = numbers(length, embed, seed=3)
    (tmp_path / "layer.safetensors").write_bytes(safetensors(
        {"wq.weight": wq.astype(np.float32), "wk.weight": wk.astype(np.float32), "wv.weight": wk.astype(np.float32),
         "wo.weight": wk.astype(np.float32)}))
    (tmp_path / "x.npy").write_bytes(npy(x))
    page = page_at("#data?lang=en")
    started = time.monotonic()
    page.set_input_files("#data-files", [tmp_path / "layer.safetensors", tmp_path / "x.npy"])
    shown(page)
    seconds = time.monotonic() - started
    assert "32 heads, 4096 queries × 4096 keys" in page.inner_text(".data-about")
    frames = page.evaluate(MOVE)
    select(page, 31)
    filled(page, 240)
    everything = time.monotonic() - started
    most, now = memory()
    print(f"first large map {seconds:.2f} s, {frames:.1f} frames a second, all thumbnails {everything:.1f} s, "
          f"memory of the page {now} MB, at most {most} MB")
    weights = weights_of(split(x, wq, 0, 64)[31:], split(x, wk, 0, 64)[31:])[0]
    assert read(page, 5, 3) == pytest.approx(weights[5, 3], rel=1e-4)
    assert seconds < 3
    assert frames >= 50
    assert most < 600
