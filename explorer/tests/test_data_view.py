"""Tests Your data: how the view shows heads, what it saves, its accessibility, and its speed."""

import json
import re
import struct
import time
import xml.etree.ElementTree

import numpy as np
import pytest
from accessibility import serious_violations
from conftest import LANGUAGES, until
from data_files import (READ, WEIGHTS, drop, filled, memory, npy, numbers, read, safetensors, saved, select, shown,
                        softmax, split, table, weights_of)


def test_labels_lines_and_a_locked_row(page_at):
    page = page_at("#data?lang=en")
    words = [f"w{n}" for n in range(12)]
    drop(page, weights_npy=npy(WEIGHTS[0]), labels_txt=" ".join(words).encode())
    shown(page)
    read(page, 2, 5)
    assert page.inner_text(".data-reading").startswith("query 2 “w5” → key 5 “w5”")  # the last nine are of queries
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
    page.click("#lang")  # loaded files are kept
    shown(page)
    page.evaluate("document.querySelector('#data-remove').click()")
    page.wait_for_selector("#data-sample")


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
    assert np.abs(np.subtract(under(), first)).max() <= 1  # the position under the pointer stays fixed
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
         "wo.weight": wk.astype(np.float32)}, {"rapt.heads": "32"}))
    (tmp_path / "x.npy").write_bytes(npy(x))
    page = page_at("#data?lang=en")
    page.evaluate("""() => {
      window.longTasks = [];
      new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
        .observe({type: 'longtask'});
    }""")
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
    held = max(page.evaluate("longTasks"), default=0)
    print(f"first large map {seconds:.2f} s, {frames:.1f} frames a second, all thumbnails {everything:.1f} s, "
          f"memory of the page {now} MB, at most {most} MB, the page held up for {held:.0f} ms at most")
    weights = weights_of(split(x, wq, 0, 64)[31:], split(x, wk, 0, 64)[31:])[0]
    assert read(page, 5, 3) == pytest.approx(weights[5, 3], rel=1e-4)
    assert seconds < 3
    assert frames >= 50
    assert most < 600
