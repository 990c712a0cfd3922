"""What a finding may be: a row of the table of codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import AnyFindingCode


class Severity(IntEnum):
    """How bad a finding is. `critical` means that data is lost, altered or contradicted."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3

    @property
    def label(self) -> str:
        return self.name.lower()


_NAMES = {
    Severity.CRITICAL: ("critical", "critical"),
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INFO: ("informational", "informational"),
}


def severities_text(counts: Mapping[Severity, int]) -> str:
    """How many findings there are of each severity, the gravest first; empty where there are none."""
    ordered = sorted(counts.items(), reverse=True)
    return ", ".join(counted(count, *_NAMES[severity]) for severity, count in ordered if count)


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of the table of codes. `remedy` is a command that shows more or repairs; {segmentId}, {topic} and
    {partition} in it are filled from the finding's evidence where that has them."""

    code: AnyFindingCode
    severity: Severity
    meaning: str
    remedy: str
    incomplete: bool = False
    """True where the finding means that not everything could be checked."""
    altered: bool = False
    """True where the finding, about an object of the remote store, proves that the object was altered."""
    moving: bool = False
    """True where it compares two sources that move: it is said only if a second look makes it too
    (`ops/guards/second_look.py`)."""
    many: str = ""
    """What several of them are: "objects that …"; empty where that is said of each alone."""
    remedy_of_segment: str | None = None
    """The remedy where it is about a segment in the remote store, if another."""
    remedy_of_index: str | None = None
    """The remedy where it is about a segment's index, if another."""

    def makes_incomplete(self, severity: Severity) -> bool:
        """Whether a finding of this kind means that not everything could be checked."""
        return self.incomplete and severity is not Severity.INFO

    def count_text(self, count: int) -> str:
        """What so many of them are, to people."""
        return f"{count} {self.many}" if self.many else f"{count} times: {self.meaning}"
