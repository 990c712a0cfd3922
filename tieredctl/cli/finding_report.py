"""Findings as people read them: what is wrong first, in few lines, with the command that mends it or shows more."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from tieredctl.cli.finding_groups import MOST_PARTITIONS, FindingGroups, Group
from tieredctl.cli.output import printable
from tieredctl.cli.remedies import next_command
from tieredctl.cli.terminal import emphasized, severity_shown, width_of
from tieredctl.model.counted import counted
from tieredctl.model.finding_kind import severities_text
from tieredctl.model.findings import Finding
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance

_FEW_GROUPS = 2
_EXAMPLES = 3
"""Of each code, where there are few; otherwise one."""
_LEAST_WIDTH = 20
_OPTION_AND_VALUE = re.compile(r"(--[a-z-]+) (?!-)")
_TIE = "\0"
"""Stands for a space at which no line is broken."""


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
        found = FindingGroups.of(findings, most, self.tolerance)
        lines = _Lines(out)
        groups = found.by_severity()
        if len(groups) > 1:
            lines.write(first_line(found), emphasize=True)
        shown = self._shown(groups)
        remedied: set[str] = set()
        for group in groups:
            lines.write_group(group, shown, remedy=group.kind.code not in remedied)
            remedied.add(group.kind.code)
        if any(group.count > shown for group in groups):
            lines.write(f"Only the first of each code {'is' if shown == 1 else 'are'} shown: {self.how_to_see_all}.")
        for sentence in ignored_sentences(found):
            lines.write(sentence)

    def _shown(self, groups: Sequence[Group]) -> int:
        if self.all_of_them:
            return max((group.count for group in groups), default=0)
        return self.limit or (_EXAMPLES if len(groups) <= _FEW_GROUPS else 1)


def first_line(found: FindingGroups) -> str:
    """Counts by severity, and the cause."""
    counts = severities_text(found.counts())
    cause = found.cause()
    if cause is None:
        return counts
    return f"{counts}: {_summary(cause) if cause.makes_incomplete or cause.count > 1 else cause.kind.meaning}"


def ignored_sentences(found: FindingGroups) -> Iterator[str]:
    """How many findings are ignored, by code, and which cannot be."""
    if found.ignored:
        total = found.ignored.total()
        yield f"{counted(total, 'finding is', 'findings are')} ignored: {_codes(found.ignored)}."
    if found.not_ignorable:
        yield f"Not ignored, because the answer is incomplete: {_codes(found.not_ignorable)}."


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


def _summary(group: Group) -> str:
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
            self.write(f"{head}: {code}: {_summary(group)}", group.severity.label)
            for finding in group.first[:shown]:
                self.write(f"  {finding_text(finding)}")
        if remedy:
            self._write_command(next_command(group.first[0].remedy))

    def write(self, text: str, label: str = "", *, emphasize: bool = False) -> None:
        """A line or several; `label` is what it begins with if that has a colour, which takes no space."""
        width = width_of(self.out)
        lines = [text]
        if width is not None:
            coloured = text[: text.index(":")] if label else ""
            plain = label + text[len(coloured) :]
            indent = " " * (2 + len(plain) - len(plain.lstrip()))
            lines = _wrapped(plain, width, indent)
            lines[0] = coloured + lines[0][len(label) :]
        for line in lines:
            self.out.write((emphasized(line, self.out) if emphasize else line) + "\n")

    def _write_command(self, remedy: str) -> None:
        text = printable(remedy)
        width = None if "'" in text else width_of(self.out)  # a quoted word is not divided
        together = _OPTION_AND_VALUE.sub(rf"\1{_TIE}", text)
        lines = [f"    {text}"] if width is None else _wrapped(f"    {together}", width - 2, " " * 6)
        lines = [line.replace(_TIE, " ") for line in lines]
        if text.startswith(("tieredctl ", "kafka-")):
            lines = [*(f"{line} \\" for line in lines[:-1]), lines[-1]]
        self.out.writelines(f"{line}\n" for line in lines)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, _LEAST_WIDTH),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [text]
