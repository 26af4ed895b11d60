"""A picture as HTML: a part of a notebook, or a standalone page."""

from __future__ import annotations

from html import escape

from . import heat, svg
from .figure import Figure

# One of --l and --d is "initial", the other is empty, so that `fill:var(--l,red)var(--d,blue)` is red or blue. A
# notebook (JupyterLab, VS Code, Colab) chooses between them; elsewhere the reader's system does.
_LIGHT, _DARK = "{--l:initial;--d: ;}", "{--l: ;--d:initial;}"
_DARK_PAGES = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast", 'html[theme="dark"]')
_LIGHT_PAGES = ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]')
_SWITCH = (
    f".rapt-picture{_LIGHT}"
    f"@media (prefers-color-scheme:dark){{.rapt-picture{_DARK}}}"
    f"{','.join(f'{page} .rapt-picture' for page in _LIGHT_PAGES)}{_LIGHT}"
    f"{','.join(f'{page} .rapt-picture' for page in _DARK_PAGES)}{_DARK}"
    ".rapt-picture .light{display:var(--l,inline)var(--d,none)!important}"
    ".rapt-picture .dark{display:var(--l,none)var(--d,inline)!important}"
)
_SHAPE = ".rapt-picture svg{max-width:100%;height:auto}"


def part(figure: Figure, theme: heat.Theme | None) -> str:
    """An element to be put into any page."""
    drawn, styles = svg.in_page(figure, theme)
    switch = "" if theme else _SWITCH
    paper = f' style="background:{heat.hex_of(theme.paper)}"' if theme else ""
    return f'<div class="rapt-picture"{paper}><style>{_SHAPE}{switch}{styles}</style>\n{drawn}</div>\n'


def whole(figure: Figure, theme: heat.Theme | None) -> str:
    """A standalone page, light or dark by the reader's preference, unless a theme is given."""
    fixed = theme or heat.LIGHT
    colors = f"background:{heat.hex_of(fixed.paper)};color:{heat.hex_of(fixed.ink)}"
    styles = f"body{{margin:24px;font-family:system-ui,sans-serif;{colors}}}"
    if theme is None:
        dark = f"background:{heat.hex_of(heat.DARK.paper)};color:{heat.hex_of(heat.DARK.ink)}"
        styles += f":root{{color-scheme:light dark}}@media (prefers-color-scheme:dark){{body{{{dark}}}}}"
    title = escape(figure.data.title or "Attention weights")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{styles}</style>\n</head>\n<body>\n{part(figure, theme)}</body>\n</html>\n"
    )
