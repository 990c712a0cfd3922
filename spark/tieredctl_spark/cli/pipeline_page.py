"""The page of `pipeline status --report`: how what is stored grows, what it costs, what is wrong; from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.pages.report import Reported, table_of
from tieredctl.model.counted import counted
from tieredctl.model.quantities import age_text, size_text
from tieredctl.report.bars import MOST_BARS, Series, bars
from tieredctl.report.plot import CRITICAL, GOOD, SERIES, WARNING, Plot
from tieredctl_spark.tables.kinds import (
    COPY_LAG_HOURLY,
    COST_DAILY,
    COVERAGE,
    DAY,
    FINDINGS,
    OBJECTS_DAILY,
    ORPHANS_DAILY,
    RETENTION_FORECAST,
    TableKind,
)

if TYPE_CHECKING:
    from tieredctl_spark.tables.files import ReadableTables

_Row = dict[str, Any]
_FINDING_COLUMNS = (
    TableColumn("SEVERITY", "severity"),
    TableColumn("CODE", "code"),
    TableColumn("SUBJECT", "subject"),
    TableColumn("MESSAGE", "message"),
    TableColumn("FIRST SEEN", "firstSeen"),
    TableColumn("LAST SEEN", "lastSeen"),
)


def reported_tables(tables: ReadableTables, listing: Listing) -> Reported:
    """What a page is made of. Reads the rows of the newest days, and the findings."""

    def rows(kind: TableKind, days: int = MOST_BARS) -> list[_Row]:
        found: list[_Row] = tables.newest(kind, days).to_pylist()
        return found

    manifest = tables.manifest
    open_findings = [row for row in rows(FINDINGS) if row["resolved"] is None]
    findings = [
        row | {name: f"{row[name]:%Y-%m-%d %H:%M}" for name in ("firstSeen", "lastSeen")} for row in open_findings
    ]
    costs = rows(COST_DAILY)
    currency = next((row["currency"] for row in costs), "")
    plots = [
        _by("objects", "Stored", "Bytes that the store held, by day.", rows(OBJECTS_DAILY), DAY),
        _by("topics", "Stored, by topic", "On the last day.", rows(OBJECTS_DAILY, 1), "topic", greatest_first=True),
        _costs(costs, currency),
        _by("orphans", "Orphaned", "Bytes of orphaned objects, by day.", rows(ORPHANS_DAILY), DAY, colour=WARNING),
        _by(
            "forecast",
            "Expiring",
            "Bytes that retention.ms lets brokers delete, by day.",
            rows(RETENTION_FORECAST, 1),
            "expires",
        ),
        _lags(rows(COPY_LAG_HOURLY)),
        _coverage(rows(COVERAGE, 1)),
    ]
    complete = "complete" if manifest.looked.complete else "incomplete"
    return Reported(
        listing.source if not callable(listing.source) else listing.source(),
        headline=f"Version {manifest.version} of the tables; {counted(len(findings), 'finding')} not resolved.",
        facts=[("Last look", complete), ("Level", manifest.looked.level)],
        unknown=[] if manifest.looked.complete else ["The last look was incomplete: its findings say why."],
        plots=[plot for plot in plots if plot is not None],
        tables=[
            table_of("Tables", listing.columns, list(listing.items)),
            table_of("Findings that are not resolved", _FINDING_COLUMNS, findings, "The table `findings` has all."),
        ],
    )


def _by(
    name: str,
    title: str,
    description: str,
    rows: Iterable[_Row],
    column: str,
    *,
    colour: str = SERIES[0],
    greatest_first: bool = False,
) -> Plot | None:
    """Bytes by the value of a column, of which null is what is not known; unknown where those of one row are."""
    totals: dict[str, int | None] = {}
    for row in rows:
        value = "(unknown)" if row[column] is None else str(row[column])
        before = totals.get(value, 0)
        totals[value] = None if before is None or row["bytes"] is None else before + row["bytes"]
    names = sorted(totals, key=lambda one: -(totals[one] or 0)) if greatest_first else sorted(totals)
    return _bars(
        name,
        title,
        description,
        names[:MOST_BARS],
        [Series("bytes", colour, [totals[one] for one in names[:MOST_BARS]])],
        size_text,
    )


def _costs(rows: Iterable[_Row], currency: str) -> Plot | None:
    costs = Counter[str]()
    for row in rows:
        costs[row[DAY]] += row["storageCost"] + row["putsCost"]
    names = sorted(costs)
    amounts = [round(costs[one] * 100) for one in names]
    description = f"Storage and copies a month, in {currency}, by day."
    return _bars(
        "cost", "Cost", description, names, [Series("cost", SERIES[3], amounts)], lambda one: f"{one / 100:,.2f}"
    )


def _lags(rows: Iterable[_Row]) -> Plot | None:
    longest: dict[str, int] = {}
    for row in rows:
        longest[row[DAY]] = max(longest.get(row[DAY], 0), row["longestMs"])
    names = sorted(longest)
    series = [Series("longest", SERIES[1], [longest[one] for one in names])]
    return _bars(
        "lag",
        "Longest copy lag",
        "From a segment's last record to the end of its copy, by day.",
        names,
        series,
        age_text,
    )


def _coverage(rows: Sequence[_Row]) -> Plot | None:
    levels = sorted({row["level"] for row in rows})
    amounts = [sum(row["segments"] for row in rows if row["level"] == one) for one in levels]
    colour = GOOD if all(row["complete"] for row in rows) else CRITICAL
    return _bars(
        "coverage",
        "Coverage",
        "Segments that were verified on the last day, by level.",
        levels,
        [Series("segments", colour, amounts)],
    )


def _bars(
    name: str,
    title: str,
    description: str,
    names: Sequence[str],
    series: Sequence[Series],
    text: Callable[[int], str] = "{:,}".format,
) -> Plot | None:
    return bars(name, title, description, names, series, text) if names else None
