"""Draws a figure as SVG: rectangles with tooltips, or images if there are too many cells."""

from __future__ import annotations

import base64
import zlib
from html import escape

from . import heat, png, words
from .figure import BAR_HEIGHT, BAR_WIDTH, SWATCH, Figure, Panel, Text

_FONT = "system-ui,-apple-system,'Segoe UI','Noto Sans','Noto Sans CJK SC','DejaVu Sans',sans-serif"
_STOPS = 33  # colours of the scale
_PIXELS = "image-rendering:optimizeSpeed;image-rendering:pixelated"  # sharp cells; the first is for older viewers
_HATCH = 5  # pixels from line to line


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class _Ink:
    """The colours of a picture with its own background. `_PageInk` adds CSS classes to the fills."""

    def __init__(self, theme: heat.Theme):
        self.theme = theme

    def text(self, quiet: bool) -> str:
        return f'fill="{heat.hex_of(self.theme.quiet if quiet else self.theme.ink)}"'

    def hatch(self) -> str:
        return f'stroke="{heat.hex_of(self.theme.hatch)}"'

    def cross(self) -> str:
        return f'stroke="{heat.hex_of(self.theme.cross)}"'

    def cell(self, level: int) -> str:
        return f'fill="{heat.hex_of(self.theme.colors[level])}"'

    def on_cell(self, level: int) -> str:
        return f'fill="{heat.hex_of(self.theme.on(level))}"'

    def stop(self, level: int) -> str:
        return f'stop-color="{heat.hex_of(self.theme.colors[level])}"'

    def images(self) -> list[tuple[heat.Theme, str, str]]:
        return [(self.theme, "", "")]

    def paper(self, figure: Figure) -> str:
        return f'<rect width="{figure.width}" height="{figure.height}" fill="{heat.hex_of(self.theme.paper)}"/>\n'


class _PageInk(_Ink):
    """The colours of a picture inside a page: text in the page's colour, cells light or dark like the page.

    Each fill is that of a light page, and is used if a page allows no styles. The styles give a class both colours; the
    page selects one of them (rapt/_picture/page.py).
    """

    def __init__(self) -> None:
        super().__init__(heat.LIGHT)
        self.used: set[tuple[str, int]] = set()

    def text(self, quiet: bool) -> str:
        return 'fill="currentColor"' + (' opacity=".62"' if quiet else "")

    def hatch(self) -> str:
        return 'stroke="currentColor" stroke-opacity=".16"'

    def cross(self) -> str:
        return 'stroke="currentColor" opacity=".34"'

    def cell(self, level: int) -> str:
        return f'{super().cell(level)}{self.named("c", level)}'

    def on_cell(self, level: int) -> str:
        return f'{super().on_cell(level)}{self.named("n", level)}'

    def stop(self, level: int) -> str:
        return f'{super().stop(level)}{self.named("s", level)}'

    def named(self, kind: str, level: int) -> str:
        self.used.add((kind, level))
        return f' class="{kind}{level}"'

    def images(self) -> list[tuple[heat.Theme, str, str]]:
        return [(heat.LIGHT, ' class="light"', ""), (heat.DARK, ' class="dark"', ";display:none")]

    def paper(self, figure: Figure) -> str:
        return ""

    def styles(self) -> str:
        return "".join(self.style(kind, level) for kind, level in sorted(self.used))

    @staticmethod
    def style(kind: str, level: int) -> str:
        light, dark = ((theme.on(level) if kind == "n" else theme.colors[level]) for theme in (heat.LIGHT, heat.DARK))
        what = "stop-color" if kind == "s" else "fill"
        return f".rapt-picture .{kind}{level}{{{what}:var(--l,{heat.hex_of(light)})var(--d,{heat.hex_of(dark)})}}"


