"""A picture of weights as text: the tooltip of a cell, and a description of the whole for screen readers."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from . import names
from .figure import Data, Figure, Panel


def _of_head(panel: Panel) -> str:
    return f"{panel.title} · " if panel.title else ""


def cell(data: Data, panel: Panel, i: int, j: int) -> str:
    """`head 0 · query 4 “cat” → key 2 “the”: 0.8312`"""
    weight = panel.weights[i][j]
    value = "hidden, exactly 0" if weight == 0.0 else f"{weight:.4g}"
    return f"{_of_head(panel)}query {names.quoted(data.queries, i)} → key {names.quoted(data.keys, j)}: {value}"


def row(data: Data, panel: Panel, first: int, count: int) -> str:
    """The largest weights of a row of an image: `head 0 · query 4 “cat” → key 2 “the” 0.83, key 0 “if” 0.1`"""
    best: dict[int, float] = {}
    for weights in panel.weights[first : first + count]:
        for j in heapq.nlargest(3, range(len(weights)), key=_finite(weights).__getitem__):
            if weights[j] > best.get(j, 0.0):
                best[j] = weights[j]
    most = sorted(best.items(), key=lambda item: -item[1])[:3]
    keys = ", ".join(f"key {names.quoted(data.keys, j)} {weight:.2g}" for j, weight in most)
    if count == 1:
        return f"{_of_head(panel)}query {names.quoted(data.queries, first)} → {keys or 'no key'}"
    return f"{_of_head(panel)}queries {first} … {first + count - 1} → {keys or 'no key'}"


def _finite(weights: Sequence[float]) -> Sequence[float]:
    if math.isfinite(sum(weights)):
        return weights
    return [weight if math.isfinite(weight) else 0.0 for weight in weights]


def picture(figure: Figure) -> str:
    """A description for screen readers: the picture's sizes, and what each head attends to most."""
    data = figure.data
    heads = f"{len(data.weights)} heads, " if len(data.weights) > 1 else ""
    parts = [f"Attention weights: {heads}{data.rows} queries (rows) and {data.columns} keys (columns)."]
    for panel in figure.panels[:16]:
        most = [max(_finite(weights)) for weights in panel.weights]
        i = most.index(max(most))
        j = list(_finite(panel.weights[i])).index(most[i])
        where = f"query {names.quoted(data.queries, i)} gives {most[i]:.3g} to key {names.quoted(data.keys, j)}"
        parts.append(f"Most{' in ' + panel.title if panel.title else ''}: {where}.")
    return " ".join(parts)
