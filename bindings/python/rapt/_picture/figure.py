"""The layout of a picture of weights. SVG and PNG are two ways to draw the same figure.

Lengths are CSS pixels. A cell's sides are multiples of half a pixel, so that they are whole pixels in a PNG of twice
that resolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import heat, names

_WIDTH = 960.0  # of a picture with several heads: fits a notebook
_LARGEST_PANEL = 576.0
_LARGEST_CELL, _CELL_FOR_NUMBERS, _CELL_FOR_CROSS = 30.0, 26.0, 9.0
_GAP, _MARGIN = 20.0, 12.0
_LABEL, _SMALL, _HEAD, _TITLE = 11.0, 10.0, 12.0, 15.0  # sizes of text
# The least distance between labels: of all rows, of all columns, and where only some are labelled.
_ROWS_APART, _COLUMNS_APART, _SOME_APART = 12.0, 14.0, 18.0
_MOST_RECTANGLES = 4096  # maximum number of cells drawn one by one, with a tooltip each; more become an image
_MOST_PIXELS = 1 << 21  # of all images in total
_LONGEST_TITLE = 80  # columns
_SLANT = math.sqrt(0.5)
BAR_WIDTH, BAR_HEIGHT, SWATCH = 180.0, 10.0, 12.0


@dataclass(frozen=True)
class Data:
    """The validated data to be shown."""

    weights: list[list[Sequence[float]]]  # per head: (Lq, Lk)
    heads: list[str]  # titles of the heads; for one matrix without a title: [""]
    queries: list[str] | None
    keys: list[str] | None
    title: str

    @property
    def rows(self) -> int:
        return len(self.weights[0])

    @property
    def columns(self) -> int:
        return len(self.weights[0][0])


@dataclass(frozen=True)
class Cells:
    """The properties that all panels share."""

    width: float  # of a cell
    height: float
    down: int  # queries per cell: 1, unless there are too many to show
    across: int  # keys per cell
    rows: int  # of cells
    columns: int
    separate: bool  # each cell is a rectangle; otherwise all are one image

    @property
    def numbers(self) -> bool:  # whether cells contain their number
        return self.separate and self.width >= _CELL_FOR_NUMBERS and self.height >= 18.0

    @property
    def crosses(self) -> bool:  # whether hidden cells show a cross; otherwise they show the hatching
        return self.separate and min(self.width, self.height) >= _CELL_FOR_CROSS


@dataclass(frozen=True)
class Text:
    x: float
    y: float  # of the baseline
    text: str
    size: float = _LABEL
    anchor: str = "start"
    angle: float = 0.0
    quiet: bool = False
    bold: bool = False
    instead: str = ""  # replaces `text` if a font lacks one of its characters


@dataclass(frozen=True)
class Panel:
    """One head."""

    x: float
    y: float
    title: str
    weights: list[Sequence[float]]  # (Lq, Lk)
    levels: list[bytes]  # of the cells


@dataclass(frozen=True)
class Figure:
    data: Data
    scale: heat.Scale
    cells: Cells
    panels: list[Panel]
    texts: list[Text]
    bar: tuple[float, float]  # upper left corner of the scale
    swatches: list[tuple[float, float, int]]  # upper left corners, and the level that each explains
    width: float
    height: float


def _fit(count: int, room: float, most: int) -> tuple[float, int]:
    """The side of a cell and the number of tokens per cell, so that `count` tokens take about `room`."""
    block = math.ceil(count / min(count, most, int(2 * room)))
    side = min(_LARGEST_CELL, room / math.ceil(count / block))
    return max(0.5, math.floor(2 * side) / 2), block


def _cells(data: Data, room: float) -> Cells:
    heads, rows, columns = len(data.weights), data.rows, data.columns
    most = math.isqrt(_MOST_PIXELS // heads)
    width, across = _fit(columns, room, most)
    height, down = _fit(rows, room, most)
    if 0.5 <= width / height <= 2.0:
        width = height = min(width, height)
    elif width < height:  # a band: cells are not square, but not too narrow
        height = min(height, max(4 * width, math.floor(min(_LARGEST_CELL, 160.0 / rows))))
    else:
        width = min(width, max(4 * height, math.floor(min(_LARGEST_CELL, 160.0 / columns))))
    whole = down == across == 1 and min(width, height) >= 4.0
    separate = whole and heads * rows * columns <= _MOST_RECTANGLES
    return Cells(width, height, down, across, math.ceil(rows / down), math.ceil(columns / across), separate)


def _panels_across(data: Data, left: float) -> int:
    """The number of heads side by side: as many as are still legible."""
    count, columns = len(data.weights), data.columns
    least = 272.0 if count <= 9 else 208.0 if count <= 16 else 136.0
    with_numbers = columns * _CELL_FOR_NUMBERS
    least = with_numbers if count <= 8 and columns <= 16 else min(least, with_numbers)
    most = next((n for n in range(min(count, 6), 1, -1) if _room(n, left) >= least), 1)
    full = (n for n in range(most, 2 * most // 3, -1) if count % n == 0)  # full rows of heads, if possible
    return next(full, math.ceil(count / math.ceil(count / most)))


def _room(across: int, left: float) -> float:
    return (_WIDTH - left - (across - 1) * _GAP) / across


class _Labels:
    """The names along one side of the panels: all of them, or every n-th."""

    def __init__(self, given: list[str] | None, count: int, side: float, apart: float):
        self.given = given
        some = max(_SOME_APART, apart)
        self.shown = range(0, count, 1 if side >= apart else max(2, round(heat.nice_step(some / side))))

    def name(self, n: int) -> str:
        return names.clip(self.given[n]) if self.given else str(n)

    def numbered(self, n: int) -> str:
        """The name of a key, with its number if not all keys are labelled."""
        return f"{n} {self.name(n)}" if self.given and self.shown.step > 1 else self.name(n)

    def width(self) -> float:
        return max(names.width(self.numbered(n)) for n in self.shown) * _LABEL

    @staticmethod
    def of_keys(given: list[str] | None, count: int, side: float) -> tuple["_Labels", bool]:
        """All labels, upright, if they fit; otherwise slanted, as many as fit. Also returns whether they are
        slanted."""
        all_of_them = _Labels(given, count, side, side)
        if all_of_them.width() <= side - 4.0:
            return all_of_them, False
        if given is None:  # plain numbers: a few of them suffice
            return _Labels(given, count, side, names.width(str(count)) * _LABEL + 10.0), False
        return _Labels(given, count, side, _COLUMNS_APART), True


def _left(data: Data) -> float:
    """The width that the queries' names and numbers need."""
    shown = data.queries or [str(data.rows - 1)]
    widest = max(names.width(names.clip(name)) for name in shown) * _LABEL
    numbers = names.width(str(data.rows - 1)) * _LABEL + 8.0 if data.queries else 0.0
    return math.ceil(_MARGIN + numbers + widest + 6.0)


