"""Walk: the numbers on the page are those of the native engine, and each shows how it was computed."""

import numpy as np
import pytest
from accessibility import serious_violations
from conftest import LANGUAGES, until

STEPS = ["embedding", "projections", "split", "scores", "scale", "mask", "softmax", "sum", "combine", "output",
         "vocabulary"]
SENTENCE = "the cat saw the dog"


def numbers(page, title):
    """The matrix with a title, as shown on the page."""
    grid = page.locator(f"table[aria-label='{title}']").first
    rows = grid.locator("tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("[role=gridcell]").all()] for row in rows]


def shown(values, decimals):
    def one(value):
        if value is None:
            return "−∞"
        text = f"{value:.{decimals}f}".replace("-", "−")
        return text[1:] if text.startswith("−") and not text.strip("−0.") else text

    return [[one(value) for value in row] for row in values]


def near(page_values, values, decimals):
    """Checks that each number on the page is the value, rounded to `decimals` digits."""
    for page_row, row in zip(page_values, values, strict=True):
        for text, value in zip(page_row, row, strict=True):
            if value is None:
                assert text == "−∞"
            else:
                assert abs(float(text.replace("−", "-")) - value) <= 0.5000001 * 10 ** -decimals


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_every_step_has_the_native_engines_numbers(page_at, rapt, lang, causal):
    walk = rapt("explain", "--json", "--text", SENTENCE, "--heads", "3", *(["--causal"] if causal else []))

    def tensor(step, name=None):
        return next(each for each in walk["steps"] if each["step"] == step and name in (None, each.get("name")))

    head = 1
    expected = {
        "embedding": [("x", tensor("embedding")["values"][0], 1)],
        "projections": [("q", tensor("projections", "q")["values"][0], 1), ("W_q", walk["parameters"]["W_q"]["values"], 1)],
        "split": [("q[2]", tensor("split_heads", "q")["values"][0][2], 2)],
        "scores": [("scores[1]", tensor("scores")["values"][0][head], 2)],
        "scale": [("scaled[1]", tensor("scale")["values"][0][head], 2)],
        "mask": [("masked[1]", tensor("apply_mask")["values"][0][head], 2)],
        "softmax": [("weights[1]", tensor("softmax")["values"][0][head], 2)],
        "sum": [("out[1]", tensor("weighted_sum")["values"][0][head], 2)],
        "combine": [("combined", tensor("combine_heads")["values"][0], 1)],
        "output": [("y", tensor("W_o")["values"][0], 1)],
    }
    page = page_at(f"#walk?lang={lang}&text={SENTENCE}&heads=3&head=1{'&causal=1' if causal else ''}")
    page.wait_for_selector("[role=gridcell]")
    for step, matrices in expected.items():
        page.locator(".steps button").nth(STEPS.index(step)).click()
        for title, values, decimals in matrices:
            near(numbers(page, title), values, decimals)
            shape = page.locator(f"figure:has(table[aria-label='{title}']) .layout").inner_text()
            assert "(" in shape
        assert serious_violations(page) == [], step


def test_a_number_says_what_made_it(page_at, rapt):
    walk = rapt("explain", "--json", "--text", SENTENCE)
    scores = next(each for each in walk["steps"] if each["step"] == "scores")["values"][0][0]
    page = page_at(f"#walk?lang=en&text={SENTENCE}&step=scores")
    page.locator("table[aria-label='scores[0]'] [data-cell='2,4']").hover()
    how = page.inner_text(".how")
    assert how.startswith("scores[0][2, 4] = ") and how.count("×") == 6
    assert abs(float(how.split("=")[-1].replace("−", "-")) - scores[2][4]) <= 0.0051
    assert page.locator("table[aria-label='q[0]'] .marked").count() == 6
    assert page.locator("table[aria-label='k[0]'] .marked").count() == 6
    # The displayed products add up to the score.
    terms = how.split("=")[1].split("+")
    total = sum(float(a) * float(b) for a, b in (term.replace("−", "-").split("×") for term in terms))
    assert abs(total - scores[2][4]) < 0.1


def test_the_whole_walk_by_keyboard_alone(page_at):
    page = page_at("#walk?lang=en")
    page.wait_for_selector("[role=gridcell]")
    forward = page.locator(".forward")
    forward.focus()
    for step in range(1, len(STEPS)):
        page.keyboard.press("Enter")
        until(page, f"document.querySelector('#step-title').textContent.startsWith('{step + 1}.')")
    assert "next letter" in page.inner_text("#step-title")
    page.keyboard.press("Enter")  # focus moved to Back, because there is no further step
    until(page, "document.querySelector('#step-title').textContent.startsWith('10.')")
    cell = page.locator("table[aria-label='y'] [data-cell='0,0']")
    cell.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.cell") == "1,1"
    assert "“the”" in page.inner_text("#announcer")


def test_the_address_keeps_the_state(page_at):
    page = page_at("#walk?lang=en")
    page.wait_for_selector("[role=gridcell]")
    page.fill("#sentence", "to be or not to be")
    page.select_option("#heads", "6")
    page.check("#causal")
    page.locator(".steps button").nth(6).click()
    until(page, "document.querySelectorAll('.heads figure').length === 6")
    address = page.evaluate("location.hash")
    again = page_at(address)
    again.wait_for_selector(".heads figure")
    assert again.input_value("#sentence") == "to be or not to be"
    assert numbers(again, "weights[0]") == numbers(page, "weights[0]")
    assert again.is_checked("#causal")


def test_what_is_typed_counts_at_once_for_the_other_controls(page_at):
    page = page_at("#walk?lang=en&step=softmax")
    page.wait_for_selector("[role=gridcell]")
    page.evaluate("""() => {
      const change = (name, value, event) => {
        document.querySelector(name).value = value;
        document.querySelector(name).dispatchEvent(new Event(event));
      };
      change('#sentence', 'to be', 'input');
      change('#heads', '6', 'change');
    }""")
    until(page, "document.querySelectorAll('.heads figure').length === 6")
    assert "text=to+be&" in page.evaluate("location.hash")


def test_a_sentence_that_is_none_or_too_long_is_refused_in_words(page_at):
    page = page_at("#walk?lang=en")
    page.wait_for_selector("[role=gridcell]")
    page.fill("#sentence", "   ")
    until(page, "document.querySelector('#sentence-error').textContent !== ''")
    assert page.inner_text("#sentence-error") == "Enter at least one word."
    page.fill("#sentence", "a " * 70)
    until(page, "document.querySelector('#sentence-error').textContent.includes('70')")
    page.fill("#sentence", "good again")
    until(page, "document.querySelector('#sentence-error').textContent === ''")


def test_the_trained_model_goes_on_with_what_it_saw(page_at):
    page = page_at("#walk?lang=en&text=xKq7mTzBaKq7m&step=vocabulary")
    page.wait_for_selector("table.chances")
    first = page.locator("table.chances tbody tr").first
    assert first.locator("th").inner_text() == "T"  # what followed 7m the first time
    assert float(first.locator("td").nth(1).inner_text().rstrip(" %")) > 90


SEEN = """() => {
  const title = document.querySelector('#step-title'), box = title.getBoundingClientRect();
  const over = document.elementFromPoint(box.left + 20, (box.top + box.bottom) / 2);
  return box.top >= 0 && box.bottom <= innerHeight && over === title;
}"""
CURRENT_SEEN = """() => {
  const list = document.querySelector('.steps').getBoundingClientRect();
  const entry = document.querySelector('.steps [aria-current]').getBoundingClientRect();
  return entry.left >= list.left - 1 && entry.right <= list.right + 1;
}"""


@pytest.mark.parametrize("width, height", [(1280, 800), (390, 844)])
def test_the_title_and_the_buttons_of_a_step_are_on_the_screen(page_at, width, height):
    page = page_at("#walk?lang=en", width=width, height=height)
    page.wait_for_selector("[role=gridcell]")
    for button, order in ((".forward", range(1, len(STEPS))), (".back", range(len(STEPS) - 2, -1, -1))):
        for step in order:
            page.locator(f".stage {button}").click()
            until(page, f"document.querySelector('#step-title').textContent.startsWith('{step + 1}.')")
            assert page.evaluate(SEEN), (button, step)
            if width < 760:
                assert page.evaluate(CURRENT_SEEN), (button, step)
            box = page.locator(f".stage {button}").bounding_box()
            assert 0 <= box["y"] <= height - box["height"], (button, step)
        assert page.evaluate("document.activeElement.parentElement.className") == "turn"


def test_arrow_keys_step(page_at):
    page = page_at("#walk?lang=en", width=1280, height=800)
    page.wait_for_selector("[role=gridcell]")

    def press(key, step):
        page.keyboard.press(key)
        page.wait_for_timeout(50)
        assert page.inner_text("#step-title").startswith(f"{step}."), key

    press("ArrowLeft", 1)  # there is no step before the first
    for step in range(2, len(STEPS) + 1):
        press("ArrowRight", step)
        assert page.evaluate(SEEN)
    press("ArrowRight", len(STEPS))
    assert page.evaluate("document.activeElement === document.body")  # focus was nowhere, and stays there
    page.locator(".steps button").nth(3).click()
    press("ArrowLeft", 3)
    assert page.evaluate("document.activeElement.textContent") == page.inner_text(".steps [aria-current]")
    press("ArrowRight", 4)
    press("Alt+ArrowUp", 4)
    page.locator("[data-cell='0,0']").first.focus()  # a matrix has its own arrows
    press("ArrowRight", 4)
    page.focus("#sentence")
    press("ArrowLeft", 4)
    page.focus("#heads")
    press("ArrowRight", 4)
    page.focus("input[name=head]:checked")
    press("ArrowRight", 4)
    page.locator("nav a[href^='#questions']").click()
    page.wait_for_selector("article h2")
    page.keyboard.press("ArrowRight")
    assert page.locator("main.view-questions").count() == 1


def test_on_a_phone_an_address_opens_with_its_step_in_the_strip(page_at):
    page = page_at("#walk?lang=en&step=vocabulary", width=390, height=844)
    page.wait_for_selector("table.chances")
    assert page.evaluate(CURRENT_SEEN)


WIDTHS = """() => [...document.querySelectorAll('table.matrix')].map((table) =>
  [...table.querySelectorAll('[role=gridcell]')].map((cell) => Math.round(cell.clientWidth)))"""


@pytest.mark.parametrize("step", ["scores", "softmax"])
def test_all_cells_of_a_matrix_have_one_width(page_at, step):
    widths = {}
    for text in ["a b c", "a internationalization-of-everything cats"]:
        page = page_at(f"#walk?lang=en&text={text}&step={step}&heads=4")
        page.wait_for_selector("[role=gridcell]")
        tables = page.evaluate(WIDTHS)
        assert all(max(table) - min(table) <= 1 for table in tables), tables
        widths[text] = [max(table) for table in tables]
        # A label that is cut has its whole text in its title.
        assert page.evaluate("""[...document.querySelectorAll('table.matrix th')].every((head) => {
          const label = head.querySelector('.label') ?? head;
          const cut = label.scrollWidth > label.clientWidth + 1 || label.scrollHeight > label.clientHeight + 1;
          return !cut || head.title === head.textContent;
        })""")
        assert page.locator("th[title]").count() > 0 or text == "a b c"
    short, long = widths.values()
    assert np.abs(np.subtract(short, long)).max() <= 6  # numbers may be longer by a minus sign, labels count for nothing


@pytest.mark.parametrize("step", ["split", "combine"])
def test_one_head_is_not_said_in_the_plural(page_at, step):
    page = page_at(f"#walk?lang=en&heads=1&step={step}")
    page.wait_for_selector("[role=gridcell]")
    words = page.inner_text(".stage > p >> nth=0")
    assert words.startswith("With one head, ") and "{" not in words
