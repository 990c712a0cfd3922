"""Where a page goes: a file that is replaced in one step, unless it is something else than a page."""

from __future__ import annotations

from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.replaced_file import READABLE_BY_ALL, demand_replaceable, replaced_file
from tieredctl.report.extra import demand_installed
from tieredctl.report.page import MARK, Page, html_of


def demand_possible(path: Path) -> None:
    """Raises TieredctlError now, before long work, where a page cannot be made or written there; leaves nothing."""
    demand_installed()
    _demand_own(path)
    demand_replaceable(path)


def write_page(path: Path, page: Page) -> None:
    """Replaces the file in one step: nobody sees half a page. Raises TieredctlError."""
    html = html_of(page).encode()
    _demand_own(path)
    with replaced_file(path, mode=READABLE_BY_ALL) as file:
        file.write(html)


def _demand_own(path: Path) -> None:
    """A page may take the place of an older one, and of nothing else: a plan, a configuration."""
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            beginning = file.read(len(MARK.encode()))
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be written: {error.strerror}.") from None
    if beginning not in (b"", MARK.encode()):
        message = f"{path} exists and is not a page by tieredctl."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Name another file, or remove this one.")
