"""Whether a page shows what a command prints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

CUT = "…"
ID = r"(?<![\w/-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[A-Za-z0-9_-]{22}(?![\w-])"
"""A cluster's, a topic's or a segment's, where it stands alone."""
_FIGURE = r"-?\d[\d.,]*(?: ?(?:B|KiB|MiB|GiB|ms|s|min|h|d)\b)?"
_PIECES = re.compile(rf"(?P<cut>{CUT})|(?P<id>{ID})|(?P<figure>{_FIGURE})|(?P<blanks>^ +| {{2,}})")
_ANY_LINES = r"(?:[^\n]*\n)*?"


def shows(said: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether these lines, some of them cut, are the ones printed."""
    return _compared(said, printed, exactly=True, ids={}) is not None


def shows_alike(said: Sequence[str], printed: Sequence[str], ids: dict[str, str]) -> bool:
    """The same where a cluster has lived another life: figures and the width of columns may differ, and ids have become
    others, but always the same. `ids` learns which."""
    found = _compared(said, printed, exactly=False, ids=ids)
    ids.update(found or {})
    return found is not None


def _compared(
    said: Sequence[str], printed: Sequence[str], *, exactly: bool, ids: Mapping[str, str]
) -> dict[str, str] | None:
    """None where they differ, else what ids stand for."""
    groups: dict[str, str] = {}
    pattern = "".join(
        _ANY_LINES if line.strip() == CUT else f"{_pattern(line, exactly, ids, groups)}\n" for line in said
    )
    match = re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed))
    return match and {id_: match[group] for id_, group in groups.items()}


def _pattern(line: str, exactly: bool, ids: Mapping[str, str], groups: dict[str, str]) -> str:
    def piece(found: re.Match[str]) -> str:
        if found["cut"]:
            return r"[^\n]*"
        if exactly:
            return re.escape(found[0])
        if found["id"]:
            return _id(found[0], ids, groups)
        if found["figure"]:
            return _FIGURE
        return " +" if found.start() else " *"

    pattern, end = "", 0
    line = line.rstrip()
    for found in _PIECES.finditer(line):
        pattern += re.escape(line[end : found.start()]) + piece(found)
        end = found.end()
    return pattern + re.escape(line[end:])


def _id(said: str, ids: Mapping[str, str], groups: dict[str, str]) -> str:
    if said in ids:
        return re.escape(ids[said])
    if said in groups:
        return f"(?P={groups[said]})"
    groups[said] = f"id_{len(groups)}"
    return f"(?P<{groups[said]}>{ID})"
