"""rapt.show: pictures of attention weights, read back from the written files."""

import html.parser
import re
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from show_support import SVG, cells, decode_png, images, rgb, softmax

import rapt

SENTENCE = "if the cat ran the dog ran too".split()


# ---- SVG ------------------------------------------------------------------------------------------------------------


def test_svg_has_a_cell_for_every_weight():
    weights = softmax(3, 5, 7)
    found = cells(rapt.show(weights).svg())
    assert len(found) == 3 * 5 * 7
    tips = [tip for *_, tip in found]
    for h in range(3):
        for i in range(5):
            for j in range(7):
                assert tips[(h * 5 + i) * 7 + j] == f"head {h} · query {i} → key {j}: {weights[h, i, j]:.4g}"


def test_svg_says_in_words_what_it_shows():
    weights = softmax(2, 8, 8)
    root = ElementTree.fromstring(rapt.show(weights, SENTENCE, title="a sentence").svg().encode())
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert title.text == "a sentence"
    i, j = np.unravel_index(weights[1].argmax(), (8, 8))
    assert "2 heads, 8 queries (rows) and 8 keys (columns)" in description.text
    assert f"Most in head 1: query {i} “{SENTENCE[i]}” gives {weights[1].max():.3g} to key {j}" in description.text


@pytest.mark.parametrize(
    "token, shown",
    [
        ("<s>", "<s>"),
        ('a&b"c\'', 'a&b"c\''),
        (" the", "␣the"),
        ("the ", "the␣"),
        (" ", "␣"),
        ("", "∅"),
        ("a b", "a b"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\x00\x1b", "␀␛"),
        ("\x7f", "␡"),
        ("\u200b", "\\u200b"),
        ("\u202etxt", "\\u202etxt"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("\ud83d", "\\ud83d"),
        ("\u0301", "\u25cc\u0301"),
        ("我爱你", "我爱你"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\\xff"),
        (17, "17"),
    ],
)
def test_whatever_is_in_a_token_becomes_visible(token, shown):
    picture = rapt.show([[0.25, 0.75], [1.0, 0.0]], ["x", token])
    assert cells(picture.svg())[1][-1] == f"query 0 “x” → key 1 “{shown}”: 0.75"
    assert picture.png().startswith(b"\x89PNG")
    picture.html().encode("utf-8")


def test_text_of_others_is_never_markup():
    nasty = '</title></svg><script>alert(1)</script>"\'&amp;'
    picture = rapt.show(softmax(1, 2, 2), [nasty, "b"], title=nasty, head_titles=[nasty])
    for markup in (picture.svg(), picture.html(), picture._repr_html_()):
        assert "<script" not in markup
        assert "&amp;amp;" in markup
    assert ElementTree.fromstring(picture.svg().encode()).find(f"{SVG}title").text == nasty


def test_a_long_token_is_cut_in_labels_and_whole_where_it_is_pointed_at():
    svg = rapt.show(softmax(2, 2), ["internationalization", "b"]).svg()
    assert ">internation…<" in svg
    assert "“internationalization”" in svg


def test_hidden_and_not_finite_cells_are_unlike_any_weight():
    weights = np.array([[0.5, 0.5, 0.0], [np.nan, 1e-30, 1.0], [np.inf, 1.0, 0.25]])
    picture = rapt.show(weights)
    fills = [fill for *_, fill, _ in cells(picture.svg())]
    tips = [tip for *_, tip in cells(picture.svg())]
    assert fills[2] == "none" and tips[2].endswith("hidden, exactly 0")
    assert fills[3] == fills[6] and fills.count(fills[3]) == 2
    assert tips[3].endswith("nan") and tips[6].endswith("inf")
    assert "hidden: exactly 0" in picture.svg() and "not finite" in picture.svg()
    plain = rapt.show(softmax(3, 3)).svg()
    assert "hidden: exactly 0" not in plain and "not finite" not in plain


def test_same_weights_give_same_bytes():
    one, two = (rapt.show(softmax(2, 4, 4), list("abcd")) for _ in range(2))
    assert (one.html(), one.svg(), one.png()) == (two.html(), two.svg(), two.png())


# ---- Many weights ---------------------------------------------------------------------------------------------------


def test_many_weights_are_an_image_with_a_pixel_each():
    weights = softmax(512, 512, causal=True, sharp=4.0)
    svg = rapt.show(weights, [str(n) for n in range(512)], largest=1.0).svg()
    assert len(svg) < 400_000
    (image,) = images(svg)
    pixels, levels, chunks = decode_png(image)
    expected = np.where(weights == 0, 0, 2 + np.floor(weights.astype(float) * 253 + 0.5))
    np.testing.assert_array_equal(levels, expected)
    assert chunks[b"tRNS"] == b"\x00"  # hidden cells show the hatching
    (one, *_) = cells(rapt.show([[1.0]], largest=1.0).svg())
    assert tuple(pixels[0, 0]) == rgb(one[4])
    strips = cells(svg)
    assert len(strips) == 512
    j = weights[300].argmax()
    assert strips[300][-1].startswith(f"query 300 “300” → key {j} “{j}” {weights[300, j]:.2g}, ")


def test_more_weights_than_points_show_the_largest_of_each_block():
    weights = softmax(1300, 1500, causal=True)
    weights[700, 3] = np.nan
    picture = rapt.show(weights, largest=1.0)
    (image,) = images(picture.svg())
    _, levels, _ = decode_png(image)
    assert levels.shape == (650, 750)
    assert "the largest of 2 × 2 weights" in picture.svg()
    expected = np.nan_to_num(weights.astype(float)).reshape(650, 2, 750, 2).max((1, 3))
    expected = np.where(expected == 0, 0, 2 + np.floor(expected * 253 + 0.5))
    expected[350, 1] = 1
    np.testing.assert_array_equal(levels, expected)


@pytest.mark.parametrize("shape", [(1, 1), (4, 8, 8), (12, 24, 24), (1, 2000), (900, 3), (33, 20, 20), (3, 512, 512)])
def test_pictures_stay_light_and_everything_stands_inside(shape):
    picture = rapt.show(softmax(*shape), [f"token{n}" for n in range(shape[-2])], title="long title " * 30)
    assert len(picture.html()) < 3_000_000
    assert len(picture.svg()) < 2_000_000
    pixels, _, _ = decode_png(picture.png())
    height, width, _ = pixels.shape
    assert width <= 2 * 1100
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (border == 255).all()
    for x, y, wide, high, *_ in cells(picture.svg()):
        assert 0 <= x and 2 * (x + wide) <= width and 0 <= y and 2 * (y + high) <= height


def test_labels_do_not_touch_each_other():
    for length in (2, 9, 30, 75, 333):
        root = ElementTree.fromstring(rapt.show(softmax(length, length)).svg().encode())
        texts = [t for t in root.iter(f"{SVG}text") if (t.text or "").isdigit() and t.get("font-size") == "11"]
        rows = [float(t.get("y")) for t in texts if t.get("text-anchor") == "end"]
        columns = [(float(t.get("x")), len(t.text)) for t in texts if t.get("text-anchor") == "middle"]
        assert len(rows) >= 2 and len(columns) >= 2
        assert min(np.diff(rows)) >= 12
        assert all(b - a >= 3.0 * (m + n) for (a, m), (b, n) in zip(columns, columns[1:]))  # half of each, and a gap


# ---- PNG ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (2, 8, 8), (20, 20), (2, 70, 70)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_png_shows_what_svg_shows(shape, theme):
    picture = rapt.show(softmax(*shape), theme=theme)
    pixels, _, chunks = decode_png(picture.png())
    root = ElementTree.fromstring(picture.svg().encode())
    assert pixels.shape[:2] == (2 * int(root.get("height")), 2 * int(root.get("width")))
    assert struct.unpack(">IIB", chunks[b"pHYs"]) == (7559, 7559, 1)  # 192 pixels to the inch
    inside = images(picture.svg())
    if inside:
        group = next(root.iter(f"{SVG}g"))
        left, top = map(float, re.findall(r"[\d.]+", group.get("transform")))
        small, _, _ = decode_png(inside[0])
        side = int(2 * float(group.find(f"{SVG}image").get("width")) / shape[-1])
        large = np.repeat(np.repeat(small, side, 0), side, 1)
        where = np.s_[int(2 * top) : int(2 * top) + len(large), int(2 * left) : int(2 * left) + len(large)]
        np.testing.assert_array_equal(pixels[where], large)
        return
    for x, y, _, _, fill, _ in cells(picture.svg()):
        assert tuple(pixels[int(2 * y) + 2, int(2 * x) + 2]) == rgb(fill)


def test_png_writes_numbers_for_tokens_that_its_font_lacks():
    with_numbers = rapt.show([[0.25, 0.75], [1.0, 0.0]], ["我", "b"])
    assert with_numbers.png() != rapt.show([[0.25, 0.75], [1.0, 0.0]], ["你", "b"]).svg()
    drawn = [decode_png(rapt.show([[0.25, 0.75], [1.0, 0.0]], [token, "b"]).png())[0] for token in ("我", "你")]
    np.testing.assert_array_equal(*drawn)  # neither can be drawn; "0" replaces both


def test_every_printable_character_of_ascii_has_a_shape_of_its_own():
    from rapt._picture import strokes
    from rapt._picture.canvas import Canvas

    shapes = {}
    for code in range(33, 127):
        assert strokes.can_draw(chr(code))
        canvas = Canvas(48, 48, (255, 255, 255))
        canvas.text(10, 34, chr(code), 32, (0, 0, 0))
        picture = b"".join(bytes(row) for row in canvas.rows)
        assert picture.count(0) >= 9
        assert shapes.setdefault(picture, chr(code)) == chr(code)
    assert strokes.can_draw("Ġnaïve …×") and not strokes.can_draw("我")


# ---- Notebooks and files --------------------------------------------------------------------------------------------


class Balanced(html.parser.HTMLParser):
    """Fails if an element is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
@pytest.mark.parametrize("length", [6, 80])
def test_a_notebook_gets_a_part_of_a_page_and_a_file_a_whole_one(theme, length):
    picture = rapt.show(softmax(length, length, causal=True), theme=theme)
    for markup, whole in ((picture._repr_html_(), False), (picture.html(), True)):
        page = Balanced()
        page.feed(markup)
        page.close()
        assert not page.open
        tags = [tag for tag, _ in page.seen]
        assert ("html" in tags, "body" in tags, "svg" in tags) == (whole, whole, True)
        assert "script" not in tags


def test_a_page_decides_whether_a_picture_is_light_or_dark():
    markup = rapt.show(softmax(6, 6))._repr_html_()
    light, dark = (cells(rapt.show(softmax(6, 6), theme=theme).svg()) for theme in ("light", "dark"))
    page = Balanced()
    page.feed(markup)
    shown = [attrs for tag, attrs in page.seen if tag == "rect" and "class" in attrs]
    assert len(shown) == 36
    for attrs, on_light, on_dark in zip(shown, light, dark):
        assert attrs["fill"] == on_light[4]  # what remains if a page allows no styles
        style = f".rapt-picture .{attrs['class']}{{fill:var(--l,{on_light[4]})var(--d,{on_dark[4]})}}"
        assert style in markup
    large = rapt.show(softmax(80, 80), theme="auto")._repr_html_()
    by_theme = [images(rapt.show(softmax(80, 80), theme=theme).svg())[0] for theme in ("light", "dark")]
    assert images(large) == by_theme


@pytest.mark.parametrize("end", ["html", "svg", "png", "PNG"])
def test_save_writes_what_the_name_says(tmp_path, end):
    picture = rapt.show(softmax(2, 4, 4))
    path = tmp_path / f"weights.{end}"
    path.write_bytes(b"old")
    assert picture.save(path) is None
    data = getattr(picture, end.lower())()
    assert path.read_bytes() == (data if isinstance(data, bytes) else data.encode())
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    picture.save(str(path))


def test_save_leaves_nothing_behind_where_it_fails(tmp_path):
    picture = rapt.show([[1.0]])
    with pytest.raises(ValueError) as refused:
        picture.save(tmp_path / "weights.gif")
    assert str(refused.value).endswith('weights.gif" ends in ".gif"; supported formats: .html, .svg and .png')
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OSError):
        picture.save(tmp_path / "folder.png")
    with pytest.raises(FileNotFoundError):
        picture.save(tmp_path / "nowhere" / "weights.png")
    assert [file.name for file in tmp_path.iterdir()] == ["folder.png"]
