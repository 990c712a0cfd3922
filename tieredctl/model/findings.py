"""Findings: what is odd or wrong, as data with a name that scripts match on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tieredctl.errors import ExitCode, worst
from tieredctl.model.backup_finding_kinds import BACKUP_FINDING_KINDS
from tieredctl.model.bucket_finding_kinds import BUCKET_FINDING_KINDS
from tieredctl.model.doctor_finding_kinds import DOCTOR_FINDING_KINDS
from tieredctl.model.finding_codes import AnyFindingCode
from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl.model.finding_subjects import SegmentSubject, Subject, read_subject
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quorum_finding_kinds import QUORUM_FINDING_KINDS
from tieredctl.model.segment_finding_kinds import SEGMENT_FINDING_KINDS
from tieredctl.model.tiering_finding_kinds import TIERING_FINDING_KINDS
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance

__all__ = ["FINDING_KINDS", "Finding", "FindingKind", "Severity", "counts_by_code", "exit_code_of"]

_INDEXES = ("offset-index", "time-index", "transaction-index", "producer-snapshot", "indexes")
"""The parts of a segment that can be rebuilt from its log."""

_TABLES = (
    SEGMENT_FINDING_KINDS,
    DOCTOR_FINDING_KINDS,
    TIERING_FINDING_KINDS,
    QUORUM_FINDING_KINDS,
    BUCKET_FINDING_KINDS,
    BACKUP_FINDING_KINDS,
)


class _FindingKinds(Mapping[AnyFindingCode, FindingKind]):
    """By code, tieredctl's own and those of installed packages; these are loaded when another code is asked for."""

    def __init__(self) -> None:
        self._known = {kind.code: kind for table in _TABLES for kind in table}
        self._is_whole = False

    def __getitem__(self, code: AnyFindingCode) -> FindingKind:
        return self._known[code] if code in self._known else self._whole()[code]

    def __iter__(self) -> Iterator[AnyFindingCode]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def _whole(self) -> dict[AnyFindingCode, FindingKind]:
        if not self._is_whole:
            from tieredctl.model.command_packages import command_packages  # most findings are of tieredctl's own kinds

            of_packages = {kind.code: kind for package in command_packages() for kind in package.finding_kinds()}
            # A package cannot mean something else by a code of tieredctl's.
            self._known |= {code: kind for code, kind in of_packages.items() if code not in self._known}
            self._is_whole = True
        return self._known


FINDING_KINDS = _FindingKinds()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `subject` is what it is about, in a searchable form, and `about` is the same as a value;
    `evidence` is what proves it, in Kafka's names (JSON values only): it is shown, and decides nothing."""

    code: AnyFindingCode
    subject: str
    message: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    severity_override: Severity | None = None
    about: Subject = field(default=Subject(), compare=False)
    """The evidence has the same, so that findings which were written and read back are equal."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """The finding of a `document` about tiered topics. Raises KeyError, TypeError and ValueError for anything
        else."""
        kind = FINDING_KINDS[document["code"]]
        severity, evidence = Severity[str(document["severity"]).upper()], dict(document["evidence"])
        override = None if severity is kind.severity else severity
        subject, message = str(document["subject"]), str(document["message"])
        return cls(kind.code, subject, message, evidence, override, read_subject(subject, evidence))

    @property
    def kind(self) -> FindingKind:
        return FINDING_KINDS[self.code]

    @property
    def severity(self) -> Severity:
        return self.kind.severity if self.severity_override is None else self.severity_override

    @property
    def is_corruption(self) -> bool:
        """Whether it is critical, or an error that proves a stored object altered, though no record is lost."""
        if self.severity is Severity.CRITICAL:
            return True
        return self.severity is Severity.ERROR and self.kind.altered and isinstance(self.about, SegmentSubject)

    @property
    def remedy(self) -> str:
        return pasteable(self._remedy(), self.evidence)

    def _remedy(self) -> str:
        if isinstance(self.about, SegmentSubject):
            if self.about.part in _INDEXES and self.kind.remedy_of_index is not None:
                return self.kind.remedy_of_index
            if self.about.segment_id and "file" not in self.evidence and self.kind.remedy_of_segment is not None:
                return self.kind.remedy_of_segment
        return self.about.remedy or self.kind.remedy

    def document(self) -> dict[str, object]:
        """The finding as every output format shows it."""
        return {
            "code": self.code.value,
            "severity": self.severity.label,
            "subject": self.subject,
            "message": self.message,
            "evidence": dict(self.evidence),
            "remedy": self.remedy,
        }

    @property
    def makes_incomplete(self) -> bool:
        """Whether it means that not everything could be checked."""
        return self.kind.makes_incomplete(self.severity)

    def is_ignored(self, tolerance: Tolerance) -> bool:
        """Whether it is known, and does not count."""
        return tolerance.ignores(self.kind, self.severity, self.subject)


def counts_by_code(findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """How many have each code, and of these each severity."""
    counts: dict[str, dict[str, int]] = {}
    for finding in findings:
        severities = counts.setdefault(finding.code.value, {})
        severities[finding.severity.label] = severities.get(finding.severity.label, 0) + 1
    return counts


def exit_code_of(findings: Iterable[Finding], tolerance: Tolerance = NOTHING_TOLERATED) -> ExitCode:
    """The gravest of what findings mean to the shell, by `Tolerance.exit_code`."""
    codes = {
        tolerance.exit_code(one.severity, is_corruption=one.is_corruption, makes_incomplete=one.makes_incomplete)
        for one in findings
        if not one.is_ignored(tolerance)
    }
    return worst(*codes)
