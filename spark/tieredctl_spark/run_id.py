"""The name of a run."""

from __future__ import annotations

from datetime import UTC, datetime
from secrets import token_hex

_TIME = "%Y%m%dT%H%M%SZ"


def new_run_id() -> str:
    """By its time, so that the runs in a folder are listed in their order, and unlike any other."""
    return f"{datetime.now(UTC):{_TIME}}-{token_hex(3)}"


def is_run_id(name: str) -> bool:
    """Whether a run may have this name: a folder of others may have any."""
    try:
        began_at(name)
    except ValueError:
        return False
    return True


def began_at(run: str) -> datetime:
    """When the run of that name began. Raises ValueError for what is no run's."""
    return datetime.strptime(run.partition("-")[0], _TIME).replace(tzinfo=UTC)
