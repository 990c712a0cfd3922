"""What a finding may be: a row of the table of codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tieredctl.model.finding_codes import FindingCode


class Severity(IntEnum):
    """How bad a finding is. `critical` means that data is lost, altered or contradicted."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of the table of codes. `remedy` is a command that shows more or repairs; {segmentId}, {topic} and
    {partition} in it are filled from the finding's evidence where that has them."""

    code: FindingCode
    severity: Severity
    meaning: str
    remedy: str
    incomplete: bool = False
    """True where the finding means that not everything could be checked."""
    altered: bool = False
    """True where the finding, about an object of the remote store, proves that the object was altered."""
