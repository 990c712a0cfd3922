"""`tieredctl recover metadata`: the metadata topic, rebuilt from the remote store."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, clock_ms, kafka_id, pairs
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, NoLease, Yes
from tieredctl.cli.output import Item
from tieredctl.cli.places import MetadataOptions, PartitionOptions, RemoteOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView, View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.change import totals
from tieredctl.ops.metadata_recovery.recoverer import RecoveredPartition, RecoveredPartitionRow
from tieredctl.ops.metadata_recovery.recovery_plan import AFTERWARDS, PartitionRecoveryRow
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.wiring.metadata_recovery import MetadataRecovery, metadata_recovery


def _left_out(item: Item) -> str | None:
    return ", ".join(f"{count} {reason}" for reason, count in item["leftOut"].items()) or None


def metadata(
    *,
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    selected: PartitionOptions,
    map_topic_id: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Assign a recreated topic's segments to the new id; repeatable."),
    ] = None,
    metadata_partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=GREATEST_INT32,
            help="The number of metadata topic partitions that brokers are configured with, if they do not report it.",
        ),
    ] = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    no_lease: NoLease = False,
    view: ProgressView,
) -> ExitCode:
    """Rebuild __remote_log_metadata from the remote store: show what is missing, and write it with --apply.

    Exit 3 if something can be recovered. If interrupted, run the same command again. Follow its order of steps before
    you restart brokers.

    For example: tieredctl recover metadata --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
    apply = choice.is_made
    if apply and metadata_options.bootstrap_server is None:
        message = "Events are written to a live cluster: give --bootstrap-server."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint="With another source, only what is missing is shown.")
    ids = {kafka_id(old): kafka_id(new) for old, new in pairs("--map-topic-id", map_topic_id).items()}
    remote = remote_options.place()
    with ExitStack() as opened:
        planned = opened.enter_context(
            metadata_recovery(
                *(metadata_options.place(), remote),
                *(selected.selection(), ids),
                metadata_partitions=metadata_partitions,
                cluster_id=cluster_id,
                to_apply=apply,
            )
        )
        recovery, summary = planned.recovery, planned.summary()
        to_do = recovery.to_recover + recovery.to_take_back
        is_applied = apply and to_do > 0
        _say_plan(planned, view, with_steps=not is_applied or bool(recovery.moved))
        if not is_applied:
            needed = ExitCode.FINDINGS if to_do else ExitCode.CLEAN
            return view.plan("MetadataRecoveryPlan", planned, PartitionRecoveryRow, needed, left_out=_left_out)
        deleted = f", and {counted(recovery.to_take_back, 'deletion')}," if recovery.to_take_back else ""
        what = f"Writing {counted(recovery.to_recover, 'segment')}{deleted} to {METADATA_TOPIC}"
        demand_confirmation(what, planned.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        outcome = planned.apply(clock_ms, view.teller(_progress), without_lease=no_lease)
    rows = [one.row() for one in outcome.partitions]
    done = totals(rows, "recovered", "taken_back", "events", "gone_meanwhile", "left")
    view.say(
        f"Recovered {counted(done['recovered'], 'segment')} with {counted(done['events'], 'event')}; "
        f"{done['left']} left.",
        *(
            f"Left alone: segment {segment_id}: its objects have changed since the plan was made."
            for row in rows
            for segment_id in row.changed_meanwhile
        ),
        *(
            [f"Recorded the deletion of {counted(done['takenBack'], 'segment')} that an earlier run had registered."]
            if done["takenBack"]
            else ()
        ),
        *([AFTERWARDS] if outcome.is_complete and recovery.to_recover and not recovery.moved else ()),
    )
    ended = {**summary, **done, "applied": True, "stopped": outcome.stopped_by}
    listing = result_listing(
        *("MetadataRecovery", planned.source(), RecoveredPartitionRow, rows, ended), left_out=_left_out
    )
    return view.end(listing, outcome, planned.findings())


def _say_plan(planned: MetadataRecovery, view: View, *, with_steps: bool) -> None:
    summary = planned.recovery.summary()
    view.say(
        f"{counted(summary['segments'], 'segment')} in {planned.store_url}: {summary['inMetadata']} in the metadata, "
        f"{summary['toRecover']} to recover, {summary['leftOut']} left out.",
        *(f"  {number}. {step}" for number, step in enumerate(planned.steps() if with_steps else (), 1)),
    )


def _progress(done: RecoveredPartition) -> str:
    return f"{done.plan.partition}: {done.done} of {counted(len(done.plan.to_recover()), 'segment')}"
