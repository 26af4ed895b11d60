import os
from collections.abc import Sequence
from typing import Any, Literal

__all__ = ["Picture", "show"]

class Picture:
    def __init__(self, drawn: Any, theme: str) -> None: ...
    def html(self) -> str: ...
    def svg(self) -> str: ...
    def png(self) -> bytes: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def _repr_html_(self) -> str: ...

def show(
    weights: Any,
    tokens: Sequence[Any] | None = None,
    *,
    key_tokens: Sequence[Any] | None = None,
    heads: Sequence[int] | None = None,
    head_titles: Sequence[str] | str | None = None,
    batch: int = 0,
    title: str | None = None,
    largest: float | None = None,
    scale: Literal["linear", "log"] = "linear",
    theme: Literal["auto", "light", "dark"] = "auto",
) -> Picture: ...
