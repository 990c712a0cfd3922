"""`metadata segments --timeline`: partitions drawn one after the other, those with trouble first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from tieredctl.cli.metadata_tables import SEGMENT_COLUMNS, SEGMENT_FIELDS
from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Listing, OutputFormat
from tieredctl.cli.pages.report import Reported, table_of
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.selection import Selection

if TYPE_CHECKING:
    from tieredctl.ops.timeline.partition_timeline import PartitionTimeline
    from tieredctl.wiring.places import MetadataPlace

MOST_DRAWN = 8
"""More than a screen of partitions helps nobody."""
_DRAWN = (OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)


class Drawn(NamedTuple):
    """What is to be drawn, and as of when ages are."""

    selection: Selection
    now_ms: int
    keep_deleted: bool


def draw_timelines(place: MetadataPlace, drawn: Drawn, view: FindingsView, page: ReportOptions) -> ExitCode:
    """Draws the selected partitions; as a document, segments with the offsets of all partitions in the summary.

    Logs are asked for before the metadata is read, so that nothing they gave up since looks missing.
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.completeness import is_whole_for_partitions_here
    from tieredctl.ops.metadata.segment_documents import SegmentDocuments
    from tieredctl.ops.timeline.partition_timeline import partition_timelines, timeline_document
    from tieredctl.wiring.metadata import demand_known
    from tieredctl.wiring.timelines import known_logs

    if view.output not in _DRAWN:
        raise TieredctlError(
            ErrorCode.USAGE, f"--timeline has no form for -o {view.output}.", hint="Use -o table, json or yaml."
        )
    page.demand_possible()
    selection = drawn.selection
    logs = known_logs(place, selection)
    with place.open() as stream:
        metadata = metadata_state.replayed(stream, selection, keep_deleted=drawn.keep_deleted)
        demand_known(place, stream, selection)
        rows = metadata_state.segments(metadata, selection)
        is_complete = is_whole_for_partitions_here(stream.findings)

        def timelines() -> Iterator[PartitionTimeline]:
            return partition_timelines(metadata, rows, logs, is_complete=is_complete)

        items, size = SegmentDocuments(metadata, rows), metadata.size(rows)

        def summary() -> dict[str, Any]:
            ranges = [] if view.is_table else [timeline_document(one) for one in timelines()]
            totals = {"items": len(items), "segments": len(items), "bytes": size, "timelines": ranges}
            return totals | {"findings": finding_documents(stream.findings)}

        chosen: Sequence[PartitionTimeline] = ()
        not_drawn: Sequence[str] = ()
        if view.is_table or page.report is not None:
            partitions = len({*metadata.rows.partitions[rows].tolist()})
            chosen = nsmallest(MOST_DRAWN, timelines(), key=lambda one: -one.timeline.worst)
            not_drawn = _not_drawn(partitions, len(chosen))
            view.say(*(not_drawn if partitions else ["No segments."]))
        written = partial(_write, chosen, drawn.now_ms)
        source = stream.source.describe
        listing = Listing("RemoteLogSegments", source, items, SEGMENT_COLUMNS, summary, SEGMENT_FIELDS, written)
        code = view.show(listing, stream.findings)
        return page.write(code, lambda: replace(_reported(listing, stream.findings, chosen, view), unknown=not_drawn))


def _reported(
    listing: Listing, findings: Sequence[Finding], chosen: Sequence[PartitionTimeline], view: FindingsView
) -> Reported:
    from tieredctl.cli.pages.timeline_plots import timeline_plots

    table = table_of("Segments", SEGMENT_COLUMNS, [*listing.items])
    plots = list(timeline_plots(chosen))
    source = listing.current_source()
    return Reported(source, findings, plots=plots, tables=[table], tolerance=view.tolerance)


def _not_drawn(partitions: int, drawn: int) -> list[str]:
    if drawn == partitions:
        return []
    return [f"Drawn are {drawn} of {partitions} partitions, those with trouble first: --topic and --partition choose."]


def _write(chosen: Sequence[PartitionTimeline], now_ms: int, out: TextIO) -> None:
    from tieredctl.cli.timeline_text import TimelineDrawing

    drawing = TimelineDrawing(out, now_ms)
    for number, one in enumerate(chosen):
        out.write("\n" if number else "")
        drawing.write(one)
