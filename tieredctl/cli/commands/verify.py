"""`tieredctl verify`: does the remote store hold what the metadata promises?"""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import now_ms, pairs
from tieredctl.cli.options import (
    Engine,
    LayoutName,
    LayoutOptions,
    Now,
    ProgressStyle,
    SparkConf,
    TieredStore,
    TieredStoreOptions,
)
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.progress import ProgressMode, segment_progress
from tieredctl.cli.verdict import verdict
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.ops.verification.options import Subset, VerifyOptions
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level
from tieredctl.ops.verification.result import Verification
from tieredctl.wiring.verify import verify as run

_NOT_READ = {
    Level.LISTING: "what the objects hold",
    Level.HEADERS: "batches between the first and the last of each log; parts but log, offset and time index",
}


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `verify` known."""
    del meaning  # its own text says more
    app.command(noun)(verify)


def verify(
    *,
    store: TieredStore = None,
    metadata_options: PastMetadataOptions,
    level: Annotated[
        Level, typer.Option(help="Check the listing, the first and last batches too, or every byte.")
    ] = Level.HEADERS,
    selected: SegmentOptions,
    subset: Annotated[
        str | None, typer.Option(metavar="N/M|P%", help="Check a share of the segments: 3/30 or 5%.")
    ] = None,
    layout: LayoutName = "auto",
    store_option: TieredStoreOptions = None,
    layout_option: LayoutOptions = None,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Report copies and deletions as stuck when they take longer.")
    ] = "1h",
    topic_lists: TopicListOptions,
    index_interval: Annotated[
        int,
        typer.Option(
            "--index-interval-bytes",
            "--index-interval",
            metavar="BYTES",
            help="The topics' index.interval.bytes.",
            min=0,
            max=(1 << 31) - 1,
        ),
    ] = DEFAULT_INDEX_INTERVAL_BYTES,
    now: Now = None,
    engine: Engine = LOCAL,
    spark_conf: SparkConf = None,
    progress: ProgressStyle = ProgressMode.AUTO,
    view: FindingListView,
) -> ExitCode:
    """Prove that the remote store holds what the metadata promises. Exit 4 if something is lost or altered.

    For example: tieredctl verify --level full --subset 3/30 --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
    options = VerifyOptions(
        level=level,
        clock=Clock(now_ms(now), duration_ms(older_than)),
        selection=selected.selection(),
        subset=Subset() if subset is None else Subset.parse(subset),
        index_interval_bytes=index_interval,
    )
    metadata = metadata_options.place()
    topics = topic_lists.beside(metadata)
    remote = RemoteOptions(store, store_option, layout, layout_option).place()
    chosen = engine_named(engine, pairs("--spark-conf", spark_conf))
    with segment_progress(progress, view.quiet) as told:
        verified = run(metadata, remote, options, topics=topics, make_engine=lambda: chosen, progress=told)
    result = verified.result
    source = verified.source | {"engine": engine}
    return view.show_findings("Verification", source, result.findings, result.summary(), _headline(result))


def _headline(result: Verification) -> str:
    what = f"{counted(result.segments, 'segment')}, {counted(result.objects, 'object')}"
    if result.level is not Level.LISTING:
        what += f", {counted(result.batches, 'batch', 'batches')}, {counted(result.records, 'record')}"
        what += f", {counted(result.bytes_read, 'byte')} read"
    told = verdict(result.level, len(result.findings), _NOT_READ.get(result.level))
    headline = f"Verified {what} ({result.level.value}): {told}"
    if result.not_looked_at:
        headline += f" {counted(result.not_looked_at, 'segment')} not looked at: the store stopped answering."
    if result.transaction_indexes_unknown:
        segments = counted(result.transaction_indexes_unknown, "segment")
        headline += f" Only --level full shows whether {segments} without a transaction index should have one."
    return headline
