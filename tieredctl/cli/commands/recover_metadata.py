"""`tieredctl recover metadata`: the metadata topic, rebuilt from the remote store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer

from tieredctl.cli.arguments import GREATEST_INT32, clock_ms, kafka_id, pairs
from tieredctl.cli.confirmation import demand_confirmation, demand_same_cluster
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    Export,
    LayoutName,
    LayoutOptions,
    LogDirs,
    MetricsFile,
    NoLease,
    Output,
    Partition,
    ProgressStyle,
    Quiet,
    Store,
    StoreOptions,
    Topic,
    TopicId,
    Yes,
)
from tieredctl.cli.outcome import finding_documents, finish, say, say_error
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn
from tieredctl.cli.places import metadata_place, store_place
from tieredctl.cli.progress import LinesApart, ProgressMode, counted_progress
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.kafka.cluster import Cluster
from tieredctl.kafka.source import METADATA_TOPIC, MetadataSource
from tieredctl.layouts.protocol import AUTO
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartitions
from tieredctl.ops.metadata_recovery.metadata_topic import (
    demand_configured_partitions,
    demand_lasting,
    metadata_topic_faults,
)
from tieredctl.ops.metadata_recovery.recoverer import PartitionOutcome, Recoverer, RecoveryOutcome
from tieredctl.ops.metadata_recovery.recovery_plan import Planner, Recovery, demand_mapped
from tieredctl.ops.metadata_recovery.segment_judgement import Judge
from tieredctl.ops.metadata_recovery.steps import AFTERWARDS, steps
from tieredctl.ops.metadata_recovery.stored_segments import StoreListing
from tieredctl.storage.protocol import WritableObjectStore
from tieredctl.wiring.places import MetadataPlace


def _left_out(item: Item) -> str | None:
    return ", ".join(f"{count} {reason}" for reason, count in item["leftOut"].items()) or None


_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("SEGMENTS", "segments"),
    TableColumn("IN-METADATA", "inMetadata"),
    TableColumn("TO-RECOVER", "toRecover"),
    TableColumn("BYTES", "bytes"),
    TableColumn("LEFT-OUT", _left_out),
    TableColumn("LOG-START", "logStartOffset"),
    TableColumn("LOCAL-START", "localLogStartOffset"),
    TableColumn("TOPIC-ID", "topicId", wide=True),
    TableColumn("METADATA-PARTITION", "metadataPartition", wide=True),
)
_OUTCOME_COLUMNS = (
    *_COLUMNS,
    TableColumn("RECOVERED", "recovered"),
    TableColumn("EVENTS", "events"),
    TableColumn("LEFT", "left"),
)


def metadata(
    log_dir: LogDirs = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    export: Export = None,
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    topic: Topic = None,
    topic_id: TopicId = None,
    partition: Partition = None,
    map_topic_id: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW", help="A topic that was created anew: segments of the old id are the new one's."
        ),
    ] = None,
    metadata_partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=GREATEST_INT32,
            help="With how many partitions of the metadata topic brokers are configured, where they do not tell.",
        ),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else it is only shown what would be done.")] = False,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    no_lease: NoLease = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    progress: ProgressStyle = ProgressMode.AUTO,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Rebuild __remote_log_metadata from the remote store: what it lacks is shown, and with --apply written.

    Exit 3 if something is to be recovered. Interrupted anywhere, the same command goes on. Read what it says of the
    order of steps before brokers are restarted.
    """
    if apply and bootstrap_server is None:
        message = "Events are written to a live cluster: give --bootstrap-server."
        raise TieredctlError(
            ErrorCode.NO_SOURCE, message, hint="With --log-dir or --export it is only shown what is lacking."
        )
    ids = {kafka_id(old): kafka_id(new) for old, new in pairs("--map-topic-id", map_topic_id).items()}
    remote = store_place(store, store_option, layout, layout_option)
    opened, chosen = remote.open_writable() if apply else remote.open()
    place = metadata_place(log_dir, bootstrap_server, command_config, export)
    followed = FollowedMetadata(partial(_source, place))
    # What cannot be read, or is another cluster's, is refused now, not after the store was read.
    first = followed.source()
    place.demand_topic_based()
    if apply:
        demand_same_cluster(first.cluster_id, cluster_id)
    known = KnownMetadata(followed)
    source: Document = {"bootstrapServer": bootstrap_server, "store": opened.url}
    with (
        nullcontext() if place.cluster is None else place.cluster.open() as cluster,
        counted_progress(progress, quiet, "segments") as told,
    ):
        if cluster is not None and (apply or metadata_partitions is not None):
            demand_configured_partitions(cluster, len(first.metadata_partitions()), metadata_partitions)
        faults = [] if cluster is None else metadata_topic_faults(cluster)
        if apply:
            demand_lasting(faults)
        listing = StoreListing(opened, chosen, Selection(topic, topic_id, partition))
        recovery = _plan(listing, known, cluster, metadata_partitions, told)
    demand_mapped(recovery, ids, chosen)
    source["clusterId"] = followed.cluster_id
    is_applied = apply and recovery.to_recover > 0
    todo = steps(recovery, is_live=bootstrap_server is not None)
    if not quiet:
        _say_plan(recovery, opened.url, () if is_applied and not recovery.moved else todo)
    findings = [*faults, *recovery.all_findings()]
    summary = recovery.summary() | {"steps": todo, "findings": finding_documents(findings)}
    if not is_applied or place.cluster is None:
        rows = [one.document() for one in recovery.partitions]
        listed = Listing("MetadataRecoveryPlan", source, rows, _COLUMNS, summary | {"applied": False})
        needed = ExitCode.FINDINGS if recovery.to_recover else ExitCode.CLEAN
        return _finish(listed, findings, output, needed, quiet=quiet, metrics_file=metrics_file)
    what = f"{recovery.to_recover} segments are to be written to {METADATA_TOPIC}"
    demand_confirmation(what, followed.cluster_id, yes=yes, typed_cluster_id=cluster_id)
    with (
        lease_held(cast("WritableObjectStore", opened), "recover metadata", clock_ms, unguarded=no_lease) as lease,
        place.cluster.open() as now,
        place.cluster.open_metadata_producer() as producer,
    ):
        look = LivePartitions(now).look
        outcome = Recoverer(recovery, known, producer, lease, clock_ms, look, opened, tell=_told(quiet)).run()
    return _end(recovery, outcome, findings, source, summary, output, quiet=quiet, metrics_file=metrics_file)


