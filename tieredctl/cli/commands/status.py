"""`tieredctl status`: a cluster on one screen; or each context's, a row for each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tieredctl.cli import PROGRAM, running_words
from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.context_places import all_contexts as all_contexts_of
from tieredctl.cli.context_places import places_of
from tieredctl.cli.findings.remedies import Remedies
from tieredctl.cli.options import StuckAfter
from tieredctl.cli.outcome import finding_documents, say_cause, say_error
from tieredctl.cli.output import GAP, Item, Listing, OutputFormat, TableColumn, known
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import MetadataOptions, RemoteOptions, ResultOptions
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.terminal import width_of
from tieredctl.cli.view import FindingsView
from tieredctl.cli.watching import watch as watched
from tieredctl.config.contexts import Context
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import duration_ms, time_ms
from tieredctl.ops.documents import Document
from tieredctl.ops.status.board import UNKNOWN, Status, StatusLine
from tieredctl.ops.status.facts import ClusterFacts, TopicBytes
from tieredctl.wiring.status import StatusPlaces, asked_together, status_of

if TYPE_CHECKING:
    from tieredctl.cli.pages.report import Reported

_LEAST_INTERVAL_MS = 1000
_COLUMNS = (
    TableColumn("ABOUT", "about"),
    TableColumn("ANSWER", "answer", importance=2),
    TableColumn("MORE", "command", importance=0),
)
_STORE_COMMANDS = ("remote du", "orphans scan", "orphans quarantine ls", "verify")
_METADATA_COMMANDS = ("doctor", "orphans scan", "verify")


def _counted(severity: str) -> TableColumn:
    heading = {"critical": "CRITICAL", "error": "ERRORS", "warning": "WARNINGS"}[severity]
    return TableColumn(heading, lambda row: "unknown" if row["findings"] is None else row["findings"][severity])


def _or_in_store(name: str, stored: str) -> Callable[[Item], object]:
    """What the metadata says; of a store alone, what a listing of it does."""

    def value(row: Item) -> object:
        amount = row[name] if row[name] is not None else (row["store"] or {}).get(stored)
        return UNKNOWN if amount is None else amount

    return value


_CONTEXT_COLUMNS = (
    TableColumn("CONTEXT", "context"),
    *map(_counted, ("critical", "error", "warning")),
    TableColumn("TOPICS", _or_in_store("topics", "topics")),
    size_column(_or_in_store("remoteBytes", "bytes"), "REMOTE"),
    TableColumn("NOT-TIERED", known("notTiered")),
    TableColumn("STUCK", known("stuck")),
    TableColumn("CLUSTER", known("clusterId"), wide=True),
)
_TOPIC_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("TOPIC-ID", "topic_id"),
    TableColumn("SEGMENTS", "segments"),
    size_column("remote_size"),
)
_CONTEXT_FIELDS = (
    "context",
    "clusterId",
    "findings",
    "topics",
    "remoteBytes",
    "notTiered",
    "stuck",
    "store",
    "problem",
)


class _Asked(NamedTuple):
    """What is to be shown."""

    older_than_ms: int
    now: str | None
    view: FindingsView
    page: ReportOptions

    @property
    def clock(self) -> Clock:
        return Clock(clock_ms() if self.now is None else time_ms(self.now), self.older_than_ms)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this command."""
    app.command(noun, help=meaning + _HELP)(status)


_HELP = """

What is not known is "unknown", never zero: without a live cluster the lag is, and without --result what earlier scans
and verifications found. Without any metadata the store is listed. Exit 3 if something needs attention, 4 for corruption
or loss, 5 if something was asked and did not answer; what the last scan and verification found counts.

For example: tieredctl status --bootstrap-server broker-1:9092 --result /var/lib/tieredctl/scan.json
"""


