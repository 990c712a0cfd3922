"""What a command found, as a page. The command hands over what it shows; nothing is decided here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tieredctl import __version__
from tieredctl.cli import PROGRAM, running_command, running_words
from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.findings.finding_report import (
    FindingGroups,
    Group,
    finding_text,
    first_line,
    group_text,
    ignored_sentences,
)
from tieredctl.cli.findings.findings_table import FINDING_COLUMNS
from tieredctl.cli.findings.remedies import Remedies, remedy_shown
from tieredctl.cli.output import Item, TableColumn
from tieredctl.cli.shown_quantities import ago
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.pasteable import quoted
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance
from tieredctl.process.redaction import redacted_words

if TYPE_CHECKING:
    from tieredctl.report.page import FoundGroup, Page
    from tieredctl.report.plot import Plot
    from tieredctl.report.table import Cell, Table

_OF_A_GROUP = 20
"""So many findings of each code stand beside their remedy; the table has all."""
_NAMED = 3
"""How many findings are named one by one: of so many it is seen at once what they are about."""
_MEANINGS = {
    ExitCode.CLEAN: "clean",
    ExitCode.FINDINGS: "something needs attention",
    ExitCode.CORRUPTION: "corruption or loss",
    ExitCode.INCOMPLETE: "the answer is incomplete",
}
_SOURCE_FACTS = {
    "store": "Store",
    "layout": "Layout",
    "logDirs": "Metadata from",
    "bootstrapServer": "Brokers",
    "export": "Metadata from",
    "path": "File",
}


@dataclass(frozen=True, slots=True)
class Reported:
    """What a page is made of."""

    source: Mapping[str, Any]
    findings: Sequence[Finding] | None = None
    """None where nothing was looked for."""
    headline: str = ""
    facts: Sequence[tuple[str, str]] = ()
    unknown: Sequence[str] = ()
    """What was not looked at, a sentence each."""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    tolerance: Tolerance = field(default=NOTHING_TOLERATED)


def report_page(reported: Reported, code: ExitCode) -> Page:
    """The page of a run that ends with this exit code."""
    from tieredctl.report.page import Page

    findings, headline = reported.findings or (), reported.headline
    by_kind = FindingGroups.of(findings, _OF_A_GROUP, reported.tolerance)
    groups = by_kind.by_severity()
    verdict, severity = "Nothing found", "good"
    if groups:
        verdict, severity = first_line(by_kind), groups[0].severity.label
    elif code is not ExitCode.CLEAN:
        verdict, severity = _MEANINGS.get(code, "").capitalize(), "unknown"
    elif reported.findings is None:
        verdict, severity, headline = headline or "What is wrong is unknown", "unknown", ""
    tables = [*reported.tables, *([_findings_table(findings)] if findings else [])]
    return Page(
        title=running_command.get(),
        verdict=verdict,
        severity=severity,
        headline=headline,
        facts=[*_facts(reported.source, code), *reported.facts],
        groups=list(_groups(by_kind)),
        unknown=[*reported.unknown, *ignored_sentences(by_kind)],
        plots=reported.plots,
        tables=tables,
    )


def _facts(source: Mapping[str, Any], code: ExitCode) -> Iterator[tuple[str, str]]:
    made = datetime.fromtimestamp(clock_ms() / 1000, UTC)
    yield "Command", " ".join(map(quoted, (PROGRAM, *redacted_words(running_words.get()))))
    yield "Made at", f"{made:%Y-%m-%d %H:%M:%S} UTC"
    yield "Exit code", f"{int(code)}: {_MEANINGS[code]}" if code in _MEANINGS else str(int(code))
    yield "Cluster", str(source.get("clusterId") or "unknown")
    for name, heading in _SOURCE_FACTS.items():
        value = source.get(name)
        if value:
            yield heading, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    yield "tieredctl", __version__


def _groups(by_kind: FindingGroups) -> Iterator[FoundGroup]:
    from tieredctl.report.page import FoundGroup, FoundThing

    for group in by_kind.by_severity():
        things = [FoundThing(finding_text(one), _evidence(one)) for one in group.first]
        remedy = remedy_shown(group.first[0].remedy)
        code = group.kind.code.value
        yield FoundGroup(group.severity.label, code, group_text(group), group.count, remedy, things, _about(group))


def _about(group: Group) -> str:
    """What the first few findings are about, and how many more there are."""
    subjects = [one.subject for one in group.first[:_NAMED]]
    more = group.count - len(subjects)
    return ", ".join(subjects) + (f", and {counted(more, 'more finding')}" if more else "")


def _evidence(finding: Finding) -> str:
    evidence = finding.document()["evidence"]
    return json.dumps(evidence, ensure_ascii=False) if evidence else ""


def _findings_table(findings: Sequence[Finding]) -> Table:
    from tieredctl.report.table import Table

    remedies = Remedies(running_words.get())
    columns = (
        *(column for column in FINDING_COLUMNS if not column.wide),
        TableColumn("COMMAND", lambda item: remedies.shown(item["remedy"])),
        TableColumn("EVIDENCE", lambda item: json.dumps(item["evidence"], ensure_ascii=False)),
    )
    rows = ([_cell(column, item) for column in columns] for item in (one.document() for one in findings))
    return Table.of("Findings", [column.heading for column in columns], rows, "-o jsonl has all of them.")


def table_of(
    title: str, columns: Sequence[TableColumn], items: Sequence[Item], how_to_see_all: str = "-o jsonl has all of them."
) -> Table:
    """The items of a listing, in all of its columns."""
    from tieredctl.report.table import Table

    rows = ([_cell(column, item) for column in columns] for item in items)
    return Table.of(title, [column.heading for column in columns], rows, how_to_see_all)


def _cell(column: TableColumn, item: Item) -> Cell:
    """Sorted by what it is, shown as people read it; a moment stays one, since a page is read later."""
    from tieredctl.report.table import Shown

    value = item.get(column.value) if isinstance(column.value, str) else column.value(item)
    if column.heading == "SEVERITY" and isinstance(value, str):
        return Shown(-Severity[value.upper()], value)
    if isinstance(value, bool) or value is None or column.people_read is ago:
        return None if value is None else column.text(item)
    if column.people_read is not None and isinstance(value, int | float):
        return Shown(value, column.text(item, wide=False))
    return value if isinstance(value, int | float) else column.text(item)
