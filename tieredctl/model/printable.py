"""Names come from outside: what they may do to a terminal or a page."""

from __future__ import annotations


def printable(text: str) -> str:
    """A text in which nothing can move the cursor, colour a terminal or turn the direction of writing."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