class _Drawing:
    def __init__(self, figure: Figure, ink: _Ink):
        self.figure, self.ink = figure, ink
        self.out: list[str] = []
        self.description = words.picture(figure)
        # Derived from the picture, so that the same picture always gives the same page.
        self.name = "rapt-%08x" % zlib.crc32(repr((self.description, figure.data.title, ink.theme.paper)).encode())

    def draw(self) -> str:
        figure = self.figure
        width, height = figure.width, figure.height
        title = figure.data.title or "Attention weights"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img" aria-labelledby="{self.name}-title {self.name}-desc" font-family="{_FONT}">\n'
            f'<title id="{self.name}-title">{escape(title)}</title>\n'
            f'<desc id="{self.name}-desc">{escape(self.description)}</desc>\n'
            f"<defs>{self.hatching()}\n{self.gradient()}</defs>\n"
        )
        self.out = [head, self.ink.paper(figure)]
        for text in figure.texts:
            self.text(text)
        for panel in figure.panels:
            self.panel(panel)
        self.legend()
        self.out.append("</svg>\n")
        return "".join(self.out)

    def hatching(self) -> str:
        return (
            f'<pattern id="{self.name}-hatch" width="{_HATCH}" height="{_HATCH}" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><path d="M0 0V{_HATCH}" {self.ink.hatch()} stroke-width="2"/></pattern>'
        )

    def gradient(self) -> str:
        stops = []
        for n in range(_STOPS):
            level = heat.FIRST + round(n * (heat.LEVELS - 1) / (_STOPS - 1))
            stops.append(f'<stop offset="{_number(100 * n / (_STOPS - 1))}%" {self.ink.stop(level)}/>')
        return f'<linearGradient id="{self.name}-scale">{"".join(stops)}</linearGradient>'

    def text(self, text: Text) -> None:
        x, y = _number(text.x), _number(text.y)
        place = f'transform="translate({x} {y}) rotate({_number(text.angle)})"' if text.angle else f'x="{x}" y="{y}"'
        anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
        bold = ' font-weight="600"' if text.bold else ""
        size = f'font-size="{_number(text.size)}"'
        self.out.append(f"<text {place} {size}{anchor}{bold} {self.ink.text(text.quiet)}>{escape(text.text)}</text>\n")

    def hatched(self, x: float, y: float, width: float, height: float) -> None:
        self.out.append(f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" '
                        f'fill="url(#{self.name}-hatch)"/>\n')

    def panel(self, panel: Panel) -> None:
        cells = self.figure.cells
        if not cells.crosses and any(heat.HIDDEN in row for row in panel.levels):
            self.hatched(panel.x, panel.y, cells.width * cells.columns, cells.height * cells.rows)
        self.out.append(f'<g transform="translate({_number(panel.x)} {_number(panel.y)})">\n')
        if cells.separate:
            self.rectangles(panel)
        else:
            self.image(panel)
        self.out.append("</g>\n")

    def rectangles(self, panel: Panel) -> None:
        cells, data = self.figure.cells, self.figure.data
        gap = 1.0 if min(cells.width, cells.height) >= 10.0 else 0.5 if min(cells.width, cells.height) >= 6.0 else 0.0
        size = f'width="{_number(cells.width - gap)}" height="{_number(cells.height - gap)}"'
        crosses = []
        for i, row in enumerate(panel.levels):
            for j, level in enumerate(row):
                x, y = cells.width * j, cells.height * i
                fill = 'fill="none" pointer-events="all"' if level == heat.HIDDEN else self.ink.cell(level)
                self.out.append(f'<rect x="{_number(x + gap / 2)}" y="{_number(y + gap / 2)}" {size} {fill}>'
                                f"<title>{escape(words.cell(data, panel, i, j))}</title></rect>\n")
                if level == heat.HIDDEN:
                    crosses.append((x + cells.width / 2, y + cells.height / 2))
                elif cells.numbers:
                    self.inside(x, y, level, heat.short(panel.weights[i][j]))
        if crosses and cells.crosses:
            self.crosses(crosses, 0.18 * min(cells.width, cells.height))

    def inside(self, x: float, y: float, level: int, text: str) -> None:
        """The text in a cell. It does not receive pointer events, so the cell shows its tooltip."""
        cells = self.figure.cells
        place = f'x="{_number(x + cells.width / 2)}" y="{_number(y + cells.height / 2 + 3.5)}"'
        self.out.append(f'<text {place} font-size="10" text-anchor="middle" pointer-events="none" '
                        f"{self.ink.on_cell(level)}>{text}</text>\n")

    def crosses(self, middles: list[tuple[float, float]], arm: float) -> None:
        arm = min(arm, 3.5)
        one, two = _number(2 * arm), _number(-2 * arm)
        path = "".join(f"M{_number(x - arm)} {_number(y - arm)}l{one} {one}m0 {two}l{two} {one}" for x, y in middles)
        self.out.append(f'<path d="{path}" fill="none" pointer-events="none" {self.ink.cross()}/>\n')

    def image(self, panel: Panel) -> None:
        cells = self.figure.cells
        packed = png.packed_rows(panel.levels)
        size = f'width="{_number(cells.width * cells.columns)}" height="{_number(cells.height * cells.rows)}"'
        for theme, kind, hide in self.ink.images():
            data = png.indexed(cells.columns, cells.rows, packed, theme.colors, heat.HIDDEN)
            self.out.append(f'<image {size} preserveAspectRatio="none" style="{_PIXELS}{hide}"{kind} '
                            f'href="data:image/png;base64,{base64.b64encode(data).decode()}"/>\n')
        strip = f'width="{_number(cells.width * cells.columns)}" height="{_number(cells.height)}"'
        for i in range(cells.rows):
            first = i * cells.down
            count = min(cells.down, self.figure.data.rows - first)
            said = escape(words.row(self.figure.data, panel, first, count))
            self.out.append(f'<rect y="{_number(i * cells.height)}" {strip} fill="none" pointer-events="all">'
                            f"<title>{said}</title></rect>\n")

    def legend(self) -> None:
        x, y = self.figure.bar
        self.out.append(f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(BAR_WIDTH)}" '
                        f'height="{_number(BAR_HEIGHT)}" fill="url(#{self.name}-scale)"/>\n')
        for x, y, level in self.figure.swatches:
            size = f'width="{_number(SWATCH)}" height="{_number(SWATCH)}"'
            if level != heat.HIDDEN:
                self.out.append(f'<rect x="{_number(x)}" y="{_number(y)}" {size} {self.ink.cell(level)}/>\n')
            elif self.figure.cells.crosses:
                self.crosses([(x + SWATCH / 2, y + SWATCH / 2)], 3.5)
            else:
                self.hatched(x, y, SWATCH, SWATCH)


def on_paper(figure: Figure, theme: heat.Theme) -> str:
    """A standalone document, with a background."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _Drawing(figure, _Ink(theme)).draw()


def in_page(figure: Figure, theme: heat.Theme | None) -> tuple[str, str]:
    """An element of a page, and the styles that it needs: those of a theme, or styles that follow the page."""
    ink = _Ink(theme) if theme else _PageInk()
    drawn = _Drawing(figure, ink).draw()
    return drawn, ink.styles() if isinstance(ink, _PageInk) else ""