def status(
    *,
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    results: ResultOptions,
    older_than: StuckAfter = "1h",
    all_contexts: Annotated[bool, typer.Option("--all-contexts", help="A row for each context.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="How often to --watch.")] = "10s",
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="Compute ages from this time instead of the clock.")
    ] = None,
    view: FindingsView,
    page: ReportOptions,
) -> ExitCode:
    """Show a cluster on one screen."""
    page.demand_possible()
    asked = _Asked(duration_ms(older_than), now, view, page)
    interval_ms = duration_ms(interval)
    if watch and interval_ms < _LEAST_INTERVAL_MS:
        raise TieredctlError(ErrorCode.USAGE, f"--interval {interval} is too short.", hint="Give 1s or more.")
    if watch and view.output not in (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSONL):
        raise TieredctlError(ErrorCode.USAGE, "--watch is for tables and jsonl.", hint="Omit it, or give -o jsonl.")
    if all_contexts:
        show = partial(_show_contexts, all_contexts_of(results.paths()), asked)
    else:
        show = partial(_show, _places(metadata_options, remote_options, results.paths()), asked)
    return watched(show, interval_ms) if watch else show()


def _places(metadata: MetadataOptions, remote: RemoteOptions, results: Sequence[Path]) -> StatusPlaces:
    place = metadata.place()
    places = StatusPlaces(place if place.is_given else None, remote.place_if_given(), results)
    if places.metadata is None and places.store is None:
        hint = "Give --bootstrap-server, --log-dir, --export or --store; or choose a context."
        raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to show the status of.", hint=hint)
    return places


def _show(places: StatusPlaces, asked: _Asked) -> ExitCode:
    overall, view = status_of(places, asked.clock, draws=asked.page.report is not None), asked.view
    findings = [] if overall.cluster is None else list(overall.cluster.findings or ())
    rows = [_row(line, places) for line in overall.lines()]
    summary = overall.summary() | {"findings": finding_documents(findings)}
    source = {"store": None if overall.store is None else overall.store.url, "clusterId": summary["clusterId"]}
    listing = Listing("Status", source, rows, _COLUMNS, summary, tuple(rows[0]))
    if view.is_table and not view.quiet:
        say_cause(findings, view.tolerance)
    besides = worst(_completeness(overall.failed), overall.results.exit_code(view.tolerance))
    code = replace(view, quiet=True).show(listing, findings, besides)
    if view.output is OutputFormat.TABLE and _has_no_room(rows):
        view.say("-o wide shows the command that goes deeper on each line.")
    for error in () if view.quiet else overall.failed.values():
        say_error(error)
    return asked.page.write(code, lambda: _reported(overall, listing, findings, view))


def _reported(overall: Status, listing: Listing, findings: Sequence[Finding], view: FindingsView) -> Reported:
    from tieredctl.cli.pages.report import Reported, table_of
    from tieredctl.cli.pages.report_plots import (
        last_scan_plot,
        last_verification_plot,
        topics_plot,
        uploads_plot,
        verifications_plot,
    )
    from tieredctl.cli.pages.timeline_plots import sentences_of_not_drawn, timeline_plots

    facts = ClusterFacts() if overall.cluster is None else overall.cluster
    scan, verification = overall.results.scan, overall.results.verification
    plots = [] if scan is None else [last_scan_plot(scan)]
    plots += [] if verification is None else [last_verification_plot(verification)]
    plots.append(verifications_plot(overall.results.verifications))
    tables = [table_of("Status", _COLUMNS, list(listing.items))]
    if facts.segments is not None:
        topics = facts.segments.topics
        plots += [topics_plot(topics, may_be_more=facts.may_be_more), uploads_plot(facts.segments.uploads)]
        tables.append(table_of("Topics in remote storage", _TOPIC_COLUMNS, [_topic_row(one) for one in topics]))
    plots += timeline_plots(facts.timelines.drawn)
    unknown = [f"{line.about}: {line.answer}." for line in overall.lines() if line.answer.startswith(UNKNOWN)]
    return Reported(
        listing.source if isinstance(listing.source, dict) else {},
        None if overall.severities() is None else findings,
        headline=f"In the last verification: {grave}." if (grave := overall.grave_of_last_verification()) else "",
        unknown=[*unknown, *sentences_of_not_drawn(facts.timelines.left_out)],
        plots=[plot for plot in plots if plot is not None],
        tables=tables,
        tolerance=view.tolerance,
    )


def _topic_row(one: TopicBytes) -> Document:
    size = one.remote_size
    return {**asdict(one), "remote_size": str(size) if size.known is None else size.known}


