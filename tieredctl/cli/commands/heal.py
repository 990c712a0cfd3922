"""`tieredctl heal`: lost objects of segments, from wherever their bytes still are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, pairs
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation, known_cluster
from tieredctl.cli.options import ClusterId, IndexIntervalBytes, VerifyResult, Yes
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.places import MetadataOptions, RemoteOptions, SegmentOptions
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.ops.healing.healing import HealedSegment
from tieredctl.wiring.heal import HealingSources, SegmentsHealing, plan_healing
from tieredctl.wiring.index_recovery import WantedSegments
from tieredctl.wiring.places import StorePlace

if TYPE_CHECKING:
    from tieredctl.ops.metadata.selection import Selection

_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("START", "startOffset"),
    TableColumn("SEGMENT-ID", "segmentId"),
    TableColumn("PART", "part"),
    TableColumn("CONDITION", "condition"),
    TableColumn("ACTION", "action"),
    TableColumn("SOURCE", "source"),
    size_column("newBytes", "BYTES"),
    TableColumn("FROM", "from", wide=True),
    TableColumn("REASON", "reason", wide=True),
    TableColumn("OBSTACLE", "obstacle", wide=True),
    TableColumn("KEY", "key", wide=True),
)
_OUTCOME_COLUMNS = (
    TableColumn("HEALED", "healed"),
    TableColumn("ACCEPTED", "accepted"),
    TableColumn("QUARANTINED-AS", "quarantinedAs", wide=True),
)
_FIELDS = (
    *("topic", "topicId", "partition", "startOffset", "segmentId", "part", "condition", "action", "source", "from"),
    *("bytes", "newBytes", "key", "reason", "obstacle", "accepted"),
)
_OUTCOME_FIELDS = ("written", "healed", "quarantinedAs")


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `heal` known."""
    del meaning  # its own text says more
    app.command(noun)(heal)


