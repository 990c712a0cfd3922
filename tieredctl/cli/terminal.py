"""What the stream that people read can show: how wide it is, whether it has colours, and whether it has blocks."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from tieredctl.errors import ErrorCode, TieredctlError

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_COERCED = "C.UTF-8"
"""What Python makes of LC_CTYPE in a C locale (PEP 538)."""
_BLOCKS = "\u2588\u2590\u2592\u2591\u2550\u2584\u258f\u25b2"
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


def demand_stdout(what: str) -> None:
    """Raises TieredctlError `unwritable` where the shell closed stdout, so that `main` opened the null device in its
    place. For commands whose product is what they write there: `what` would be lost, and nobody would notice."""
    if getattr(sys.stdout, "name", None) == os.devnull:
        hint = "Redirect it to a file, or to /dev/null."
        raise TieredctlError(ErrorCode.UNWRITABLE, f"stdout is closed: {what} cannot be written.", hint=hint)


def has_colours(stream: TextIO) -> bool:
    """Whether it is a terminal, and nobody wants to do without (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def severity_shown(label: str, stream: TextIO) -> str:
    """A severity, in its colour where there are colours."""
    return f"{_SEVERITIES[label]}{label}{_PLAIN}" if has_colours(stream) else label


def emphasized(text: str, stream: TextIO) -> str:
    """The line that matters most."""
    return f"{_BOLD}{text}{_PLAIN}" if has_colours(stream) else text


def has_blocks(stream: TextIO) -> bool:
    """Whether bars may be of blocks rather than of ASCII: not in a C locale, and not where they cannot be encoded."""
    variables = {name: os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")}
    if variables["LC_CTYPE"] == _COERCED:
        del variables["LC_CTYPE"]
    locale = next(filter(None, variables.values()), "C")
    try:
        _BLOCKS.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return locale not in ("C", "POSIX")


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Text in a colour, such as `31`, where there are colours."""
    return f"\x1b[{colour}m{text}{_PLAIN}" if has_colours(stream) else text
