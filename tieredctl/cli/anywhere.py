"""The options that may be anywhere in the line, and are read before it is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError

NO_COLOR = "--no-color"
CONTEXT = "--context"
VERBOSE = ("-v", "--verbose")
DEBUG = "--debug"
_ANYWHERE = (NO_COLOR, CONTEXT, VERBOSE[-1], DEBUG)
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
    """Takes these options out, up to `--`. Raises TieredctlError `usage` for --context without a name, and for one of
    them given twice."""
    left: list[str] = []
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        name = VERBOSE[-1] if name in VERBOSE else name
        if word == "--":
            left += [word, *rest]
        elif name not in _ANYWHERE or (equals and name != CONTEXT):
            left.append(word)
        elif name in options:
            raise given_twice(name)
        else:
            options[name] = value if equals or name != CONTEXT else next(rest, "")
    if options.get(CONTEXT) == "":
        raise TieredctlError(ErrorCode.USAGE, f"{CONTEXT} needs a context's name.", hint=_CONTEXTS_HINT)
    return Line(left, options.get(CONTEXT), VERBOSE[-1] in options, DEBUG in options)


def given_twice(option: str) -> TieredctlError:
    """What is said of an option that does not repeat."""
    return TieredctlError(ErrorCode.USAGE, f"{option} is given more than once.", hint="Give it once.")
