"""The options that may be anywhere in the line, and are read before it is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError

NO_COLOR = "--no-color"
CONTEXT = "--context"
VERBOSE = ("-v", "--verbose")
DEBUG = "--debug"
_CONTEXTS_HINT = "`tieredctl context list` shows them."


class Line(NamedTuple):
    """A command line."""

    words: list[str]
    """What is left of it for the command."""
    context: str | None = None
    """What --context names."""
    is_verbose: bool = False
    is_debugged: bool = False


def read_line(words: Sequence[str]) -> Line:
    """Takes these options out, up to `--`. Raises TieredctlError `usage` for --context without a name."""
    left: list[str] = []
    context, is_verbose, is_debugged = None, False, False
    rest = iter(words)
    for word in rest:
        if word == "--":
            left += [word, *rest]
        elif word == CONTEXT or word.startswith(f"{CONTEXT}="):
            context = next(rest, "") if word == CONTEXT else word.partition("=")[2]
            if not context:
                raise TieredctlError(ErrorCode.USAGE, f"{CONTEXT} needs a context's name.", hint=_CONTEXTS_HINT)
        elif word in VERBOSE:
            is_verbose = True
        elif word == DEBUG:
            is_debugged = True
        elif word != NO_COLOR:
            left.append(word)
    return Line(left, context, is_verbose, is_debugged)
