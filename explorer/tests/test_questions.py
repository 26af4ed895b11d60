"""Compares every exhibit of Questions with the native engine, in both languages and with each of its settings."""

import json
import re
import subprocess

import pytest
from accessibility import serious_violations
from conftest import LANGUAGES, ROOT, until

NUMBERS = list(range(1, 19))


def as_number(text):
    return {"−∞": "-inf", "∞": "inf", "NaN": "nan"}.get(text) or float(text.replace("−", "-"))


def expect_the_same(page, exhibit):
    """The page shows what the native engine computes, block by block."""
    assert page.inner_text("article h2").replace("\xa0", " ") == exhibit["question"].replace("`", "")
    matrices = [block for block in exhibit["blocks"] if block["kind"] == "matrix"]
    assert page.locator("article figure.matrix-figure").count() == len(matrices)
    drawn = page.evaluate("""[...document.querySelectorAll('article figure.matrix-figure')].map((figure) => ({
        title: figure.querySelector('figcaption').textContent,
        cells: [...figure.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent)}))""")
    for figure, block in zip(drawn, matrices, strict=True):
        assert figure["title"] == block["title"]
        for text, value in zip(figure["cells"], block["values"], strict=True):
            shown = as_number(text)
            if isinstance(value, str):
                assert shown == value
            else:
                # Allows half a unit of the last digit, for rounding, and a small relative error, for another libm.
                assert abs(shown - value) <= 0.5001 * 10 ** -block["decimals"] + 1e-4 * abs(value)
    tables = [block for block in exhibit["blocks"] if block["kind"] == "table"]
    drawn = page.evaluate("""[...document.querySelectorAll('article > .scroll > table.plain')].map((table) =>
        [...table.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent)))""")
    for rows, block in zip(drawn, tables, strict=True):
        assert rows == [[text.replace("`", "") for text in row] for row in block["rows"]]
    assert page.locator("article figure.chart-figure").count() == sum(
        block["kind"] == "chart" for block in exhibit["blocks"])


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("number", NUMBERS)
def test_an_exhibit_shows_what_the_native_engine_says(page_at, rapt, number, lang):
    page = page_at(f"#questions?q={number}&lang={lang}")
    page.wait_for_selector("article h2")
    exhibit = rapt("explain", "--question", str(number), "--lang", lang, "--json")
    expect_the_same(page, exhibit)
    assert serious_violations(page) == []
    for switch in exhibit["switches"]:
        for choice in switch["choices"]:
            radio = page.locator(f"article input[name='{switch['key']}'][value='{choice['value']}']")
            if radio.is_checked():
                continue
            radio.focus()
            page.keyboard.press("Space")
            until(page, f"location.hash.includes('s.{switch['key']}={choice['value']}')")
            chosen = rapt("explain", "--question", str(number), "--lang", lang, "--json", "--set",
                          f"{switch['key']}={choice['value']}")
            settings = dict(each.split("=") for each in page.evaluate("location.hash").split("?")[1].split("&")
                            if each.startswith("s."))
            if len(settings) == 1:
                expect_the_same(page, chosen)
                set_to = f" --set {switch['key']}={choice['value']}" if choice != switch["choices"][0] else ""
                command = f"rapt explain --question {number}{set_to}{' --lang zh' if lang == 'zh' else ''}"
                assert page.inner_text("article .twin code") == command
        assert serious_violations(page) == []


def test_an_axis_ends_with_the_number_that_is_there(page_at, rapt):
    charts = [block for block in rapt("explain", "--question", "8", "--json")["blocks"] if block["kind"] == "chart"]
    assert charts[0]["x"][-1] == 1024
    page = page_at("#questions?q=8&lang=en")
    page.wait_for_selector(".chart")
    shown = page.evaluate("[...document.querySelector('.chart').querySelectorAll('text')].map((each) => each.textContent)")
    assert [f"{x:g}" for x in charts[0]["x"]] == [text for text in shown if text in {f"{x:g}" for x in charts[0]["x"]}][-9:]
    rows = page.evaluate("[...document.querySelectorAll('.chart-figure tbody th')].map((each) => each.textContent)")
    assert rows[:9] == [f"{x:g}" for x in charts[0]["x"]]


