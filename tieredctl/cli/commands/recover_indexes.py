"""`tieredctl recover indexes`: a segment's indexes, rebuilt from its log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, kafka_id
from tieredctl.cli.change_options import ApplyChoice
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.options import ClusterId, Yes
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.places import MetadataOptions, RemoteOptions
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.index_recovery.index_plan import IndexRecoveryPlan
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE
from tieredctl.wiring.index_recovery import SegmentRecovery, plan_segment_recovery

_COLUMNS = (
    TableColumn("PART", "part"),
    TableColumn("CONDITION", "condition"),
    TableColumn("ACTION", "action"),
    size_column("bytes"),
    size_column("rebuiltBytes", "REBUILT"),
    TableColumn("REASON", "reason", wide=True),
    TableColumn("KEY", "key", wide=True),
)
_OUTCOME_COLUMNS = (
    *_COLUMNS,
    TableColumn("WRITTEN", "written"),
    TableColumn("QUARANTINED-AS", "quarantinedAs", wide=True),
)
_FIELDS = ("part", "condition", "action", "bytes", "rebuiltBytes", "key", "reason", "obstacle")


def indexes(
    *,
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    remote_options: RemoteOptions,
    metadata_options: MetadataOptions,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="The topic's index.interval.bytes; a live cluster is asked by default.",
            min=0,
            max=(1 << 31) - 1,
        ),
    ] = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Rebuild the missing or damaged indexes of a segment, and its producer snapshot, from its log.

    Damaged objects are first copied to quarantine. Exit 3 if something needs repair, 5 if something stays unrepaired.

    For example: tieredctl recover indexes zYJ8cWbWS6Wrn_UH97CRKw --bootstrap-server broker:9092 --store s3://tiered
    """
    apply = choice.is_made
    place = metadata_options.place()
    remote = remote_options.place()
    recovery = plan_segment_recovery(segment_id, place, remote, index_interval_bytes, to_apply=apply)
    plan = recovery.plan
    advice = _advice(recovery)
    view.say(*_sentences(plan))
    if not apply or not plan.to_write():
        advice = [*advice, *choice.advice(changes=bool(plan.to_write()))]
        return view.plan("IndexRecoveryPlan", recovery, _COLUMNS, _FIELDS, _code(plan, apply), advice)
    what = f"Writing {counted(len(plan.to_write()), 'object')} of segment {segment_id} to {recovery.store_url}"
    known_cluster_id = recovery.cluster_id or cluster_id
    if known_cluster_id is None:
        message = "It is unknown which cluster this is."
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, message, hint="Give --cluster-id.")
    demand_confirmation(what, known_cluster_id, yes=yes, typed_cluster_id=cluster_id)
    outcome = recovery.apply(clock_ms)
    done = {**recovery.summary(), "applied": True, "written": len(outcome.written)}
    fields = (*_FIELDS, "written", "quarantinedAs")
    listing = Listing("IndexRecovery", recovery.source(), outcome.rows(), _OUTCOME_COLUMNS, done, fields)
    return view.end(listing, outcome, advice=advice)


def _code(plan: IndexRecoveryPlan, apply: bool) -> ExitCode:
    """For a run that writes nothing."""
    if plan.log_damage is not None:
        return ExitCode.CORRUPTION
    if not plan.to_write() and not plan.impossible():
        return ExitCode.CLEAN
    return ExitCode.INCOMPLETE if apply else ExitCode.FINDINGS


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


def _advice(recovery: SegmentRecovery) -> list[str]:
    """What the operator has to do about the brokers, which keep using what they fetched before."""
    return [
        "A broker that has read this segment keeps using the indexes it cached, even after a restart:",
        f"  {REMOTE_LOG_INDEX_CACHE}/{{{','.join(recovery.cached_file_names())}}}",
        *(f"  found: {path}" for path in recovery.cached_files()),
        (
            "While it runs, set remote.log.index.file.cache.total.size.bytes to 1 with kafka-configs, which empties "
            "the cache, and undo that at once: until then, reads of remote segments may fail."
        ),
        "Or delete the files and restart it: deleting them alone does nothing.",
    ]
