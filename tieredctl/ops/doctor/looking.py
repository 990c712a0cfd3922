"""What a check asks for, and what it did not get: for `doctor`, and for what looks without its checks, as `status`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding

METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS = "the metadata topic's settings", "topic settings"
METADATA_RECORDS, OFFSETS, GROUPS = "the records of the metadata topic", "offsets of topics", "consumer groups"
"""Their names in findings."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Looking:
    """Records what could not be checked, and why."""

    findings: list[Finding] = field(default_factory=list)

    def at(self, what: str, ask: Callable[[], _Answer]) -> _Answer | None:
        """The answer; None where the cluster refuses it or does not give it, or the topic was deleted meanwhile, of
        which there is nothing to record."""
        try:
            return ask()
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                self.note(what, error)
            return None

    def where_allowed(self, what: str, ask: Callable[[], _Answer]) -> _Answer | None:
        """The answer; None where the user may not ask this. Raises TieredctlError where there is no answer."""
        try:
            return ask()
        except TieredctlError as error:
            if error.code is not ErrorCode.BROKER_REFUSED:
                raise
            self.note(what, error)
            return None

    def note(self, what: str, error: TieredctlError) -> None:
        self.findings.append(Finding(FindingCode.CHECK_NOT_MADE, what, f"{error.message} {error.hint}".rstrip()))
