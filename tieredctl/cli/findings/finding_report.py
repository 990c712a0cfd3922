"""Findings as people read them: what is wrong first, in few lines, with the command that mends it or shows more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from tieredctl.cli.findings.remedies import remedy_shown
from tieredctl.cli.line_breaks import broken, broken_command
from tieredctl.cli.terminal import emphasized, severity_shown, width_of
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import severities_text
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding, FindingKind, Severity
from tieredctl.model.printable import printable
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance

_FEW_GROUPS = 2
_MANY_GROUPS = 4
"""From here on only the cause has an example, and what is informational is one line: all fit one screen."""
_EXAMPLES = 3
"""How many examples each code has, where there are few codes; otherwise one."""


@dataclass(frozen=True, slots=True)
class FindingReport:
    """How findings are written. `limit` is how many of each code are shown: by default few; `all_of_them` shows all.
    `how_to_see_all` says what shows those that are left out."""

    limit: int | None = None
    all_of_them: bool = False
    tolerance: Tolerance = NOTHING_TOLERATED
    how_to_see_all: str = "-o json has them all"

    def write(self, findings: Iterable[Finding], out: TextIO) -> None:
        """Writes groups, the gravest first, after a line that counts them and names the cause; then what is ignored.
        Nothing where there is nothing."""
        most = None if self.all_of_them else (self.limit or _EXAMPLES)
        by_kind = FindingGroups.of(findings, most, self.tolerance)
        lines = _Lines(out)
        groups = by_kind.by_severity()
        if len(groups) > 1:
            lines.write(first_line(by_kind), emphasize=True)
        shown, cause = self._shown(groups), by_kind.cause()
        is_short = self._is_short(groups)
        remedied: set[str] = set()
        for group in groups:
            if is_short and group.severity is Severity.INFO:
                continue
            examples = 0 if is_short and group is not cause else shown
            lines.write_group(group, examples, remedy=group.kind.code not in remedied)
            remedied.add(group.kind.code)
        if is_short:
            lines.write_informational(groups)
            lines.write(f"Not everything is shown: {self.how_to_see_all}.")
        elif any(group.count > shown for group in groups):
            first = "first finding" if shown == 1 else f"first {shown} findings"
            lines.write(f"Only the {first} of each code {'is' if shown == 1 else 'are'} shown: {self.how_to_see_all}.")
        for sentence in ignored_sentences(by_kind):
            lines.write(sentence)

    def write_cause(self, findings: Iterable[Finding], out: TextIO) -> None:
        """Writes only the line that counts what needs attention and names the cause; nothing where nothing does."""
        by_kind = FindingGroups.of((one for one in findings if one.severity is not Severity.INFO), 1, self.tolerance)
        if by_kind.groups:
            _Lines(out).write(first_line(by_kind), emphasize=True)

    def _shown(self, groups: Sequence[Group]) -> int:
        if self.all_of_them:
            return max((group.count for group in groups), default=0)
        return self.limit or (_EXAMPLES if len(groups) <= _FEW_GROUPS else 1)

    def _is_short(self, groups: Sequence[Group]) -> bool:
        if self.all_of_them or self.limit is not None or len(groups) < _MANY_GROUPS:
            return False
        is_informational = {group.severity is Severity.INFO for group in groups}
        return is_informational == {True, False} or any(group.count > 1 for group in groups)


def first_line(by_kind: FindingGroups) -> str:
    """Counts by severity, and the cause."""
    counts = severities_text(by_kind.counts())
    cause = by_kind.cause()
    if cause is None:
        return counts
    return f"{counts}: {group_text(cause) if cause.makes_incomplete or cause.count > 1 else cause.kind.meaning}"


def ignored_sentences(by_kind: FindingGroups) -> Iterator[str]:
    """How many findings are ignored, by code, and which cannot be."""
    if by_kind.ignored:
        total = by_kind.ignored.total()
        yield f"{counted(total, 'finding is', 'findings are')} ignored: {_codes(by_kind.ignored)}."
    if by_kind.ignored_critical:
        critical = counted(by_kind.ignored_critical, "ignored finding is", "ignored findings are")
        yield f"{critical} critical, and not in the exit code: data may be lost or altered."
    if by_kind.not_ignorable:
        yield f"Not ignored, because the answer is incomplete: {_codes(by_kind.not_ignorable)}."


def _codes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{code} ({count})" for code, count in sorted(counts.items()))


def finding_text(finding: Finding) -> str:
    """`subject: message`, and where in the bytes and offsets it is. One line, whatever is in it."""
    evidence = finding.evidence
    places = [f"byte {evidence['position']}"] if evidence.get("position") is not None else []
    if offsets := evidence.get("offsets"):
        places.append(f"offsets {offsets[0]}..{offsets[1]}")  # type: ignore[index]
    where = f" ({', '.join(places)})" if places else ""
    return printable(f"{finding.subject}: {finding.message}{where}")


def group_text(group: Group) -> str:
    """How many things are wrong in one way, and in how many partitions; of one, its message."""
    if group.count == 1:
        return printable(group.first[0].message)
    text = group.kind.count_text(group.things)
    partitions = len(group.partitions)
    if partitions < 2:
        return text
    atleast = "more than " if partitions == MOST_PARTITIONS else ""
    return f"{text}, in {atleast}{partitions} partitions"


@dataclass(frozen=True, slots=True)
class _Lines:
    """Writes lines that break between words where the terminal is narrow."""

    out: TextIO

    def write_group(self, group: Group, shown: int, *, remedy: bool) -> None:
        head = severity_shown(group.severity.label, self.out)
        code = group.kind.code.value
        if group.count == 1:
            self.write(f"{head}: {code}: {finding_text(group.first[0])}", group.severity.label)
        else:
            self.write(f"{head}: {code}: {group_text(group)}", group.severity.label)
            for finding in group.first[:shown]:
                self.write(f"  {finding_text(finding)}")
        if remedy and (command := remedy_shown(group.first[0].remedy)):
            self._write_command(command)

    def write_informational(self, groups: Iterable[Group]) -> None:
        """One line with the codes of what is informational; nothing where nothing is."""
        counts = {group.kind.code.value: group.count for group in groups if group.severity is Severity.INFO}
        if counts:
            label = Severity.INFO.label
            self.write(f"{severity_shown(label, self.out)}: {_codes(counts)}", label)

    def write(self, text: str, label: str = "", *, emphasize: bool = False) -> None:
        """A line or several; `label` is what it begins with if that has a colour, which takes no space."""
        coloured = text[: text.index(":")] if label else ""
        lines = broken(label + text[len(coloured) :], width_of(self.out))
        lines[0] = coloured + lines[0][len(label) :]
        for line in lines:
            self.out.write((emphasized(line, self.out) if emphasize else line) + "\n")

    def _write_command(self, remedy: str) -> None:
        self.out.writelines(f"{line}\n" for line in broken_command(printable(remedy), width_of(self.out)))


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
    """The partitions of those findings that name one."""

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
        by_kind = cls({}, Counter(), Counter())
        for finding in findings:
            if finding.is_ignored(tolerance):
                by_kind.ignored[finding.code] += 1
                by_kind.ignored_critical += finding.severity is Severity.CRITICAL
                continue
            by_kind._add(finding, most)
            if tolerance.names(finding.code, finding.subject):
                by_kind.not_ignorable[finding.code] += 1
        return by_kind

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
