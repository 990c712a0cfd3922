"""Findings by severity and code, counted: of each group only the first few are held, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding, FindingKind, Severity
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance

_NOT_MADE = FindingCode.CHECK_NOT_MADE
MOST_PARTITIONS = 10_000
"""More are not told apart."""


@dataclass(slots=True)
class Group:
    """Findings of one code and severity."""

    kind: FindingKind
    severity: Severity
    first: list[Finding] = field(default_factory=list)
    count: int = 0
    things: int = 0
    """What the findings are about, which may be several objects each."""
    partitions: set[tuple[str, int]] = field(default_factory=set)
    """Of those whose findings name one."""

    @property
    def makes_incomplete(self) -> bool:
        """Whether, because of these, not everything could be checked: others may only follow from them."""
        return self.kind.makes_incomplete(self.severity)


@dataclass(slots=True)
class FindingGroups:
    """Counts `findings` by severity and code, and holds at most `most` of each group: all of them where that is None.
    Those that are ignored are only counted, by code; so are those that were to be ignored and cannot be."""

    groups: dict[tuple[Severity, str], Group]
    ignored: Counter[str]
    not_ignorable: Counter[str]
    ignored_critical: int = 0
    """How many of those that are ignored say that data is lost or altered."""

    @classmethod
    def of(
        cls, findings: Iterable[Finding], most: int | None, tolerance: Tolerance = NOTHING_TOLERATED
    ) -> FindingGroups:
        found = cls({}, Counter(), Counter())
        for finding in findings:
            if finding.is_ignored(tolerance):
                found.ignored[finding.code] += 1
                found.ignored_critical += finding.severity is Severity.CRITICAL
                continue
            found._add(finding, most)
            if tolerance.names(finding.code, finding.subject):
                found.not_ignorable[finding.code] += 1
        return found

    def _add(self, finding: Finding, most: int | None) -> None:
        group = self.groups.get((finding.severity, finding.code))
        if group is None:
            group = self.groups[finding.severity, finding.code] = Group(finding.kind, finding.severity)
        group.count += 1
        group.things += finding.about.count
        if most is None or len(group.first) < most:
            group.first.append(finding)
        if len(group.partitions) < MOST_PARTITIONS and (partition := _partition(finding)) is not None:
            group.partitions.add(partition)

    def by_severity(self) -> list[Group]:
        """The gravest first; of one severity, what makes the answer incomplete first."""
        return sorted(self.groups.values(), key=lambda group: (-group.severity, not group.makes_incomplete))

    def cause(self) -> Group | None:
        """What to look at first: what makes the answer incomplete, since others may follow from it, else the gravest;
        None without findings. Nothing follows from a check that was not made: it is no graver than it says."""
        groups = self.by_severity()
        incomplete = (group for group in groups if group.makes_incomplete and group.kind.code is not _NOT_MADE)
        return next(incomplete, groups[0] if groups else None)

    def counts(self) -> dict[Severity, int]:
        """How many there are, the gravest first."""
        counts: Counter[Severity] = Counter()
        for group in self.groups.values():
            counts[group.severity] += group.count
        return dict(sorted(counts.items(), reverse=True))


def _partition(finding: Finding) -> tuple[str, int] | None:
    if isinstance(finding.about, PartitionSubject):
        named = finding.about.partition
        return named.topic_id or named.topic, named.partition
    return None
