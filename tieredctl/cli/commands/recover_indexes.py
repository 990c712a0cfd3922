"""`tieredctl recover indexes`: segments' indexes, rebuilt from their logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, kafka_id
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation, known_cluster
from tieredctl.cli.options import ClusterId, IndexIntervalBytes, VerifyResult, Yes
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.places import MetadataOptions, PartitionOptions, RemoteOptions
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.ops.healing.index_applying import RecoveredSegment
from tieredctl.ops.healing.index_plan import IndexRecoveryPlan
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE
from tieredctl.wiring.index_recovery import IndexesRecovery, WantedSegments, plan_recovery_of_indexes

if TYPE_CHECKING:
    from tieredctl.ops.metadata.selection import Selection

_COLUMNS = (
    TableColumn("PART", "part"),
    TableColumn("CONDITION", "condition"),
    TableColumn("ACTION", "action"),
    size_column("bytes"),
    size_column("rebuiltBytes", "REBUILT"),
    TableColumn("REASON", "reason", wide=True),
    TableColumn("KEY", "key", wide=True),
)
_SEGMENT_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("START", "startOffset"),
    TableColumn("SEGMENT-ID", "segmentId"),
)
_SEGMENT_FIELDS = ("topic", "topicId", "partition", "startOffset", "segmentId")
_OUTCOME_COLUMNS = (
    TableColumn("WRITTEN", "written"),
    TableColumn("QUARANTINED-AS", "quarantinedAs", wide=True),
)
_FIELDS = ("part", "condition", "action", "bytes", "rebuiltBytes", "key", "reason", "obstacle")
_OUTCOME_FIELDS = ("written", "quarantinedAs")


def indexes(
    *,
    segment_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SEGMENT-ID]...", parser=kafka_id, help="The segments' ids, 22 characters each."),
    ] = None,
    remote_options: RemoteOptions,
    metadata_options: MetadataOptions,
    selected: PartitionOptions,
    verified: VerifyResult = None,
    all_segments: Annotated[bool, typer.Option("--all", help="All segments: every log in the store is read.")] = False,
    index_interval_bytes: IndexIntervalBytes = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Rebuild missing or damaged indexes of segments, and producer snapshots, from the segments' logs.

    Name segments, a topic, what verify found, or all of them: the metadata is read once. Damaged objects are first
    copied to quarantine. Exit 3 if something needs repair, 5 if something stays unrepaired.

    For example: tieredctl recover indexes zYJ8cWbWS6Wrn_UH97CRKw --bootstrap-server broker:9092 --store s3://tiered
    """
    apply = choice.is_made
    wanted = _wanted(segment_ids or [], selected.selection(), verified, all_segments=all_segments)
    recovery = plan_recovery_of_indexes(
        *(wanted, metadata_options.place(), remote_options.place(), index_interval_bytes), to_apply=apply
    )
    is_one = wanted.the_one is not None
    columns = _COLUMNS if is_one else (*_SEGMENT_COLUMNS, *_COLUMNS)
    fields = _FIELDS if is_one else (*_SEGMENT_FIELDS, *_FIELDS)
    to_write = recovery.to_write()
    advice = _advice(recovery)
    view.say(*wanted.doubts(), *(_sentences(recovery.plans[0]) if is_one else _sentences_of_several(recovery)))
    if not apply or not to_write:
        advice = [*advice, *choice.advice(changes=bool(to_write))]
        planned = recovery.summary() | {"applied": False}
        listing = Listing("IndexRecoveryPlan", recovery.source(), recovery.rows(), columns, planned, fields)
        code = view.show(listing, code=_code(recovery, apply))
        view.say(*advice)
        return code
    of = f"segment {wanted.the_one}" if is_one else counted(len(recovery.in_need()), "segment")
    what = f"Writing {counted(to_write, 'object')} of {of} to {recovery.store_url}"
    changed = known_cluster(recovery.cluster_id, cluster_id)
    demand_confirmation(what, changed, yes=yes, typed_cluster_id=cluster_id)
    outcome = recovery.apply(changed, clock_ms, view.teller(_progress))
    done = {**recovery.summary(), "applied": True, "written": outcome.written}
    rows, fields = recovery.rows_done(outcome), (*fields, *_OUTCOME_FIELDS)
    listing = Listing("IndexRecovery", recovery.source(), rows, (*columns, *_OUTCOME_COLUMNS), done, fields)
    return worst(view.end(listing, outcome, advice=advice), _lasting(recovery))


