"""Where a page goes: a file that is replaced in one step, unless it is something else than a page."""

from __future__ import annotations

from pathlib import Path

from tieredctl.process.replaced_file import READABLE_BY_ALL, demand_replaceable, replaced_file
from tieredctl.report.extra import demand_installed
from tieredctl.report.page import MARK, Page, html_of


def demand_possible(path: Path) -> None:
    """Raises TieredctlError now, before long work, where a page cannot be made or written there; leaves nothing."""
    demand_installed()
    demand_replaceable(path, force=False, own=MARK.encode())


def write_page(path: Path, page: Page) -> None:
    """Replaces the file in one step: nobody sees half a page. Raises TieredctlError."""
    html = html_of(page).encode()
    with replaced_file(path, force=False, own=MARK.encode(), mode=READABLE_BY_ALL) as file:
        file.write(html)
