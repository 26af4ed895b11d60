"""Train: the model learns in the page, and the display updates."""

import time

from accessibility import serious_violations
from conftest import until


def picture(page, layer):
    return page.evaluate(f"document.querySelectorAll('canvas.map')[{layer}].toDataURL()")


def measure(page, words):
    row = page.locator("tbody tr", has_text=words).first
    return float(row.locator("td").first.inner_text().rstrip(" %"))


def test_induction_is_learned_in_the_page_while_the_maps_move(page_at):
    page = page_at("#train?lang=en&seed=1")
    page.wait_for_selector("tbody tr")
    page.locator("#train-start").focus()
    began = time.monotonic()
    page.keyboard.press("Enter")
    pictures = set()
    while "all goals are reached" not in page.inner_text(".status"):
        pictures.add(picture(page, 0) + picture(page, 1))
        assert time.monotonic() - began < 90
        page.wait_for_timeout(250)
    took = time.monotonic() - began
    print(f"learned in {took:.1f} s, {len(pictures)} different maps seen")
    assert len(pictures) > 10
    assert measure(page, "accuracy on the second block") >= 99
    assert measure(page, "letter that followed last time") >= 90
    assert serious_violations(page) == []


def test_who_is_quick_to_start_is_not_forgotten(page_at):
    page = page_at("#train?lang=en")
    page.evaluate("document.getElementById('train-start').click()")  # before the worker has started
    until(page, "Number(document.querySelector('.status').textContent.match(/Step (\\d+)/)?.[1]) > 5")
    assert "NaN" not in page.inner_text(".status")


def test_one_step_pause_and_the_rate(page_at):
    page = page_at("#train?lang=en&seed=2")
    page.wait_for_selector("tbody tr")
    page.get_by_role("button", name="One step").click()
    until(page, "document.querySelector('.status').textContent.startsWith('Step 1 ')")
    page.get_by_role("button", name="Start", exact=True).click()
    until(page, "Number(document.querySelector('.status').textContent.match(/Step (\\d+)/)[1]) > 20")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(300)
    before = page.inner_text(".status")
    page.wait_for_timeout(400)
    assert page.inner_text(".status") == before
    page.locator("#rate").focus()
    page.keyboard.press("ArrowRight")
    assert "rate=0.00355" in page.evaluate("location.hash")  # one step of the logarithmic scale
    page.get_by_role("button", name="Start over").click()
    until(page, "document.querySelector('.status').textContent.startsWith('Step 0 ')")


def test_without_the_mask_it_cheats_and_that_is_said(page_at):
    page = page_at("#train?lang=en&seed=1&causal=0")
    page.wait_for_selector("tbody tr")
    page.locator("#train-start").click()
    until(page, """
        [...document.querySelectorAll('tbody tr')].some((row) => row.textContent.startsWith('accuracy on the second block')
          && parseFloat(row.querySelector('td').textContent) > 95)""", seconds=90)
    page.get_by_role("button", name="Pause").or_(page.get_by_role("button", name="Start", exact=True)).click()
    honest = measure(page, "the same with the future masked")
    print(f"with the future masked: {honest} %")
    assert honest < 60
    assert "cheats" in page.inner_text(".mood-wrong")
