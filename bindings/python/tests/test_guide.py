"""Runs every Python block of README.md and docs/guide, and compares what it prints with what the page shows.

tests/guide/blocks.py describes the format of a page. The blocks of a page run one after the other, in a temporary
folder.
"""

import contextlib
import importlib.util
import io
import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "guide"))
import blocks  # found by the line above

# Optional packages: if one is missing, blocks that import it are skipped, and so are those that follow.
OPTIONAL = ("torch", "jax", "safetensors", "matplotlib", "transformers", "onnx")


def python_blocks():
    pages = blocks.read_pages(ROOT)
    mine = {page: [b for b in found if b.language == "python" and not b.why_not_run] for page, found in pages.items()}
    return {page: found for page, found in mine.items() if found}


PAGES = python_blocks()


def missing_in(text):
    imported = re.findall(r"^\s*(?:import|from) (\w+)", text, re.M)
    return [name for name in imported if name in OPTIONAL and importlib.util.find_spec(name) is None]


def run(block, names):
    """What a block prints. Errors name the lines of the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(ROOT / block.page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAPT_SOURCE", str(ROOT))
    names, skipped = {"__name__": "__main__"}, []
    for block in PAGES[page]:
        missing = missing_in(block.text)
        if missing:
            skipped += missing
            continue
        try:
            printed = run(block, names)
        except NameError:
            if skipped:
                continue  # it continues a block that was skipped
            raise
        wrong = blocks.complaint(block, printed)
        assert wrong is None, wrong
    if skipped:
        pytest.skip(f"blocks that need {', '.join(sorted(set(skipped)))}, which is not installed")


def test_there_are_blocks_to_run():
    assert "README.md" in PAGES
    assert "docs/guide/python.md" in PAGES


@pytest.mark.parametrize("code, shown", [("x = 1 / 0\n", None), ("print(1)\n", "2\n")])
def test_what_is_wrong_is_noticed(code, shown):
    block = blocks.Block("page.md", 1, "python", code, expected=shown)
    with pytest.raises((ZeroDivisionError, AssertionError)):
        assert blocks.complaint(block, run(block, {})) is None