def test_numbers_of_axes_are_true():
    text = subprocess.run(["node", "--input-type=module", "-e", """
        const {short} = await import(process.argv[1]);
        const near = 10 ** Math.log10(1024);
        console.log(JSON.stringify([0, 1024, near, -1024, 131072, 1048576, 0.25, 1023.6, 0.00045, 0.5004, 12.3456].map(short)));
        """, f"file://{ROOT}/explorer/questions/chart.mjs"], capture_output=True, text=True, check=True).stdout
    assert json.loads(text) == ["0", "1024", "1024", "-1024", "131072", "1.05e+6", "0.25", "1024", "4.5e-4", "0.5", "12.3"]


def test_on_a_phone_the_list_shows_the_current_question(page_at):
    page = page_at("#questions?q=11&lang=en", width=390, height=844)
    page.wait_for_selector("article h2")

    def seen():
        return page.evaluate("""() => {
          const list = document.querySelector('.questions nav').getBoundingClientRect();
          const entry = document.querySelector('.questions nav [aria-current]').getBoundingClientRect();
          return entry.top >= list.top && entry.bottom <= list.bottom;
        }""")

    assert seen()
    for _ in range(2):
        before = page.inner_text("article h2")
        page.locator("article .forward").click()
        until(page, f"document.querySelector('article h2').textContent !== {before!r}")
        assert seen()


def test_a_long_refusal_wraps(page_at):
    page = page_at(f"#questions?q=4&s.{'n' * 200}=1&lang=en", width=390, height=844)
    page.wait_for_selector("article .error")
    assert page.evaluate("document.querySelector('article .error').scrollWidth"
                         " <= document.querySelector('article .error').clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_question_has_the_number_and_the_place_that_the_command_gives_it(page_at, rapt, lang):
    page = page_at(f"#questions?lang={lang}")
    page.wait_for_selector("article h2")
    expected = [(each["number"], each["question"].replace("`", ""))
                for each in rapt("explain", "--questions", "--lang", lang, "--json")]
    assert [number for number, _ in expected] == NUMBERS
    links = page.evaluate("""[...document.querySelectorAll('.questions nav li')].map((item) =>
        [item.value, item.textContent, item.querySelector('a').getAttribute('href')])""")
    assert [(number, text) for number, text, _ in links] == expected
    for number, text, address in links:
        assert f"q={number}&" in address
        page.locator(".questions nav li a").nth(number - 1).click()
        until(page, f"document.querySelector('article h2').textContent === {json.dumps(text)}")
        assert re.findall(r"\d+", page.inner_text("article .count")) == [str(number), str(len(NUMBERS))]
        assert f"--question {number}" in page.inner_text("article .twin")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_questions_by_keyboard_alone(page_at, lang):
    page = page_at(f"#questions?lang={lang}")
    page.wait_for_selector("article h2")
    seen = set()
    for turn in range(len(NUMBERS)):
        seen.add(page.inner_text("article h2"))
        if page.locator("article .forward").is_disabled():
            break
        for _ in range(400):  # Tab moves from the heading to the button for the next question
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.classList.contains('forward')"):
                break
        before = page.inner_text("article h2")
        page.keyboard.press("Enter")
        until(page, f"document.querySelector('article h2').textContent !== {before!r}")
        until(page, "document.activeElement === document.querySelector('article h2')")
        assert turn < len(NUMBERS)
    assert len(seen) == len(NUMBERS)


def test_a_question_that_is_none_shows_the_first(page_at):
    page = page_at("#questions?q=99&lang=en")
    page.wait_for_selector("article h2")
    assert "QK" in page.inner_text("article h2")


def test_a_setting_that_is_none_is_refused_in_words(page_at):
    page = page_at("#questions?q=4&s.nothing=1&lang=en")
    page.wait_for_selector("article .error")
    assert "nothing" in page.inner_text("article .error")
