"""The time that a server gives in its answers."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def date_ms(headers: Mapping[str, str]) -> int | None:
    """The header `Date` (RFC 9110, 6.6.1), in ms since the epoch; None where there is none, or it is not one."""
    text = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        return int(parsedate_to_datetime(text).timestamp() * 1_000)
    except (OverflowError, ValueError):
        return None
