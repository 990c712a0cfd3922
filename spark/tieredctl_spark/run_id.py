"""The name of a run."""

from __future__ import annotations

from datetime import UTC, datetime
from secrets import token_hex


def new_run_id() -> str:
    """By its time, so that the runs in a folder are listed in their order, and unlike any other."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(3)}"
