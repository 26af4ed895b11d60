"""`rapt.show`: attention weights as a heat map."""

from __future__ import annotations

import math
import operator
import os
import pathlib
import tempfile

from . import figure, heat, names, page, raster, reading, svg

_THEMES = {"auto": None, "light": heat.LIGHT, "dark": heat.DARK}
_MOST_HEADS = 144


class Picture:
    """A heat map of attention weights, returned by `rapt.show`.

    As the last value of a notebook cell, it is displayed. `save` writes it as HTML, SVG or PNG.
    """

    def __init__(self, drawn, theme):
        self._figure = drawn
        self._theme = _THEMES[theme]

    def html(self):
        """A standalone page."""
        return page.whole(self._figure, self._theme)

    def svg(self):
        """An SVG document. If there are many weights, each head is an embedded image."""
        return svg.on_paper(self._figure, self._theme or heat.LIGHT)

    def png(self):
        """A PNG file, with two pixels per CSS pixel.

        It is drawn with a small built-in font, which has ASCII, some symbols, and ASCII letters with diacritics. A
        token with any other character is shown as its number. HTML and SVG support all of Unicode.
        """
        return raster.draw(self._figure, self._theme or heat.LIGHT)

    def save(self, path):
        """Writes the picture in the format of the file extension: `.html`, `.svg` or `.png`.

        The file is either complete or absent: it is written beside `path` under a temporary name, and then renamed.
        """
        path = pathlib.Path(path)
        kinds = {".html": self.html, ".htm": self.html, ".svg": self.svg, ".png": self.png}
        kind = kinds.get(path.suffix.lower())
        if kind is None:
            raise ValueError(f'save: "{path}" ends in "{path.suffix}"; supported formats: .html, .svg and .png')
        data = kind()
        _write_whole(path, data if isinstance(data, bytes) else data.encode("utf-8"))

    def _repr_html_(self):
        return page.part(self._figure, self._theme)

    def __repr__(self):
        data = self._figure.data
        return f"<rapt.Picture of weights (H, Lq, Lk) = ({len(data.weights)}, {data.rows}, {data.columns})>"


def _write_whole(path: pathlib.Path, data: bytes) -> None:
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # like any new file; mkstemp's are private
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def show(
    weights,
    tokens=None,
    *,
    key_tokens=None,
    heads=None,
    head_titles=None,
    batch=0,
    title=None,
    largest=None,
    scale="linear",
    theme="auto",
):
    """Attention weights as a heat map, for a notebook or a file.

        out, weights = layer(x, x, x, average_attn_weights=False)
        rapt.show(weights, "if the cat ran the dog ran too".split())
        rapt.show(weights, tokens).save("weights.png")

    Each row is a query and each column a key: a row shows what its query attends to. Small matrices contain the
    numbers, and show query, key and weight in a tooltip; in large ones, the tooltip of a row lists its largest weights.
    If there are more weights than pixels, each pixel shows the largest weight that it covers, and the picture says so.

    Args:
        weights: (Lq, Lk), (H, Lq, Lk) or (B, H, Lq, Lk), anything with `__dlpack__` or the buffer protocol (NumPy,
            PyTorch, JAX on the CPU), or nested lists. Weights must not be negative. A weight of exactly 0 is shown as
            hidden, NaN and infinity as not finite. Mean weights of a batch, (B, Lq, Lk), would be taken for heads: pass
            one batch row.
        tokens: the names of the queries, and of the keys if Lq = Lk and `key_tokens` is not given. Spaces and control
            characters in them are made visible. Default: numbers.
        key_tokens: the names of the keys.
        heads: the heads to show, by number. Default: all.
        head_titles: the title of each head that is shown. Default: "head 0", "head 1", …
        batch: the batch row, if there is a batch.
        title: the title of the whole picture.
        largest: the weight with the last colour, the same for all heads. Default: 1, or the largest weight if that is
            below one half or above 1.
        scale: "linear", or "log": four decades down from `largest`, for rows with one weight far above the others.
        theme: "light" or "dark". "auto": follows the page in HTML, light elsewhere.

    Returns:
        A `rapt.Picture`, which a notebook displays, with `save(path)`, `html()`, `svg()` and `png()`.

    Raises:
        ValueError: says what was requested, what was found and what would work.
    """
    numbers = reading.read(weights)
    shape = numbers.shape
    _check_choices(shape, batch, largest, scale, theme)
    queries = _names("tokens", tokens, shape, shape[-2])
    same = key_tokens is None and shape[-1] == shape[-2]
    keys = queries if same else _names("key_tokens", key_tokens, shape, shape[-1])
    chosen = _chosen_heads(heads, shape)
    leading = [(batch, head) for head in chosen] if len(shape) == 4 else [(head,) for head in chosen]
    planes = [_plane(numbers, index if len(shape) > 2 else ()) for index in leading]
    titles = _titles(head_titles, chosen, len(shape))
    data = figure.Data(planes, titles, queries, keys, names.one_line(title))
    top = largest if largest is not None else _largest(planes)
    return Picture(figure.lay_out(data, heat.Scale(float(top), scale == "log")), theme)