def _source(place: MetadataPlace) -> MetadataSource:
    """Raises TieredctlError as the source does; with what to do where there is no metadata topic at all."""
    try:
        return place.open_source()
    except TieredctlError as error:
        if error.code != ErrorCode.NO_METADATA_TOPIC:
            raise
        create = f"kafka-topics.sh --create --topic {METADATA_TOPIC} --partitions N"
        hint = (
            "Was it deleted? Make it anew, with as many partitions as brokers are configured with (50 by default): "
            f"{create} --replication-factor R --config cleanup.policy=delete --config retention.ms=-1"
        )
        raise TieredctlError(error.code, error.message, hint=hint) from None


def _plan(
    listing: StoreListing,
    known: KnownMetadata,
    cluster: Cluster | None,
    metadata_partitions: int | None,
    told: Callable[[int, int], None],
) -> Recovery:
    """Lists first, and reads the metadata afterwards: what a broker copies meanwhile is known there before it is
    stored."""
    stored = list(listing.partitions())
    known.refresh()
    live = None if cluster is None else LivePartitions(cluster)
    traits = known.traits
    if live is not None and not traits.tells_txn:
        traits = traits._replace(tells_txn=live.tell_txn())
    look = None if live is None else live.look
    judge = Judge(known, listing.store, listing.layout, traits)
    return Planner(known, judge, look, metadata_partitions, told).plan(listing, stored)


def _say_plan(recovery: Recovery, url: str, todo: Sequence[str]) -> None:
    counted = recovery.summary()
    say(
        f"{counted['segments']} segments in {url}: {counted['inMetadata']} are in the metadata, "
        f"{counted['toRecover']} to recover, {counted['leftOut']} left out."
    )
    for number, step in enumerate(todo, 1):
        say(f"  {number}. {step}")


def _finish(
    listing: Listing,
    findings: Sequence[Finding],
    output: OutputFormat,
    otherwise: ExitCode,
    *,
    quiet: bool,
    metrics_file: Path | None,
) -> ExitCode:
    code = finish(listing, output, findings, quiet=quiet, metrics_file=metrics_file, otherwise=otherwise)
    return worst(code, otherwise)


def _told(quiet: bool) -> Callable[[PartitionOutcome], None]:
    lines = LinesApart()

    def tell(outcome: PartitionOutcome) -> None:
        if not quiet and lines.is_due():
            planned = len(outcome.plan.to_recover())
            say(f"{outcome.plan.partition}: {outcome.segments} of {planned} segments")

    return tell


def _end(
    recovery: Recovery,
    outcome: RecoveryOutcome,
    findings: Sequence[Finding],
    source: Document,
    planned: Document,
    output: OutputFormat,
    *,
    quiet: bool,
    metrics_file: Path | None,
) -> ExitCode:
    rows = [one.document() for one in outcome.partitions]
    done = {name: sum(row[name] for row in rows) for name in ("recovered", "events", "goneMeanwhile", "left")}
    stopped = outcome.stopped
    if not quiet:
        say(f"Recovered {done['recovered']} segments with {done['events']} events; {done['left']} are left.")
        for segment_id in (one for row in rows for one in row["changedMeanwhile"]):
            say(f"Left alone: segment {segment_id}: its objects are no longer those that the plan was made of.")
        if outcome.is_complete and not recovery.moved:
            say(AFTERWARDS)
    summary = {**planned, **done, "applied": True, "stopped": stopped and stopped.code}
    listing = Listing("MetadataRecovery", source, rows, _OUTCOME_COLUMNS, summary)
    code = ExitCode.CLEAN if outcome.is_complete else ExitCode.INCOMPLETE
    if stopped is not None:
        code = worst(code, stopped.exit_code)
    code = _finish(listing, findings, output, code, quiet=quiet, metrics_file=metrics_file)
    if stopped is not None:
        say_error(stopped)
    return code
