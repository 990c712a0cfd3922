"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.rigs.availability import rig_unavailable
from tests.rigs.chromium import chromium
from tests.rigs.prerequisites import RigMissing


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    try:
        started = chromium()
        with started as running:
            yield running
    except RigMissing as missing:
        rig_unavailable(str(missing))