def heal(
    *,
    remote_options: RemoteOptions,
    metadata_options: MetadataOptions,
    selected: SegmentOptions,
    result: VerifyResult = None,
    all_segments: Annotated[
        bool, typer.Option("--all", help="All segments: every object in the store is read.")
    ] = False,
    from_log_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", parser=given_path, help="Take bytes from a broker's log directory; repeat it for several."
        ),
    ] = None,
    from_store: Annotated[
        str | None, typer.Option(metavar="URL", help="Take objects from another bucket or prefix of the same layout.")
    ] = None,
    from_store_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of that store; repeat it for several."),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Record what nothing has the bytes of as lost, so that verify stops alarming."
        ),
    ] = False,
    index_interval_bytes: IndexIntervalBytes = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Bring missing or damaged objects of segments back, from wherever their bytes still are.

    Looks at the bucket's kept versions and the quarantine, then at --from-store, the segment's own log, and
    --from-log-dir; nothing is taken unless verify's full check passes with it. Damaged objects are first copied to
    quarantine. Exit 4 if something stays lost.

    For example: tieredctl heal --result verified.json --from-log-dir /kafka --log-dir /kafka --store s3://tiered
    """
    apply = choice.is_made
    wanted = _wanted(selected.selection(), result, all_segments=all_segments)
    other = None if from_store is None else StorePlace(from_store, pairs("--from-store-option", from_store_option))
    if other is None and from_store_option:
        raise TieredctlError(ErrorCode.USAGE, "--from-store-option is for --from-store.")
    healing = plan_healing(
        *(wanted, metadata_options.place(), remote_options.place()),
        *(HealingSources(tuple(from_log_dir or ()), other), index_interval_bytes),
        to_apply=apply,
    )
    view.say(*_sentences(healing, wanted, accept_loss=accept_loss))
    to_write, to_record = healing.to_write(), healing.unaccepted() if accept_loss else 0
    if not apply or not (to_write or to_record):
        planned = healing.summary() | {"applied": False}
        listing = Listing("HealingPlan", healing.source, healing.rows(), _COLUMNS, planned, _FIELDS)
        code = view.show(listing, code=_code(healing, wanted))
        view.say(*choice.advice(changes=bool(to_write or to_record)))
        return code
    changed = known_cluster(healing.cluster_id, cluster_id)
    what = _what(to_write, to_record, healing.store_url)
    demand_confirmation(what, changed, yes=yes, typed_cluster_id=cluster_id)
    outcome = healing.apply(changed, clock_ms, view.teller(_progress), accept_loss=accept_loss)
    rows = [row for one in outcome.segments for row in one.rows()]
    done = {**healing.summary(), "applied": True, "written": outcome.written, "healed": outcome.healed}
    columns, fields = (*_COLUMNS, *_OUTCOME_COLUMNS), (*_FIELDS, *_OUTCOME_FIELDS)
    code = view.end(Listing("Healing", healing.source, rows, columns, done, fields), outcome)
    stays_lost = ExitCode.CORRUPTION if outcome.lost else ExitCode.CLEAN
    return worst(code, stays_lost, ExitCode.CLEAN if wanted.are_all_known else ExitCode.INCOMPLETE)


def _wanted(selection: Selection, result: Path | None, *, all_segments: bool) -> WantedSegments:
    """Raises TieredctlError unless the segments are named in exactly one way."""
    from tieredctl.ops.healing.index_diagnosis import LOST, read_verified_segments
    from tieredctl.ops.metadata.selection import Selection

    if [selection != Selection(), result is not None, all_segments].count(True) != 1:
        ways = "--segment-id, a topic (--topic, --topic-id, --partition), --result, --all"
        raise TieredctlError(ErrorCode.USAGE, f"Name the segments in one way: {ways}.")
    if result is not None:
        ids, cluster_id, is_complete = read_verified_segments(result, LOST)
        return WantedSegments(ids, cluster_id=cluster_id, are_all_known=is_complete)
    return WantedSegments(tuple(dict.fromkeys(selection.segment_ids)) or None, selection)


def _what(to_write: int, to_record: int, store_url: str) -> str:
    """For the sentence that asks for confirmation."""
    recording = f"recording {counted(to_record, 'object')} as lost in {store_url}"
    if not to_write:
        return recording[0].upper() + recording[1:]
    writing = f"Writing {counted(to_write, 'object')} to {store_url}"
    return f"{writing} and {recording}" if to_record else writing


def _progress(segment: HealedSegment) -> str:
    return f"{segment.plan.metadata.segment_id}: {counted(len(segment.written), 'object')} written"


def _code(healing: SegmentsHealing, wanted: WantedSegments) -> ExitCode:
    """For a run that writes nothing."""
    codes = [ExitCode.CLEAN]
    if healing.to_write():
        codes.append(ExitCode.FINDINGS)
    if healing.unaccepted():
        codes.append(ExitCode.CORRUPTION)
    if healing.passed_over or healing.unknown() or not wanted.are_all_known:
        codes.append(ExitCode.INCOMPLETE)
    return worst(*codes)


def _sentences(healing: SegmentsHealing, wanted: WantedSegments, *, accept_loss: bool) -> Iterator[str]:
    yield from wanted.doubts()
    for segment_id, reason in healing.passed_over.items():
        yield f"Passed over: {segment_id}: {reason}"
    if wanted.segment_ids is not None and not wanted.segment_ids:
        yield "The file names no segment with a missing or damaged object: nothing was looked at."
        return
    if not healing.plans:
        yield f"All objects of {counted(healing.segments, 'segment')} are sound: there is nothing to heal."
        return
    if healing.to_write():
        of = f"{len(healing.plans)} of {counted(healing.segments, 'segment')}"
        yield f"{counted(healing.to_write(), 'object')} to write for {of}."
    if unknown := healing.unknown():
        yield f"It is unknown whether anything has the bytes of {counted(unknown, 'object')}:"
        places = [one for plan in healing.plans for one in plan.unknown()]
        yield from dict.fromkeys(f"  {one.obstacle}" for one in places)
    if lost := healing.unaccepted():
        yield f"Nothing has the bytes of {counted(lost, 'object')}: -o wide shows what was tried."
        if accept_loss:
            yield "--apply records them as lost; a backup or another replica may still have them."
