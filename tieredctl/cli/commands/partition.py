"""`tieredctl partition …`: partitions of topics that are gone, and what they left in remote storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, cast

import typer

from tieredctl.cli.arguments import clock_ms, topic_id_partition
from tieredctl.cli.commands.removal_outcome import DeleteVersions, say_what_stays
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    LayoutName,
    LayoutOptions,
    MetricsFile,
    NoLease,
    Output,
    Quiet,
    Store,
    StoreOptions,
    Yes,
)
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Listing, OutputFormat, TableColumn, printable
from tieredctl.cli.places import store_place
from tieredctl.cli.progress import LinesApart
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.layouts.protocol import AUTO
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.kept_versions import WhatStays, for_good, retention_of
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.topic_removal.remover import PartitionOutcome, RemotePartitionRemover, RemovalOutcome
from tieredctl.ops.topic_removal.topic_metadata import PartitionState, TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import PartitionPlan, plan_removal, removal_scope
from tieredctl.storage.protocol import WritableObjectStore
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, TopicsPlace

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_RECENT_MS = 600_000
_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("STATE", "state"),
    TableColumn("SEGMENTS", "segments"),
    TableColumn("OBJECTS", "objects"),
    TableColumn("BYTES", "bytes"),
    TableColumn("LEFTOVERS", "leftovers"),
    TableColumn("TOPIC-ID", "topicId", wide=True),
    TableColumn("METADATA-PARTITION", "metadataPartition", wide=True),
)
_OUTCOME_COLUMNS = (
    *_COLUMNS,
    TableColumn("DONE", "done"),
    TableColumn("FAILED", "failed"),
    TableColumn("EVENTS", "events"),
    TableColumn("COMPLETE", "complete"),
)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.callback()
def partition() -> None:
    """Keeps `remove` a verb of its own, though it is the only one."""


@_commands.command("remove", cls=CommandOfIds)
def remove(
    partition: Annotated[str, typer.Argument(metavar="TOPIC-ID[:PARTITION]", help="All of its partitions, or one.")],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else it is only shown what would be done.")] = False,
    segment_events_only: Annotated[
        bool, typer.Option("--segment-events-only", help="Write no partition-delete records, which no broker writes.")
    ] = False,
    even_if_live: Annotated[
        bool,
        typer.Option(
            "--even-if-live",
            help="Though the cluster still has the topic; consumers lose what is only in remote storage.",
        ),
    ] = False,
    brokers_are_done: Annotated[
        bool,
        typer.Option("--brokers-are-done", help="Though brokers wrote events of it in the last ten minutes."),
    ] = False,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Remove what a deleted topic has in remote storage, and record it in the metadata, as KIP-405 describes it.

    Interrupted anywhere, the same command goes on. Exit 5 if something is left.
    """
    topic_id, number = topic_id_partition(partition)
    if bootstrap_server is None:
        message = "Partitions are removed by what the live cluster says, and it is told: give --bootstrap-server."
        hint = "For a cluster that is no more, `tieredctl orphans plan` finds what its topics left."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
    remote = store_place(store, store_option, layout, layout_option)
    opened, chosen = remote.open_writable() if apply else remote.open()
    cluster = ClusterPlace(bootstrap_server, command_config)
    place = MetadataPlace(cluster=cluster)
    followed = FollowedMetadata(place.open_source)
    metadata = TopicMetadata(topic_id, number, followed)
    metadata.refresh()
    place.demand_topic_based()
    with TopicsPlace.beside(place).open() as topics:
        named = {"segment_events_only": segment_events_only, "even_if_live": even_if_live}
        scope = removal_scope(topic_id, topics.cluster, **named)
    plans = plan_removal(metadata, opened, chosen, scope)
    source = {"bootstrapServer": bootstrap_server, "clusterId": followed.cluster_id, "store": opened.url}
    summary = _totals(plan.document() for plan in plans)
    if not quiet:
        _say_plan(plans, _amount(summary), opened.url)
    # What an earlier run deleted may have left versions, of which no listing tells.
    if not apply or (not delete_versions and all(plan.is_done(scope) for plan in plans)):
        rows = [plan.document() for plan in plans]
        listing = Listing("PartitionRemovalPlan", source, rows, _COLUMNS, summary | {"applied": False})
        return finish(listing, output, (), quiet=quiet, metrics_file=metrics_file)
    if not brokers_are_done:
        _demand_silence(plans, topic_id)
    final = for_good(retention_of(opened), with_versions=delete_versions)
    and_versions = " and all versions of what was removed" if delete_versions else ""
    what = f"The deletion{final} of {_amount(summary)}{and_versions}, from {opened.url}"
    demand_confirmation(what, followed.cluster_id, yes=yes, typed_cluster_id=cluster_id)
    writable = cast("WritableObjectStore", opened)
    with (
        lease_held(writable, "partition remove", clock_ms, unguarded=no_lease) as lease,
        cluster.open_metadata_producer() as producer,
    ):
        remover = RemotePartitionRemover(
            *(plans, metadata, writable, chosen, producer, lease, clock_ms, scope),
            tell=_told(quiet),
            with_versions=delete_versions,
        )
        outcome = remover.run()
    objects = sum(one.objects for one in outcome.partitions)
    removed_bytes = sum(one.bytes for one in outcome.partitions)
    stays = WhatStays(retention_of(writable), objects, removed_bytes, outcome.versions)
    return _end(outcome, source, summary, stays, output, quiet=quiet, metrics_file=metrics_file)


