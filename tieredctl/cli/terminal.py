"""What the stream that people read can show: how wide it is, and whether it has colours."""

from __future__ import annotations

import os
from typing import TextIO

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_SEVERITIES = {"critical": "\x1b[1;31m", "error": "\x1b[31m", "warning": "\x1b[33m", "info": "\x1b[36m"}


def width_of(stream: TextIO) -> int | None:
    """Columns of the terminal; what COLUMNS says counts for a pipe too. None where lines may be as long as they are."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns[:6]) > 0:
        return int(columns[:6])
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def has_colours(stream: TextIO) -> bool:
    """Whether it is a terminal, and nobody wants to do without (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def severity_shown(label: str, stream: TextIO) -> str:
    """A severity, in its colour where there are colours."""
    return f"{_SEVERITIES[label]}{label}{_PLAIN}" if has_colours(stream) else label


def emphasized(text: str, stream: TextIO) -> str:
    """The line that matters most."""
    return f"{_BOLD}{text}{_PLAIN}" if has_colours(stream) else text
