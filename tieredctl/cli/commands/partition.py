"""`tieredctl partition …`: partitions of topics that are gone, and what they left in remote storage."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, topic_id_partition
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.options import ClusterId, KraftSnapshot, LogDirs, NoLease, Yes
from tieredctl.cli.places import ClusterOptions, RemoteOptions
from tieredctl.cli.removal_options import DeleteVersions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.change import totals
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.kept_versions import for_good, retention_of
from tieredctl.ops.topic_removal.remover import RemovedPartition, RemovedPartitionRow
from tieredctl.ops.topic_removal.topic_removal_plan import PartitionRemovalRow, demand_silence
from tieredctl.wiring.places import ClusterPlace
from tieredctl.wiring.topic_removal import TopicRemoval, offline_topic_removal, topic_removal

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.callback()
def partition() -> None:
    """Keeps `remove` a verb of its own, though it is the only one."""


@_commands.command("remove", cls=CommandOfIds)
def remove(
    *,
    partition: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC-ID[:PARTITION]", help="A topic id for all its partitions, or TOPIC-ID:PARTITION for one."
        ),
    ],
    cluster_options: ClusterOptions,
    kraft_snapshot: KraftSnapshot = None,
    log_dir: LogDirs = None,
    remote_options: RemoteOptions,
    choice: ApplyChoice,
    segment_events_only: Annotated[
        bool,
        typer.Option("--segment-events-only", help="Do not write partition-delete records (no broker writes them)."),
    ] = False,
    even_if_live: Annotated[
        bool,
        typer.Option(
            "--even-if-live",
            help="Proceed even if the topic still exists; consumers lose what is only in remote storage.",
        ),
    ] = False,
    brokers_are_done: Annotated[
        bool,
        typer.Option("--brokers-are-done", help="Proceed even if brokers wrote events for it in the last ten minutes."),
    ] = False,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    view: ProgressView,
) -> ExitCode:
    """Remove what a deleted topic left in remote storage, and record that in the metadata, as in KIP-405.

    If interrupted, run the same command again. Exit 5 if something is left. With --kraft-snapshot and --log-dir, the
    plan for a cluster that is down is shown.

    For example: tieredctl partition remove usSppaB_RU2xGRV7FKvWnA --bootstrap-server broker:9092 --store s3://tiered
    """
    apply = choice.is_made
    topic_id, number = topic_id_partition(partition)
    if cluster_options.bootstrap_server is None and (apply or kraft_snapshot is None):
        message = "This needs a live cluster: give --bootstrap-server."
        hint = "If the cluster no longer exists, `tieredctl orphans plan` finds what its topics left."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
    place = cluster_options.place_or_snapshot(kraft_snapshot)
    remote = remote_options.place()
    if not isinstance(place, ClusterPlace):
        with offline_topic_removal(
            *(topic_id, number, place, log_dir or (), remote),
            segment_events_only=segment_events_only,
            even_if_live=even_if_live,
            now_ms=clock_ms(),
        ) as removal:
            view.say(_sentence(removal, removal.summary()))
            return view.plan("PartitionRemovalPlan", removal, PartitionRemovalRow)
    if log_dir:
        raise TieredctlError(ErrorCode.USAGE, "--log-dir is for --kraft-snapshot.", hint="Omit it with a live cluster.")
    with topic_removal(
        *(topic_id, number, place, remote),
        segment_events_only=segment_events_only,
        even_if_live=even_if_live,
        to_apply=apply,
        now_ms=clock_ms(),
    ) as removal:
        summary = removal.summary()
        view.say(_sentence(removal, summary))
        # What an earlier run deleted may have left versions, of which no listing tells.
        if not apply or (not delete_versions and removal.is_done):
            advice = choice.advice(changes=delete_versions or not removal.is_done)
            return view.plan("PartitionRemovalPlan", removal, PartitionRemovalRow, advice=advice)
        if not brokers_are_done:
            demand_silence(removal.plans, topic_id, clock_ms())
        final = for_good(retention_of(removal.store), with_versions=delete_versions)
        and_versions = " and all versions of what was removed" if delete_versions else ""
        what = f"Deleting {_amount(summary)}{and_versions} from {removal.store.url}{final}"
        demand_confirmation(what, removal.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        outcome, stays = removal.apply(
            *(clock_ms, view.teller(_progress)), without_lease=no_lease, with_versions=delete_versions
        )
    rows = [one.row() for one in outcome.partitions]
    done = totals(rows, "done", "failed", "segments_done", "events")
    view.say(
        f"Removed {counted(done['segmentsDone'], 'segment')} and {counted(done['done'], 'object')}; "
        f"wrote {counted(done['events'], 'event')}.",
        *stays.sentences(),
        *(f"Left alone: {one}." for row in rows for one in row.appeared),
    )
    ended = {**summary, **done, "applied": True, "stopped": outcome.stopped_by, "stays": stays.document()}
    return view.end(result_listing("PartitionRemoval", removal.source(), RemovedPartitionRow, rows, ended), outcome)


def _amount(summary: Document) -> str:
    segments, objects = counted(summary["segments"], "segment"), counted(summary["objects"], "object")
    return f"{segments}, {objects}, {size_text(summary['bytes'])}"


def _sentence(removal: TopicRemoval, summary: Document) -> str:
    partitions = counted(summary["partitions"], "partition")
    topic = removal.plans[0].state.partition.topic
    return f"Still to remove from {removal.store.url}, topic {topic} ({partitions}): {_amount(summary)}."


def _progress(done: RemovedPartition) -> str:
    segments = f"{done.segments} of {counted(len(done.plan.segments), 'segment')}"
    return f"{done.plan.state.partition}: {segments}, {size_text(done.bytes)}"
