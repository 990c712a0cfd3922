"""Which Kafka release runs: as the user states, or as far as a broker's features show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kafka_settings import metadata_version_line
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity

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
    parsed = Release(int(match[1]), int(match[2]), None if match[3] is None else int(match[3]))
    last = _LAST_PATCH_OF_LINE.get(parsed.line)
    if last is None:
        lines = [f"{major}.{minor}" for major, minor in (min(_LAST_PATCH_OF_LINE), max(_LAST_PATCH_OF_LINE))]
        hint = f"This tieredctl knows lines {lines[0]} to {lines[1]}."
        raise TieredctlError(ErrorCode.USAGE, f"This tieredctl knows no Kafka release {text}.", hint=hint)
    if parsed.patch is not None and parsed.patch > last + (parsed.line in _STILL_PATCHED):
        line = f"{parsed.major}.{parsed.minor}"
        hint = f"The last known one of this line is {line}.{last}; {line} alone means the line."
        raise TieredctlError(ErrorCode.USAGE, f"This tieredctl knows no Kafka release {text}.", hint=hint)
    return parsed


def release_of_metadata_version(level: int) -> Release | None:
    """The line of a broker by the greatest level of metadata.version that it supports; None where it is unknown."""
    line = metadata_version_line(level)
    return None if line is None else Release(*line)


class Presence(Enum):
    """Whether a release has a bug; only its line may be known."""

    NO = "no"
    PERHAPS = "perhaps"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A Kafka issue, and the first release of each line that has the fix; all later lines have it."""

    issue: str
    meaning: str
    fixed_in: tuple[Release, ...]
    deletes_by_size: bool = False
    """True where it deletes data that a topic's retention.bytes should keep."""

    def presence(self, release: Release) -> Presence:
        if not self.fixed_in:
            return Presence.PERHAPS
        if release.line > self.fixed_in[-1].line:
            return Presence.NO
        fixed = next((fix for fix in self.fixed_in if fix.line == release.line), None)
        if fixed is None:
            return Presence.YES
        if not fixed.patch:
            return Presence.NO
        if release.patch is None:
            return Presence.PERHAPS
        return Presence.YES if release.patch < fixed.patch else Presence.NO


KNOWN_BUGS = (
    KnownBug("KAFKA-15632", "events that the state machine does not allow are accepted", (Release(3, 7, 0),)),
    KnownBug("KAFKA-16511", "segments are never deleted from remote storage", (Release(3, 7, 1), Release(3, 8, 0))),
    KnownBug("KAFKA-16105", "a reassignment of a tiered partition gets stuck", (Release(3, 7, 1), Release(3, 8, 0))),
    KnownBug("KAFKA-16890", "a wrong log start offset where segments overlap", (Release(3, 8, 0),)),
    KnownBug("KAFKA-16711", "a tiered partition cannot be moved between log directories", (Release(3, 8, 0),)),
    KnownBug(
        "KAFKA-17062",
        "copies that failed stay in COPY_SEGMENT_STARTED, and their objects in the store",
        (Release(3, 8, 1), Release(3, 9, 0)),
    ),
    KnownBug("KAFKA-17995", "a very large retention.ms stops the cleaning", (Release(3, 9, 1), Release(4, 0, 0))),
    KnownBug("KAFKA-17801", "aborted transactions are read wrongly", (Release(3, 9, 1), Release(4, 0, 0))),
    KnownBug("KAFKA-16780", "read_committed searches many transaction indexes needlessly", (Release(4, 0, 0),)),
    KnownBug("KAFKA-19425", "the remote log metadata manager may fail to start", (Release(4, 2, 0),)),
    KnownBug("KAFKA-19530", "metrics show a tiering lag that does not exist", (Release(4, 2, 0),)),
    KnownBug("KAFKA-19523", "a follower fails to build its auxiliary state", (Release(4, 2, 0),)),
    KnownBug("KAFKA-14915", "a fetch reads one partition from remote storage at a time", (Release(4, 2, 0),)),
    KnownBug(
        "KAFKA-20732",
        "after a leader change sizes count twice, and data that retention.bytes keeps is deleted",
        (Release(4, 3, 2),),
        deletes_by_size=True,
    ),
    KnownBug("KAFKA-15401", "a corrupt index may be copied to remote storage", ()),
)
"""In the order of their fixes."""


def bug_findings(release: Release, *, has_size_retention: bool) -> Iterator[Finding]:
    """The known bugs of a release. A warning where the release certainly has it; also where it may have it, and the bug
    deletes data of this cluster (`has_size_retention`: some tiered topic has retention.bytes). Else info."""
    for bug in KNOWN_BUGS:
        presence = bug.presence(release)
        if presence is not Presence.NO:
            harmful = presence is Presence.YES and (has_size_retention or not bug.deletes_by_size)
            threatened = presence is Presence.PERHAPS and bug.deletes_by_size and has_size_retention
            severity = Severity.WARNING if harmful or threatened else Severity.INFO
            yield Finding(
                FindingCode.RELEASE_BUG, bug.issue, _sentence(bug, presence, release), _evidence(bug, release), severity
            )


def _sentence(bug: KnownBug, presence: Presence, release: Release) -> str:
    if not bug.fixed_in:
        return f"{bug.meaning}; no release is confirmed to fix it"
    fixed = " and ".join(map(str, bug.fixed_in))
    if presence is Presence.PERHAPS:
        return f"{bug.meaning}; fixed in {fixed}, and brokers do not report which {release} they run (--kafka-version)"
    return f"{bug.meaning}; fixed in {fixed}"


def _evidence(bug: KnownBug, release: Release) -> dict[str, object]:
    fixed_in = next((str(fix) for fix in bug.fixed_in if fix.line >= release.line), None)
    evidence: dict[str, object] = {"issue": bug.issue, "release": str(release)}
    if fixed_in is None:
        return evidence | {"command": f"tieredctl explain-code {FindingCode.RELEASE_BUG}"}
    return evidence | {"fixedIn": fixed_in, "command": f"tieredctl doctor upgrade {release} {fixed_in}"}