def _wanted(
    segment_ids: Sequence[str], selection: Selection, verified: Path | None, *, all_segments: bool
) -> WantedSegments:
    """Raises TieredctlError unless the segments are named in exactly one way."""
    from tieredctl.ops.healing.index_diagnosis import read_verified_segments
    from tieredctl.ops.metadata.selection import Selection

    ways = [bool(segment_ids), selection != Selection(), verified is not None, all_segments]
    if sum(ways) != 1:
        message = (
            "Name the segments in one way: their ids, a topic (--topic, --topic-id, --partition), --verified, --all."
        )
        raise TieredctlError(ErrorCode.USAGE, message)
    if verified is not None:
        ids, cluster_id, is_complete = read_verified_segments(verified)
        return WantedSegments(ids, cluster_id=cluster_id, are_all_known=is_complete)
    return WantedSegments(tuple(dict.fromkeys(segment_ids)) or None, selection)


def _progress(segment: RecoveredSegment) -> str:
    return f"{segment.plan.metadata.segment_id}: {counted(len(segment.written), 'object')} written"


def _code(recovery: IndexesRecovery, apply: bool) -> ExitCode:
    """For a run that writes nothing."""
    needy = ExitCode.INCOMPLETE if apply else ExitCode.FINDINGS
    return worst(_lasting(recovery), ExitCode.CLEAN if recovery.is_clean else needy)


def _lasting(recovery: IndexesRecovery) -> ExitCode:
    """Of what stays, whatever is written."""
    damaged = ExitCode.CORRUPTION if recovery.has_damaged_log else ExitCode.CLEAN
    return worst(damaged, ExitCode.INCOMPLETE if recovery.is_partial else ExitCode.CLEAN)


def _sentences_of_several(recovery: IndexesRecovery) -> Iterator[str]:
    if recovery.wanted.segment_ids is not None and not recovery.wanted.segment_ids:
        yield "The file names no segment with a missing or damaged index: nothing was looked at."
        return
    for segment_id, reason in recovery.passed_over.items():
        yield f"Passed over: {segment_id}: {reason}"
    if recovery.left_over:
        yield f"{counted(recovery.left_over, 'segment')} left for another run of the same command."
    looked_at = counted(len(recovery.plans), "segment")
    if not recovery.in_need():
        yield f"All indexes of {looked_at} are intact: there is nothing to write."
        return
    damaged = sum(one.log_damage is not None for one in recovery.plans)
    if damaged:
        yield f"The logs of {counted(damaged, 'segment')} are damaged: nothing can be rebuilt from them."
    if recovery.impossible():
        yield f"{counted(recovery.impossible(), 'part')} cannot be rebuilt: -o wide has the reasons."
    yield f"{counted(recovery.to_write(), 'object')} to write for {len(recovery.in_need())} of {looked_at}."


def _sentences(plan: IndexRecoveryPlan) -> Iterator[str]:
    where = f"segment {plan.metadata.segment_id} of {plan.metadata.topic_id_partition}"
    if plan.log_damage is not None:
        yield f"The log of {where} is damaged: {plan.log_damage}. Nothing can be rebuilt from it."
    for part in plan.impossible():
        yield f"{part.found.part.value} is {part.found.condition.value} and cannot be rebuilt: {part.obstacle}."
    if plan.to_write():
        yield f"{counted(len(plan.to_write()), 'object')} to write for {where}."
    elif not plan.impossible():
        yield f"All indexes of {where} are intact: there is nothing to write."


def _advice(recovery: IndexesRecovery) -> list[str]:
    """What the operator has to do about the brokers, which keep using what they fetched before."""
    if recovery.wanted.the_one is None and not recovery.in_need():
        return []
    is_one = recovery.wanted.the_one is not None
    files = ",".join(recovery.cached_file_names()) if is_one else "*_SEGMENT-ID.index,…timeindex,…txnindex"
    these = "this segment" if is_one else "these segments"
    return [
        f"A broker that has read {these} keeps using the indexes it cached, even after a restart:",
        f"  {REMOTE_LOG_INDEX_CACHE}/{{{files}}}",
        *(f"  found: {path}" for path in recovery.cached_files()),
        (
            "While it runs, set remote.log.index.file.cache.total.size.bytes to 1 with kafka-configs, which empties "
            "the cache, and undo that at once: until then, reads of remote segments may fail."
        ),
        "Or delete the files and restart it: deleting them alone does nothing.",
    ]
