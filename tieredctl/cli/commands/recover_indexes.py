"""`tieredctl recover indexes`: what lies beside a segment's log, rebuilt from the log."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from tieredctl.cli.arguments import clock_ms, kafka_id
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    Export,
    LayoutName,
    LayoutOptions,
    LogDirs,
    MetricsFile,
    Output,
    Quiet,
    Store,
    StoreOptions,
    Yes,
)
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Listing, OutputFormat, TableColumn, printable
from tieredctl.cli.places import metadata_place, store_place
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.layouts.protocol import AUTO
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.index_recovery.applying import IndexRecovery, IndexRecoveryOutcome, demand_conditional_writes
from tieredctl.ops.index_recovery.broker_cache import cached_file_names, cached_files
from tieredctl.ops.index_recovery.index_plan import IndexRecoveryPlan, finished_segment, plan_index_recovery
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES
from tieredctl.storage.protocol import WritableObjectStore
from tieredctl.wiring.places import ClusterPlace

_INDEX_INTERVAL = "index.interval.bytes"
_COLUMNS = (
    TableColumn("PART", "part"),
    TableColumn("CONDITION", "condition"),
    TableColumn("ACTION", "action"),
    TableColumn("BYTES", "bytes"),
    TableColumn("REBUILT", "rebuiltBytes"),
    TableColumn("REASON", "reason", wide=True),
    TableColumn("KEY", "key", wide=True),
)
_OUTCOME_COLUMNS = (
    *_COLUMNS,
    TableColumn("WRITTEN", "written"),
    TableColumn("QUARANTINED-AS", "quarantinedAs", wide=True),
)


def indexes(
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    log_dir: LogDirs = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    export: Export = None,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="The topic's index.interval.bytes; else a live cluster is asked.", min=0),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else it is only shown what would be done.")] = False,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Rebuild the missing or damaged indexes of a segment, and its producer snapshot, from its log.

    Damaged objects are copied into quarantine first. Exit 3 if something is to mend, 5 if something stays unmended.
    """
    remote = store_place(store, store_option, layout, layout_option)
    opened, chosen = remote.open_writable() if apply else remote.open()
    place = metadata_place(log_dir, bootstrap_server, command_config, export)

    def read() -> EventStream:
        return EventStream(place.open_source())

    stream = read()
    segment = finished_segment(stream, segment_id)
    topic = segment.metadata.topic_id_partition.topic
    if index_interval_bytes is None:
        index_interval_bytes = _index_interval(topic, place.cluster)
    plan = plan_index_recovery(segment, opened, chosen, index_interval_bytes)
    cached = {
        "files": cached_file_names(plan.metadata),
        "found": [str(path) for path in cached_files(plan.metadata, log_dir or ())],
    }
    summary = {**plan.summary(), "indexIntervalBytes": index_interval_bytes, "brokerCache": cached}
    source = {**stream.source.describe(), "store": opened.url, "layout": chosen.name}
    if not quiet:
        _say_plan(plan)
    if not apply or not plan.to_write():
        rows = [part.document() for part in plan.parts]
        listing = Listing("IndexRecoveryPlan", source, rows, _COLUMNS, {**summary, "applied": False})
        code = finish(listing, output, (), quiet=quiet, metrics_file=metrics_file, otherwise=_code(plan, apply))
        _say_cache(cached, quiet)
        return code
    writable = cast("WritableObjectStore", opened)
    demand_conditional_writes(writable)
    what = f"{len(plan.to_write())} objects of segment {segment_id} are to be written to {opened.url}"
    known_cluster_id = stream.source.cluster_id or cluster_id
    if known_cluster_id is None:
        raise TieredctlError(
            ErrorCode.NOT_CONFIRMED, "Nothing here says which cluster this is.", hint="Give --cluster-id."
        )
    demand_confirmation(what, known_cluster_id, yes=yes, typed_cluster_id=cluster_id)
    with lease_held(writable, "recover indexes", clock_ms) as lease:
        outcome = IndexRecovery(plan, writable, read).run(lease)
    done = {**summary, "applied": True, "written": len(outcome.written)}
    listing = Listing("IndexRecovery", source, outcome.rows(), _OUTCOME_COLUMNS, done)
    code = finish(listing, output, (), quiet=quiet, metrics_file=metrics_file, otherwise=_outcome_code(outcome))
    _say_cache(cached, quiet)
    if outcome.stopped is not None:
        say_error(outcome.stopped)
    return code


def _index_interval(topic: str, place: ClusterPlace | None) -> int:
    """What the live cluster says, if there is one; Kafka's default for a topic that it no longer has."""
    if place is None:
        return DEFAULT_INDEX_INTERVAL_BYTES
    with place.open() as cluster:
        if topic not in cluster.topic_names():
            return DEFAULT_INDEX_INTERVAL_BYTES
        return int(cluster.topic_configs([topic])[topic][_INDEX_INTERVAL].value or DEFAULT_INDEX_INTERVAL_BYTES)


def _code(plan: IndexRecoveryPlan, apply: bool) -> ExitCode:
    """Of a run that writes nothing."""
    if plan.log_damage is not None:
        return ExitCode.CORRUPTION
    if not plan.to_write() and not plan.impossible():
        return ExitCode.CLEAN
    return ExitCode.INCOMPLETE if apply else ExitCode.FINDINGS


def _outcome_code(outcome: IndexRecoveryOutcome) -> ExitCode:
    code = ExitCode.CLEAN if outcome.is_complete else ExitCode.INCOMPLETE
    return code if outcome.stopped is None else worst(code, outcome.stopped.exit_code)


def _say_plan(plan: IndexRecoveryPlan) -> None:
    where = f"segment {plan.metadata.segment_id} of {plan.metadata.topic_id_partition}"
    if plan.log_damage is not None:
        say(printable(f"The log of {where} is not sound: {plan.log_damage}. Nothing can be rebuilt from it."))
    for part in plan.impossible():
        said = f"{part.found.part.value} is {part.found.condition.value} and stays so: {part.obstacle}."
        say(printable(said))
    if plan.to_write():
        say(f"{len(plan.to_write())} objects are to be written for {where}.")
    elif not plan.impossible():
        say(f"All is sound beside the log of {where}: there is nothing to write.")


def _say_cache(cached: Document, quiet: bool) -> None:
    """What the operator has to do about the brokers, which go on with what they fetched before."""
    if quiet:
        return
    say("A broker that read the segment before goes on with the indexes that it cached then, after a restart too:")
    say(f"  {REMOTE_LOG_INDEX_CACHE}/{{{','.join(cached['files'])}}}")
    for path in cached["found"]:
        say(printable(f"  found: {path}"))
    say("While it runs, set remote.log.index.file.cache.total.size.bytes to 1 with kafka-configs, which empties the")
    say("cache, and take that back at once: till then, reads of remote segments may fail. Or delete the files and")
    say("restart it: to delete them alone does nothing.")
