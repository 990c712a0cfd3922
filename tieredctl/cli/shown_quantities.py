"""Numbers of bytes, moments and ages as tables show them to people; `-o wide` has them as they are."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.output import Item, TableColumn
from tieredctl.model.quantities import age_text, size_text, time_ms


def size_column(
    value: str | Callable[[Item], object], heading: str = "SIZE", *, wide: bool = False, importance: int = 1
) -> TableColumn:
    """Bytes, with a unit."""
    return TableColumn(heading, value, wide, shown_size, importance)


def moment_column(heading: str, field: str, *, wide: bool = False) -> TableColumn:
    """A moment (ISO 8601, or milliseconds since the epoch), by how long ago it was."""
    return TableColumn(heading, field, wide, ago)


def ago(moment: str | int) -> str:
    """`15h ago`; `in 2h` where clocks differ."""
    age_ms = clock_ms() - (time_ms(moment) if isinstance(moment, str) else moment)
    return f"{age_text(age_ms)} ago" if age_ms > -1000 else f"in {age_text(age_ms)}"


def shown_age(age_ms: object) -> str:
    """An age with its unit; what is not a number is shown as it is."""
    return age_text(age_ms) if isinstance(age_ms, int) else str(age_ms)


def shown_size(size: object) -> str:
    """A size with its unit; a negative one is that of an event, and tells nothing."""
    if not isinstance(size, int):
        return str(size)
    return "unknown" if size < 0 else size_text(size)
