"""The page in a browser. A test fails if the page makes a network request, or logs an error or a warning.

    RAPT_PAGE   the file that `make explorer` builds       RAPT   the command, for results of the native engine
"""

import json
import os
import pathlib
import subprocess
import time

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = pathlib.Path(os.environ.get("RAPT_PAGE", ROOT / "build/explorer/rapt.html"))
COMMAND = os.environ.get("RAPT", str(ROOT / "build/release/rapt"))
LANGUAGES = ["en", "zh"]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        # No sandbox: tests may run as root in a container. Nothing but our own page is opened.
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
                                             args=["--no-sandbox", "--disable-background-networking",
                                                   "--enable-precise-memory-info"])
        yield browser
        browser.close()


# Delays every message to a worker by %d milliseconds.
SLOW = """
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function(...message) { setTimeout(() => post.apply(this, message), %d); };
"""


class Opened:
    """Pages that a test opened, and their errors. `slow`: the delay of each message to a worker, in milliseconds."""

    def __init__(self, browser):
        self.browser = browser
        self.contexts = []
        self.wrong = []

    def __call__(self, address="", *, width=1280, height=900, dark=False, path=PAGE, slow=0, **context):
        context = self.browser.new_context(viewport={"width": width, "height": height},
                                           color_scheme="dark" if dark else "light", accept_downloads=True, **context)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self.notice(request.url))
        if slow:
            page.add_init_script(SLOW % slow)
        page.goto(f"file://{path}{address}")
        page.wait_for_selector("main h1")
        return page

    def notice(self, url):
        if not url.startswith(("file://", "blob:", "data:")):
            self.wrong.append(f"asks for {url}")


def until(page, expression, seconds=30):
    """Waits until a JavaScript expression is true. (The page forbids eval, which wait_for_function uses.)"""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        page.wait_for_timeout(20)


@pytest.fixture
def page_at(browser):
    opened = Opened(browser)
    yield opened
    for context in opened.contexts:
        context.close()
    assert not opened.wrong


@pytest.fixture(scope="session")
def rapt():
    """The output of the native command with --json."""

    def run(*arguments):
        result = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True)
        return json.loads(result.stdout)

    return run
