"""Which Kafka release runs: as the user states, or as far as a broker's features show."""

from __future__ import annotations

import re
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kafka_settings import metadata_version_line

_RELEASE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})(?:\.([0-9]{1,3}))?")

_LAST_PATCH_OF_LINE = {
    (2, 0): 1,
    (2, 1): 1,
    (2, 2): 2,
    (2, 3): 1,
    (2, 4): 1,
    (2, 5): 1,
    (2, 6): 3,
    (2, 7): 2,
    (2, 8): 2,
    (3, 0): 2,
    (3, 1): 2,
    (3, 2): 3,
    (3, 3): 2,
    (3, 4): 1,
    (3, 5): 2,
    (3, 6): 2,
    (3, 7): 2,
    (3, 8): 1,
    (3, 9): 2,
    (4, 0): 2,
    (4, 1): 2,
    (4, 2): 2,
    (4, 3): 1,
    (4, 4): 0,
}
"""All Kafka releases on Maven Central in November 2026: each line has every patch from 0 to this."""
_STILL_PATCHED = sorted(_LAST_PATCH_OF_LINE)[-3:]
"""Kafka's three latest lines get further patches; the next one is named where it fixes a bug."""


class Release(NamedTuple):
    """A release, or a line of releases where the patch is unknown: brokers do not report it."""

    major: int
    minor: int
    patch: int | None = None

    @property
    def line(self) -> tuple[int, int]:
        return self.major, self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + ("" if self.patch is None else f".{self.patch}")


def release(text: str) -> Release:
    """`3.9.1`, or `3.9` for a line. Raises TieredctlError `usage`, also for a release that does not exist."""
    match = _RELEASE.fullmatch(text)
    if match is None:
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a Kafka release.", hint="For example 3.9.1, or 3.9.")
    found = Release(int(match[1]), int(match[2]), None if match[3] is None else int(match[3]))
    last = _LAST_PATCH_OF_LINE.get(found.line)
    if last is None:
        lines = [f"{major}.{minor}" for major, minor in (min(_LAST_PATCH_OF_LINE), max(_LAST_PATCH_OF_LINE))]
        hint = f"This tieredctl knows lines {lines[0]} to {lines[1]}."
        raise TieredctlError(ErrorCode.USAGE, f"This tieredctl knows no Kafka release {text}.", hint=hint)
    if found.patch is not None and found.patch > last + (found.line in _STILL_PATCHED):
        line = f"{found.major}.{found.minor}"
        hint = f"The last known one of this line is {line}.{last}; {line} alone means the line."
        raise TieredctlError(ErrorCode.USAGE, f"This tieredctl knows no Kafka release {text}.", hint=hint)
    return found


def release_of_metadata_version(level: int) -> Release | None:
    """The line of a broker by the greatest level of metadata.version that it supports; None where it is unknown."""
    line = metadata_version_line(level)
    return None if line is None else Release(*line)