def _totals(rows: Iterable[Document]) -> Document:
    """Of all partitions."""
    counted = ("segments", "objects", "bytes", "leftovers", "copiesLeftAlone", "unknownObjects")
    listed = list(rows)
    return {"partitions": len(listed), **{name: sum(row[name] for row in listed) for name in counted}}


def _amount(totals: Document) -> str:
    return f"{totals['segments']} segments, {totals['objects']} objects, {totals['bytes']} bytes"


def _say_plan(plans: Sequence[PartitionPlan], what: str, url: str) -> None:
    partitions = "1 partition" if len(plans) == 1 else f"{len(plans)} partitions"
    say(f"{what}, are left to remove of {plans[0].state.partition.topic} ({partitions}) from {url}.")


def _demand_silence(plans: Sequence[PartitionPlan], topic_id: str) -> None:
    """Raises TieredctlError where a broker may still be deleting what is to be deleted: at an event of its own that no
    longer fits, it would stop reading metadata altogether."""
    recent = sum(_is_recent(plan.state) for plan in plans if plan.segments)
    if recent:
        what = "a partition" if recent == 1 else f"{recent} partitions"
        message = f"Brokers wrote events of {what} of {topic_id} in the last ten minutes: they may still be deleting."
        raise TieredctlError(ErrorCode.TOPIC_IN_USE, message)


def _is_recent(state: PartitionState) -> bool:
    return state.last_broker_event is not None and clock_ms() - state.last_broker_event.timestamp_ms < _RECENT_MS


def _told(quiet: bool) -> Callable[[PartitionOutcome], None]:
    lines = LinesApart()

    def tell(outcome: PartitionOutcome) -> None:
        if not quiet and lines.is_due():
            planned = len(outcome.plan.segments)
            say(f"{outcome.plan.state.partition}: {outcome.segments} of {planned} segments, {outcome.bytes} bytes")

    return tell


def _end(
    outcome: RemovalOutcome,
    source: Document,
    planned: Document,
    stays: WhatStays,
    output: OutputFormat,
    *,
    quiet: bool,
    metrics_file: Path | None,
) -> ExitCode:
    rows = [one.document() for one in outcome.partitions]
    done = {name: sum(row[name] for row in rows) for name in ("done", "failed", "segmentsDone", "events")}
    stopped = outcome.stopped
    summary = {**planned, **done, "applied": True, "stopped": stopped and stopped.code}
    summary["stays"] = stays.document()
    if not quiet:
        say(f"Removed {done['segmentsDone']} segments and {done['done']} objects; wrote {done['events']} events.")
        say_what_stays(stays)
        for one in (text for row in rows for text in row["appeared"]):
            say(printable(f"Left alone: {one}."))
    listing = Listing("PartitionRemoval", source, rows, _OUTCOME_COLUMNS, summary)
    code = ExitCode.CLEAN if outcome.is_complete else ExitCode.INCOMPLETE
    if stopped is not None:
        code = worst(code, stopped.exit_code)
    code = finish(listing, output, (), quiet=quiet, metrics_file=metrics_file, otherwise=code)
    if stopped is not None:
        say_error(stopped)
    return code
