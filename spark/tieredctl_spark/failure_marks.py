"""How an error of a Python worker gets to the driver: as a line of the exception's text, the one thing that Spark
carries everywhere.

The line is ASCII, without what Spark's own templates of messages replace. Whoever can put a line into an exception's
text can write one: it names a registered code and two texts to be shown, and nothing else is taken from it.
"""

from __future__ import annotations

import json
import re

from tieredctl.errors import ErrorCode, TieredctlError

_PREFIX = "tieredctl-error: "
_MARK = re.compile(rf"^{_PREFIX}(?P<document>\{{.*\}})\s*$", re.MULTILINE)
_REPLACED_BY_SPARK = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>$"})
_LONGEST = 4_000
"""In characters, of either text."""


def mark(error: TieredctlError) -> str:
    """The line for an error: its code, message and hint."""
    texts = {"message": error.message[:_LONGEST], "hint": error.hint[:_LONGEST]}
    return _PREFIX + json.dumps({"code": error.code.value} | texts).translate(_REPLACED_BY_SPARK)


def marked_error(text: str) -> TieredctlError | None:
    """The error of the last line of an exception's text that is such a mark, which was raised last; None without a
    valid one."""
    found: TieredctlError | None = None
    for line in _MARK.finditer(text):
        found = _error(line["document"]) or found
    return found


def before_marks(text: str) -> str:
    """The text up to the first mark."""
    first = _MARK.search(text)
    return text if first is None else text[: first.start()]


def _error(document: str) -> TieredctlError | None:
    try:
        fields = json.loads(document)
        code, message, hint = ErrorCode(fields["code"]), fields["message"], fields["hint"]
    except (ValueError, KeyError, RecursionError):
        return None
    if not (isinstance(message, str) and isinstance(hint, str)):
        return None
    return TieredctlError(code, message[:_LONGEST], hint=hint[:_LONGEST])