def _check_choices(shape: tuple[int, ...], batch, largest, scale, theme) -> None:
    count = shape[0] if len(shape) == 4 else 1
    if not isinstance(batch, int) or not 0 <= batch < count:
        there = f"rows 0 … {count - 1}" if len(shape) == 4 else "no batch dimension, so only batch=0 fits"
        raise ValueError(f"show: batch is {batch!r}; weights of shape {shape} has {there}")
    for what, found, choices in (("scale", scale, ("linear", "log")), ("theme", theme, tuple(_THEMES))):
        if found not in choices:
            raise ValueError(f"show: {what} is {found!r}; it must be one of {', '.join(map(repr, choices))}")
    if largest is not None and not (isinstance(largest, (int, float)) and 0.0 < largest < math.inf):
        raise ValueError(f"show: largest is {largest!r}; it must be a number above 0")


def _names(what: str, given, shape: tuple[int, ...], count: int) -> list[str] | None:
    if given is None:
        return None
    given = given.tolist() if hasattr(given, "tolist") else given
    try:
        found = [names.visible(token) for token in given]
    except TypeError:
        kind = type(given).__name__
        raise ValueError(f"show: {what} is of type {kind}; it must be a list of {count} names") from None
    if len(found) != count:
        unit = "characters (a string is taken for a list of them; text.split() gives words)"
        there = f"{len(found)} {unit if isinstance(given, str) else 'names'}"
        raise ValueError(f"show: {what} has {there}, weights has {shape[-2]} queries and {shape[-1]} keys; tokens "
                         "names the queries (and the keys, if there are as many), key_tokens the keys")
    return found


def _chosen_heads(heads, shape: tuple[int, ...]) -> list[int]:
    count = shape[-3] if len(shape) > 2 else 1
    try:
        chosen = list(range(count)) if heads is None else [operator.index(head) for head in heads]
    except TypeError:
        raise ValueError(f"show: heads is {heads!r}; it must be a list of numbers, such as [0, 1]") from None
    for head in chosen:
        if not 0 <= head < count:
            raise ValueError(f"show: heads contains {head}; weights of shape {shape} has heads 0 … {count - 1}")
    if not 1 <= len(chosen) <= _MOST_HEADS:
        raise ValueError(f"show: {len(chosen)} heads requested; show takes 1 to {_MOST_HEADS}: choose some with heads=")
    return chosen


def _titles(given, chosen: list[int], rank: int) -> list[str]:
    if given is None:
        return [f"head {head}" for head in chosen] if rank > 2 else [""]
    titles = [given] if isinstance(given, str) else list(given)
    if len(titles) != len(chosen):
        raise ValueError(f"show: head_titles has {len(titles)} titles, {len(chosen)} heads are shown; "
                         "they must be equal")
    return [names.one_line(title) for title in titles]


def _plane(numbers: reading.Numbers, index: tuple[int, ...]) -> list[reading.Row]:
    rows = [numbers.row(*index, i) for i in range(numbers.shape[-2])]
    for i, row in enumerate(rows):
        if min(row) < 0.0 or (math.isnan(sum(row)) and any(weight < 0.0 for weight in row)):
            j = next(j for j, weight in enumerate(row) if weight < 0.0)
            raise ValueError(f"show: weights has {row[j]:.4g} at {(*index, i, j)}; weights must not be negative "
                             "(for scores, take the softmax over the keys first)")
    return rows


def _largest(planes: list[list[reading.Row]]) -> float:
    """The end of the scale: 1, or the largest weight if that is below one half or above 1."""
    most = 0.0
    for row in (row for plane in planes for row in plane):
        finite = row if math.isfinite(sum(row)) else [weight for weight in row if math.isfinite(weight)]
        most = max(most, max(finite, default=0.0))
    return most if 0.0 < most < 0.5 or most > 1.0 else 1.0
