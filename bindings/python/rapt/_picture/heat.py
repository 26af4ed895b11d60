"""From weights to colours: the colour table, and the scale that maps each weight to an entry of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Rgb = tuple[int, int, int]

# From bright to dark. Steps are perceptually uniform (in OKLab) and lightness falls monotonically, so that the order
# survives greyscale printing and every kind of colour blindness. On a light page a large weight is dark, on a dark page
# it is bright, so small weights are close to the page colour on both.
_STOPS = (
    "faf5d3f8edc0f6e4adf5db9bf4d18af3c67bf3bb6df3b060f3a554f2994af18e43ee8240ec763ee96b3ee55f40e05343da4948"
    "d2404dc83952be3356b32d5aa9285c9d245f922160862062791f626d1e61611d5f551c5c4a1b583e1a5333184d291645"
)

HIDDEN, NOT_FINITE, FIRST = 0, 1, 2  # levels that are not weights, and the level of the smallest weight
LEVELS = 254
LAST = FIRST + LEVELS - 1
_DECADES = 4  # of a logarithmic scale


def _table() -> list[Rgb]:
    stops = [bytes.fromhex(_STOPS[at : at + 6]) for at in range(0, len(_STOPS), 6)]
    colors: list[Rgb] = []
    for level in range(LEVELS):
        place = level * (len(stops) - 1) / (LEVELS - 1)
        low = min(int(place), len(stops) - 2)
        t = place - low
        red, green, blue = (round((1 - t) * a + t * b) for a, b in zip(stops[low], stops[low + 1]))
        colors.append((red, green, blue))
    return colors


@dataclass(frozen=True)
class Theme:
    paper: Rgb
    ink: Rgb
    quiet: Rgb  # numbers of tokens, ticks
    hatch: Rgb  # behind the cells; visible where a key is hidden
    cross: Rgb  # in a hidden cell
    colors: list[Rgb]  # by level; those of hidden and not finite first

    def on(self, level: int) -> Rgb:
        """A text colour that is legible on that level's colour."""
        red, green, blue = self.colors[level]
        bright = 0.299 * red + 0.587 * green + 0.114 * blue
        return (20, 18, 28) if bright > 135 else (255, 255, 255)


_NOT_FINITE = (30, 102, 255)  # blue: far from every colour of the table, with any colour vision
LIGHT = Theme((255, 255, 255), (32, 32, 38), (112, 112, 122), (222, 222, 228), (176, 176, 186),
              [(255, 255, 255), _NOT_FINITE, *_table()])
DARK = Theme((20, 20, 24), (232, 232, 238), (150, 150, 160), (56, 56, 64), (96, 96, 106),
             [(20, 20, 24), _NOT_FINITE, *reversed(_table())])


def hex_of(color: Rgb) -> str:
    return "#%02x%02x%02x" % color


def short(weight: float) -> str:
    """A weight in a cell, in the format of `rapt explain`: ".83", "1.0", or "·" if it rounds to zero."""
    if not math.isfinite(weight):
        return "NaN" if math.isnan(weight) else "inf"
    if weight == 0.0:
        return "×"
    if weight >= 0.995:
        return f"{weight:.1f}"
    return "·" if weight < 0.005 else f"{weight:.2f}"[1:]


@dataclass(frozen=True)
class Scale:
    largest: float
    log: bool

    def levels(self, row: Sequence[float]) -> bytes:
        """The level of each weight of a row. A weight above `largest` gets the last level."""
        if self.log:
            return bytes(self._log_level(weight) for weight in row)
        top, step = self.largest, (LEVELS - 1) / self.largest
        return bytes(
            HIDDEN if weight == 0.0
            else FIRST + int(weight * step + 0.5) if weight <= top
            else LAST if math.isfinite(weight)
            else NOT_FINITE
            for weight in row
        )

    def _log_level(self, weight: float) -> int:
        if weight == 0.0:
            return HIDDEN
        if not math.isfinite(weight):
            return NOT_FINITE
        place = min(1.0, max(0.0, 1.0 + math.log10(weight / self.largest) / _DECADES))
        return FIRST + int(place * (LEVELS - 1) + 0.5)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions along the scale, 0 … 1, and their labels."""
        if self.log:
            marks = [(1.0 - n / _DECADES, f"{self.largest * 10.0**-n:.2g}") for n in range(_DECADES, -1, -1)]
            return [(0.0, f"≤ {marks[0][1]}"), *marks[1:]]
        step = nice_step(self.largest / 5)
        places = [n * step for n in range(int(self.largest / step + 1e-9) + 1)]
        if self.largest - places[-1] > 0.4 * step:
            places.append(self.largest)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        texts = ["0"] + [f"{place:.{digits}f}" if place != self.largest else f"{place:.3g}" for place in places[1:]]
        return [(place / self.largest, text) for place, text in zip(places, texts)]


def nice_step(least: float) -> float:
    """The smallest number of the form 1, 2 or 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def shrink(rows: list[Sequence[float]], down: int, across: int) -> list[Sequence[float]]:
    """The largest of each block of `down` times `across` weights, or, if the block has one that is not finite, that
    weight."""
    if down == 1 and across == 1:
        return rows
    shrunk: list[Sequence[float]] = []
    for top in range(0, len(rows), down):
        block = rows[top : top + down]
        finite = all(math.isfinite(sum(row)) for row in block)
        tallest = list(map(max, *block)) if len(block) > 1 else list(block[0])
        if not finite:
            tallest = [next((row[j] for row in block if not math.isfinite(row[j])), w) for j, w in enumerate(tallest)]
        tallest += [0.0] * (-len(tallest) % across)
        widest = list(map(max, *(tallest[part::across] for part in range(across)))) if across > 1 else tallest
        if not finite:
            parts = [tallest[at : at + across] for at in range(0, len(tallest), across)]
            widest = [next((w for w in part if not math.isfinite(w)), max(part)) for part in parts]
        shrunk.append(widest)
    return shrunk