class _Layout:
    def __init__(self, data: Data, scale: heat.Scale):
        self.data, self.scale = data, scale
        self.left = _left(data)
        self.across = _panels_across(data, self.left)
        self.cells = _cells(data, min(_LARGEST_PANEL, _room(self.across, self.left)))
        self.panel_width = self.cells.width * self.cells.columns
        self.panel_height = self.cells.height * self.cells.rows
        self.texts: list[Text] = []
        self.right = 0.0  # the right end of the rightmost element
        across = self.cells.width / self.cells.across  # of one key
        self.keys, self.slanted = _Labels.of_keys(data.keys, data.columns, across)
        self.queries = _Labels(data.queries, data.rows, self.cells.height / self.cells.down, _ROWS_APART)

    def figure(self) -> Figure:
        y = _MARGIN
        if self.data.title:
            y = self.put_title(y)
        panels = self.put_panels(y)
        y = panels[-1].y + self.panel_height + 16.0
        hidden = any(heat.HIDDEN in row for panel in panels for row in panel.levels)
        broken = any(heat.NOT_FINITE in row for panel in panels for row in panel.levels)
        bar, swatches = self.put_legend(y, hidden, broken)
        height = y + BAR_HEIGHT + 38.0 + _MARGIN
        parts = self.right, max(panel.x for panel in panels) + self.panel_width, bar[0] + BAR_WIDTH
        width = max(parts) + _MARGIN
        size = math.ceil(width), math.ceil(height)
        return Figure(self.data, self.scale, self.cells, panels, self.texts, bar, swatches, *size)

    def put(self, text: Text) -> None:
        self.texts.append(text)
        if text.anchor == "start":
            reach = names.width(text.text) * text.size * (1.25 if text.bold else 1.0)
            self.right = max(self.right, text.x + reach * (_SLANT if text.angle else 1.0))

    def put_title(self, y: float) -> float:
        self.put(Text(_MARGIN, y + _TITLE, names.clip(self.data.title, _LONGEST_TITLE), _TITLE, bold=True))
        return y + _TITLE + 14.0

    def put_panels(self, y: float) -> list[Panel]:
        panels = []
        for first in range(0, len(self.data.weights), self.across):
            titled = any(self.data.heads[first : first + self.across])
            cells_y = y + (20.0 if titled else 4.0)
            if first == 0:
                cells_y += self.keys.width() * _SLANT + 12.0 if self.slanted else 16.0
            cells_y = math.ceil(cells_y)
            for n in range(first, min(first + self.across, len(self.data.weights))):
                x = self.left + (n - first) * (self.panel_width + _GAP)
                if titled:
                    title = names.clip(self.data.heads[n], max(8, int(self.panel_width / 6.5)))
                    self.put(Text(x, y + _HEAD, title, _HEAD, bold=True))
                if first == 0:
                    self.put_keys(x, cells_y)
                panels.append(self.panel(n, x, cells_y))
            self.put_queries(cells_y)
            y = cells_y + self.panel_height + 14.0
        return panels

    def panel(self, n: int, x: float, y: float) -> Panel:
        weights = self.data.weights[n]
        blocks = heat.shrink(weights, self.cells.down, self.cells.across)
        return Panel(x, y, self.data.heads[n], weights, [self.scale.levels(row) for row in blocks])

    def put_keys(self, x: float, y: float) -> None:
        side = self.cells.width / self.cells.across
        for n in self.keys.shown:
            text, at = self.keys.numbered(n), x + (n + 0.5) * side
            if self.slanted:
                self.put(Text(at + 3.0, y - 6.0, text, angle=-45.0, quiet=not self.data.keys, instead=str(n)))
            else:
                self.put(Text(at, y - 6.0, text, anchor="middle", quiet=not self.data.keys, instead=str(n)))

    def put_queries(self, y: float) -> None:
        side, right = self.cells.height / self.cells.down, self.left - 6.0
        for n in self.queries.shown:
            at = y + (n + 0.5) * side + 0.36 * _LABEL
            if not self.data.queries:
                self.put(Text(right, at, str(n), anchor="end", quiet=True))
                continue
            number = _MARGIN + names.width(str(self.data.rows - 1)) * _LABEL
            self.put(Text(number, at, str(n), anchor="end", quiet=True))
            self.put(Text(right, at, self.queries.name(n), anchor="end", instead=" "))

    def put_legend(self, y: float, hidden: bool, broken: bool):
        x, swatches = self.left, []
        self.put(Text(x, y + 9.0, "weight", _SMALL, quiet=True))
        bar = (x + 40.0, y)
        for place, text in self.scale.ticks():
            self.put(Text(bar[0] + place * BAR_WIDTH, y + BAR_HEIGHT + 12.0, text, _SMALL, "middle", quiet=True))
        x = bar[0] + BAR_WIDTH + 24.0
        marks = (heat.HIDDEN, hidden, "hidden: exactly 0"), (heat.NOT_FINITE, broken, "not finite")
        for level, there, meaning in marks:
            if there:
                swatches.append((x, y - 1.0, level))
                self.put(Text(x + SWATCH + 6.0, y + 9.0, meaning, _SMALL, quiet=True))
                x += SWATCH + 6.0 + names.width(meaning) * _SMALL + 20.0
        self.put(Text(self.left, y + BAR_HEIGHT + 32.0, self.caption(), _SMALL, quiet=True))
        return bar, swatches

    def caption(self) -> str:
        caption = "Rows are queries, columns are keys."
        if self.cells.down > 1 or self.cells.across > 1:
            caption += f" Each point shows the largest of {self.cells.down} × {self.cells.across} weights."
        return caption


def lay_out(data: Data, scale: heat.Scale) -> Figure:
    return _Layout(data, scale).figure()
