"""`tieredctl metadata segments`: every segment as it is now, in rows or drawn."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import now_ms
from tieredctl.cli.metadata_tables import SEGMENT_COLUMNS, SEGMENT_FIELDS
from tieredctl.cli.options import Now
from tieredctl.cli.outcome import finding_documents, say
from tieredctl.cli.output import Listing
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import PastMetadataOptions, SegmentOptions
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import exit_code_of


def segments(
    *,
    metadata_options: PastMetadataOptions,
    selected: SegmentOptions,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help=f"Only segments in this state: {', '.join(RemoteLogSegmentState.__members__)}."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include deleted segments.")] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Draw partitions over their offsets, with epochs, gaps and overlaps.")
    ] = False,
    now: Now = None,
    view: FindingsView,
    page: ReportOptions,
) -> ExitCode:
    """Show the current state of every segment, after replay.

    For example: tieredctl metadata segments --bootstrap-server broker:9092 --topic orders --timeline
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.segment_documents import SegmentDocuments
    from tieredctl.wiring.metadata import demand_known, demand_known_by_all

    selection = selected.selection()
    wanted = _state(state)
    if timeline:
        if wanted is not None or selection.segment_ids:
            message = "--timeline draws whole partitions: --state and --segment-id are not for it."
            raise TieredctlError(ErrorCode.USAGE, message)
        from tieredctl.cli.timelines import Drawn, draw_timelines

        drawn = Drawn(selection, now_ms(now), keep_deleted=everything)
        return draw_timelines(metadata_options.place(), drawn, view, page)
    if page.report is not None:
        raise TieredctlError(ErrorCode.USAGE, "--report is for --timeline: a page has partitions drawn.")
    place = metadata_options.place()
    with place.open() as stream:
        keep_deleted = everything or wanted is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
        store = metadata_state.replayed(stream, selection, keep_deleted=keep_deleted)
        rows = metadata_state.segments(store, selection, wanted)
        if not len(rows) or selection.names_several:
            demand_known(place, stream, selection)
            if selection.segment_ids and not exit_code_of(stream.findings):
                demand_known_by_all(place, selection)
        if not len(rows) and view.is_table and not view.quiet:
            say("No segments.")
        items, size = SegmentDocuments(store, rows), store.size(rows)

        def summary() -> dict[str, Any]:
            totals = {"items": len(items), "segments": len(items), "bytes": size}
            return totals | {"findings": finding_documents(stream.findings)}

        listing = Listing("RemoteLogSegments", stream.source.describe, items, SEGMENT_COLUMNS, summary, SEGMENT_FIELDS)
        return view.show(listing, stream.findings)


def _state(text: str | None) -> RemoteLogSegmentState | None:
    if text is None:
        return None
    try:
        return RemoteLogSegmentState[text.upper()]
    except KeyError:
        names = ", ".join(state.name for state in RemoteLogSegmentState)
        raise TieredctlError(ErrorCode.USAGE, f"Unknown state {text!r}.", hint=f"States are {names}.") from None
