"""Headless Chromium for the tests of pages: the browser of this machine, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str | None:
    """Return the path of a headless Chromium or Chrome, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Visit:
    """A page with a record of the errors that it logs and of the addresses that it asks for."""

    def __init__(self, page):
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note_message)
        page.on("request", lambda request: self._note_request(request.url))

    def open(self, address: str) -> None:
        """Go to an address, and forget what was recorded before."""
        self.errors.clear()
        self.requests.clear()
        self.page.goto(address)

    def _note_message(self, message) -> None:
        if message.type in ("error", "assert"):
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def _note_request(self, address: str) -> None:
        if not address.startswith(("data:", "blob:")):
            self.requests.append(address)


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    """The installed browser; ``tests/conftest.py`` skips these tests where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = driver.chromium.launch(
            executable_path=browser(), args=["--no-sandbox", "--disable-quic"]
        )
        yield program
        program.close()


@pytest.fixture
def visit(chromium) -> Iterator[Callable[..., Visit]]:
    """A function that returns a new page; its options are those of Playwright's ``new_page``."""
    opened = []

    def new(width: int = 1280, height: int = 1000, **options) -> Visit:
        opened.append(chromium.new_page(viewport={"width": width, "height": height}, **options))
        return Visit(opened[-1])

    yield new
    for page in opened:
        page.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder where tests keep pictures for people."""
    named = os.environ.get("BENCHMARK_TEST_ARTIFACTS")
    folder = Path(named) if named else ROOT / "results" / "test-artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
