#!/usr/bin/env python3
"""Creates the pictures of the READMEs: the explorer and the terminal, in both languages.

    build/explorer-venv/bin/python scripts/pictures.py build/explorer/rapt.html build/release/rapt docs/pictures

`make pictures` also builds the page and the command.
"""

import html
import os
import pathlib
import re
import subprocess
import sys

from playwright.sync_api import sync_playwright

# The first 16 of xterm's colours; a cube of 6 × 6 × 6 and 24 greys follow.
BASIC = "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff".split()
CUBE = (0, 95, 135, 175, 215, 255)
LINES = 46


def color(number):
    if number < 16:
        return f"#{BASIC[number]}"
    if number < 232:
        place = number - 16
        return "#" + "".join(f"{CUBE[each]:02x}" for each in (place // 36, place // 6 % 6, place % 6))
    return "#" + f"{8 + 10 * (number - 232):02x}" * 3


def style_of(codes):
    """The CSS of one escape sequence; in the command's output, sequences are independent of each other."""
    numbers = [int(each or 0) for each in codes.split(";")]
    style = []
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48) and numbers[:1] == [5]:
            style.append(f"{'color' if code == 38 else 'background'}: {color(numbers[1])}")
            numbers = numbers[2:]
        elif code == 1:
            style.append("font-weight: bold")
        elif code == 2:
            style.append("opacity: 0.65")
        elif 30 <= code <= 37:
            style.append(f"color: {color(code - 30)}")
    return "; ".join(style)


def as_html(text):
    parts = re.split("\x1b\\[([0-9;]*)m", text)
    spans = [html.escape(parts[0])]
    for codes, words in zip(parts[1::2], parts[2::2]):
        style = style_of(codes)
        spans.append(f'<span style="{style}">{html.escape(words)}</span>' if style else html.escape(words))
    return "".join(spans)


def terminal_page(command, lang):
    result = subprocess.run([command, "explain", "--lang", lang, "--color", "always"], capture_output=True, text=True,
                            check=True, env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color"})
    # The middle of the walk: scores, softmax and what each head attends to.
    lines = result.stdout.splitlines()
    begin = next(n for n, line in enumerate(lines) if "softmax" in line and "──" in line)
    shown = lines[begin:begin + LINES]
    prompt = f"$ rapt explain{' --lang zh' if lang == 'zh' else ''}\n…\n"
    return f"""<!doctype html><meta charset=utf-8><style>
        body {{ margin: 0; background: #16181d; }}
        pre {{ margin: 0; padding: 20px 24px; color: #e6e6e6; display: inline-block;
               font: 15px/1.3 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace; }}
        </style><pre>{html.escape(prompt)}{as_html(chr(10).join(shown))}</pre>"""


def main():
    page_file, command, folder = sys.argv[1:]
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
                                             args=["--no-sandbox", "--disable-background-networking"])
        for lang in ("en", "zh"):
            suffix = "" if lang == "en" else "-zh"
            page = browser.new_page(viewport={"width": 1200, "height": 1010})
            page.goto(f"file://{pathlib.Path(page_file).resolve()}#walk?lang={lang}&step=sum&head=1")
            page.wait_for_selector("table[aria-label='out[1]']")
            page.locator("table[aria-label='out[1]'] [data-cell='4,2']").hover()
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=out / f"explorer{suffix}.png")
            page.set_viewport_size({"width": 1000, "height": 900})
            page.set_content(terminal_page(command, lang))
            page.locator("pre").screenshot(path=out / f"terminal{suffix}.png")
            page.close()
        browser.close()
    for path in sorted(out.glob("*.png")):
        print(f"{path}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
