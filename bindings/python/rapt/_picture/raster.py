"""Draws a figure as PNG, with two pixels per CSS pixel."""

from __future__ import annotations

import itertools

from . import heat, png, strokes, words
from .canvas import Canvas
from .figure import BAR_HEIGHT, BAR_WIDTH, SWATCH, Figure, Panel

_DENSITY = 2
_HATCH = 14  # pixels from line to line


def draw(figure: Figure, theme: heat.Theme) -> bytes:
    canvas = Canvas(int(_DENSITY * figure.width), int(_DENSITY * figure.height), theme.paper)
    for text in figure.texts:
        shown = text.text if strokes.can_draw(text.text) else text.instead or text.text
        color = theme.quiet if text.quiet else theme.ink
        canvas.text(_DENSITY * text.x, _DENSITY * text.y, shown, _DENSITY * text.size, color,
                    anchor=text.anchor, angle=text.angle, bold=text.bold)
    for panel in figure.panels:
        _panel(canvas, figure, panel, theme)
    _legend(canvas, figure, theme)
    title = figure.data.title or "Attention weights"
    about = {"Title": title, "Description": words.picture(figure), "Software": "rapt"}
    return png.truecolor(canvas.width, canvas.height, canvas.rows, 96.0 * _DENSITY, about)


def _panel(canvas: Canvas, figure: Figure, panel: Panel, theme: heat.Theme) -> None:
    cells = figure.cells
    left, top = int(_DENSITY * panel.x), int(_DENSITY * panel.y)
    width, height = int(_DENSITY * cells.width), int(_DENSITY * cells.height)
    gap = 2 if cells.separate and min(width, height) >= 20 else 0
    pieces = [bytes(color) * (width - gap) + bytes(theme.paper) * gap for color in theme.colors]
    hatching = canvas.hatching(theme.hatch, theme.paper, _HATCH)
    for i, levels in enumerate(panel.levels):
        y = top + i * height
        canvas.run(left + gap // 2, y + gap // 2, b"".join(map(pieces.__getitem__, levels)), height - gap)
        if not cells.crosses:
            j = 0
            for level, run in itertools.groupby(levels):
                count = sum(1 for _ in run)
                if level == heat.HIDDEN:
                    canvas.hatch(left + j * width, y, count * width, height, hatching)
                j += count
        if cells.numbers or cells.crosses:
            _inside(canvas, figure, panel, theme, i)


def _inside(canvas: Canvas, figure: Figure, panel: Panel, theme: heat.Theme, i: int) -> None:
    """The contents of the cells of a row: numbers, or only crosses for hidden cells."""
    cells = figure.cells
    size = 10.0 if cells.numbers else 0.9 * min(cells.width, cells.height)
    for j, level in enumerate(panel.levels[i]):
        if cells.numbers or level == heat.HIDDEN:
            x = panel.x + (j + 0.5) * cells.width
            y = panel.y + (i + 0.5) * cells.height + 0.35 * size
            color = theme.cross if level == heat.HIDDEN else theme.on(level)
            text = heat.short(panel.weights[i][j])
            canvas.text(_DENSITY * x, _DENSITY * y, text, _DENSITY * size, color, anchor="middle")


def _legend(canvas: Canvas, figure: Figure, theme: heat.Theme) -> None:
    left, top = (int(_DENSITY * at) for at in figure.bar)
    width, height = int(_DENSITY * BAR_WIDTH), int(_DENSITY * BAR_HEIGHT)
    line = b"".join(bytes(theme.colors[heat.FIRST + x * heat.LEVELS // width]) for x in range(width))
    canvas.run(left, top, line, height)
    side = int(_DENSITY * SWATCH)
    for x, y, level in figure.swatches:
        x, y = int(_DENSITY * x), int(_DENSITY * y)
        if level != heat.HIDDEN:
            canvas.run(x, y, bytes(theme.colors[level]) * side, side)
        elif figure.cells.crosses:
            canvas.text(x + side / 2, y + 20, "×", 24, theme.cross, anchor="middle")
        else:
            canvas.hatch(x, y, side, side, canvas.hatching(theme.hatch, theme.paper, _HATCH))
