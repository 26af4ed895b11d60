"""A pixel canvas: rectangles, hatching and text, with three bytes per pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import strokes

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class _Ink:
    """The coverage of each pixel of a text, 0 … 255. The text's baseline starts at (0, 0); y points down."""

    left: int
    top: int
    rows: list[bytearray]
    width: float  # of the text


def _ink(text: str, size: float, angle: float, bold: bool) -> _Ink:
    lines, width = strokes.strokes_of(text)
    unit = size * 0.72 / strokes.CAPITAL
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    turned = [[(unit * (x * cos + y * sin), unit * (x * sin - y * cos)) for x, y in line] for line in lines]
    pen = max(0.5, unit * strokes.PEN * (1.5 if bold else 1.0) / 2)
    if not turned:
        return _Ink(0, 0, [], unit * width)
    reach = 1.4 * pen + 1.0  # a dot is wider than a stroke
    xs, ys = [x for line in turned for x, _ in line], [y for line in turned for _, y in line]
    left, top = math.floor(min(xs) - reach), math.floor(min(ys) - reach)
    columns, count = math.ceil(max(xs) + reach) - left, math.ceil(max(ys) + reach) - top
    rows = [bytearray(columns) for _ in range(count)]
    for line in turned:
        dot = line[0] == line[-1] and len(line) == 2
        for a, b in zip(line, line[1:]):
            _draw_segment(rows, left, top, a, b, 1.4 * pen if dot else pen)
    return _Ink(left, top, rows, unit * width)


def _draw_segment(rows: list[bytearray], left: int, top: int, a, b, pen: float) -> None:
    (ax, ay), (bx, by) = a, b
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    reach = pen + 1.0
    across = range(math.floor(min(ax, bx) - reach), math.ceil(max(ax, bx) + reach))
    for py in range(math.floor(min(ay, by) - reach), math.ceil(max(ay, by) + reach)):
        row = rows[py - top]
        y = py + 0.5 - ay
        for px in across:
            x = px + 0.5 - ax
            t = (x * dx + y * dy) / square if square else 0.0
            t = 0.0 if t < 0.0 else min(t, 1.0)
            ink = pen + 0.5 - math.hypot(x - t * dx, y - t * dy)
            if ink > 0.0:
                level = 255 if ink >= 1.0 else round(255 * ink)
                if level > row[px - left]:
                    row[px - left] = level


class Canvas:
    def __init__(self, width: int, height: int, paper: Rgb):
        self.width, self.height = width, height
        self.rows = [bytearray(bytes(paper) * width) for _ in range(height)]
        self._inks: dict[tuple[str, float, float, bool], _Ink] = {}  # the same numbers and labels are drawn many times

    def run(self, x: int, y: int, line: bytes, height: int) -> None:
        """Writes the same line of pixels `height` times."""
        for row in self.rows[y : y + height]:
            row[3 * x : 3 * x + len(line)] = line

    def hatch(self, x: int, y: int, width: int, height: int, lines: list[bytes]) -> None:
        """Fills a rectangle with diagonal lines, which continue in adjacent rectangles."""
        for py in range(y, y + height):
            self.rows[py][3 * x : 3 * (x + width)] = lines[py % len(lines)][3 * x : 3 * (x + width)]

    def hatching(self, color: Rgb, paper: Rgb, every: int) -> list[bytes]:
        """The `lines` of `hatch`: `every` lines as wide as the canvas, which repeat from top to bottom."""
        piece = bytes(color) * 2 + bytes(paper) * (every - 2)
        line = piece * (self.width // every + 2)
        return [line[3 * shift : 3 * (shift + self.width)] for shift in range(every)]

    def text(
        self, x: float, y: float, text: str, size: float, color: Rgb, *, anchor="start", angle=0.0, bold=False
    ) -> None:
        """Draws text whose baseline starts, ends or is centred at (x, y), depending on `anchor`."""
        shape = (text, size, angle, bold)
        ink = self._inks.get(shape) or self._inks.setdefault(shape, _ink(*shape))
        back = {"start": 0.0, "middle": ink.width / 2, "end": ink.width}[anchor]
        left = ink.left + round(x - back * math.cos(math.radians(angle)))
        top = ink.top + round(y - back * math.sin(math.radians(angle)))
        for py, inks in enumerate(ink.rows, top):
            if not 0 <= py < self.height:
                continue
            row = self.rows[py]
            for px, level in enumerate(inks, left):
                if level and 0 <= px < self.width:
                    at = 3 * px
                    for channel in range(3):
                        old = row[at + channel]
                        row[at + channel] = old + (color[channel] - old) * level // 255
