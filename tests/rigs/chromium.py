"""Debian's Chromium, in which pages are opened as readers open them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.rigs.prerequisites import RigMissing

WIDE, PHONE = 1280, 375


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. Raises RigMissing where it is not installed."""
    program = shutil.which("chromium")
    if program is None:
        raise RigMissing("chromium is not installed")
    with sync_playwright() as playwright:
        # It may run as root, and where /dev/shm is small.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        with playwright.chromium.launch(executable_path=program, args=arguments) as browser:
            yield browser


@dataclass
class OpenPage:
    """A page, and what it said and asked for since it was opened."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    """Errors and warnings of its console, and exceptions."""
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, file: Path, *, width: int = WIDE, **context: Any) -> Iterator[OpenPage]:
    """A file as a page of its own; `context` is Playwright's, such as `color_scheme`."""
    with browser.new_context(viewport={"width": width, "height": 900}, **context) as own:
        found = OpenPage(own.new_page())
        found.page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(file.as_uri())
        yield found