def _completeness(unanswered: Mapping[str, TieredctlError] | int) -> ExitCode:
    return ExitCode.INCOMPLETE if unanswered else ExitCode.CLEAN


def _has_no_room(rows: Sequence[Document]) -> bool:
    """Whether the terminal has no room for the commands."""
    width = width_of(sys.stdout)
    about, answer, command = (max(len(row[name]) for row in rows) for name in ("about", "answer", "command"))
    without = about + len(GAP) + answer
    return width is not None and without <= width < without + len(GAP) + command


def _row(line: StatusLine, places: StatusPlaces) -> Document:
    command = line.command
    words, dashes, name = command.partition(" -- ")
    remedy = Remedies(running_words.get()).pasteable(f"{PROGRAM} {words} …{dashes}{name}")
    if command in _METADATA_COMMANDS and places.metadata is None:
        remedy += " --bootstrap-server HOST:PORT"
    if command in _STORE_COMMANDS and places.store is None:
        remedy += " --store URL"
    return line.document() | {"command": remedy}


class _OfContext(NamedTuple):
    """The status of a context, or why there is none."""

    context: Context
    status: Status | None
    error: TieredctlError | None

    @property
    def problems(self) -> list[TieredctlError]:
        """Why something is unknown."""
        return [self.error] if self.error is not None else [*(self.status.failed if self.status else {}).values()]

    def row(self) -> Document:
        summary = Status(0).summary() if self.status is None else self.status.summary()
        stuck = summary["stuck"]
        return {
            "context": self.context.name,
            "clusterId": summary["clusterId"],
            "findings": summary["severities"],
            "topics": summary["tiered"]["topics"],
            "remoteBytes": summary["tiered"]["remoteBytes"],
            "notTiered": summary["notTiered"],
            "stuck": None if stuck is None else stuck["copies"] + stuck["deletions"],
            "store": summary["store"],
            "problem": "; ".join(error.message for error in self.problems) or None,
        }


def _show_contexts(chosen: Sequence[Context], asked: _Asked) -> ExitCode:
    statuses = asked_together(partial(_of_context, clock=asked.clock), chosen)
    findings = [
        one for each in statuses if each.status and each.status.cluster for one in each.status.cluster.findings or ()
    ]
    rows = [each.row() for each in statuses]
    unknown = sum(bool(each.problems) for each in statuses)
    summary = {"contexts": len(rows), "unknown": unknown}
    listing = Listing("StatusOfContexts", {"kind": "contexts"}, rows, _CONTEXT_COLUMNS, summary, _CONTEXT_FIELDS)
    code = replace(asked.view, quiet=True).show(listing, findings, _completeness(unknown))
    asked.view.say(*_problems(rows))
    if asked.view.is_table and (alone := [row["context"] for row in rows if _is_store_alone(row)]):
        asked.view.say(
            f"Listed, since no cluster was given: the {'store' if len(alone) == 1 else 'stores'} of {', '.join(alone)}."
        )
    return asked.page.write(code, lambda: _reported_contexts(rows))


def _problems(rows: Sequence[Document]) -> list[str]:
    """Why something of a context is unknown, a line each."""
    return [f"{row['context']}: {row['problem']}" for row in rows if row["problem"] is not None]


def _is_store_alone(row: Document) -> bool:
    return row["store"] is not None and row["store"]["objects"] is not None


def _reported_contexts(rows: Sequence[Document]) -> Reported:
    """Without their findings: a command that mends one would be of the current context, whichever has the finding."""
    from tieredctl.cli.pages.report import Reported, table_of

    unknown = ["Each context's findings: tieredctl --context NAME status shows them."]
    unknown += _problems(rows)
    return Reported(
        {},
        headline=counted(len(rows), "context"),
        unknown=unknown,
        tables=[table_of("Contexts", _CONTEXT_COLUMNS, rows)],
    )


def _of_context(context: Context, clock: Clock) -> _OfContext:
    try:
        return _OfContext(context, status_of(places_of(context), clock), None)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the other contexts are shown
        from tieredctl.cli.main import error_of

        return _OfContext(context, None, error_of(fault))
