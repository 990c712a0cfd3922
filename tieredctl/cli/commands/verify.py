"""`tieredctl verify`: does the remote store hold what the metadata promises?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, now_ms, pairs
from tieredctl.cli.options import (
    Engine,
    LayoutName,
    LayoutOptions,
    Now,
    SparkConf,
    StuckAfter,
    TieredStore,
    TieredStoreOptions,
)
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.verdict import verdict
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.ops.verification.options import Subset, VerifyOptions
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level
from tieredctl.ops.verification.result import Verification
from tieredctl.wiring.verify import Verified
from tieredctl.wiring.verify import verify as run

if TYPE_CHECKING:
    from tieredctl.cli.pages.report import Reported

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
    older_than: StuckAfter = "1h",
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
    view: FindingListView,
    page: ReportOptions,
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
    page.demand_possible()
    remote = RemoteOptions(store, store_option, layout, layout_option).place()
    chosen = engine_named(engine, pairs("--spark-conf", spark_conf))
    verified = run(metadata, remote, options, topics=topics, make_engine=lambda: chosen)
    result = verified.result
    source = verified.source | {"engine": engine, "at": iso_8601(clock_ms())}
    summary = result.summary() | options.selection.document()
    code = view.show_findings("Verification", source, result.findings, summary, _headline(result))
    return page.write(code, lambda: _reported(verified, source, view))


def _reported(verified: Verified, source: Document, view: FindingListView) -> Reported:
    from tieredctl.cli.pages.report import Reported
    from tieredctl.cli.pages.report_plots import coverage_plot, findings_plot
    from tieredctl.cli.pages.timeline_plots import sentences_of_not_drawn, timeline_plots
    from tieredctl.ops.timeline.partition_timeline import timelines_of_found

    result = verified.result
    unknown = []
    if not_read := _NOT_READ.get(result.level):
        unknown.append(f"Not read at level {result.level.value}: {not_read}.")
    if result.outside_subset:
        unknown.append(f"Left out by --subset: {counted(result.outside_subset, 'segment')}.")
    if result.skipped:
        unknown.append(
            f"Not verified, because unfinished, removed or of a deleted topic: {counted(result.skipped, 'segment')}."
        )
    if result.not_looked_at:
        unknown.append(f"Not looked at, since the store stopped answering: {counted(result.not_looked_at, 'segment')}.")
    if result.transaction_indexes_unknown:
        unknown.append(_transaction_indexes(result))
    plots = [coverage_plot(result.summary(), result.findings), findings_plot(result.findings)]
    if result.metadata is not None:
        timelines = timelines_of_found([result.metadata], result.findings, verified.metadata_findings, verified.logs)
        unknown += sentences_of_not_drawn(timelines.left_out)
        plots += timeline_plots(timelines.drawn)
    return Reported(
        source,
        None if _is_empty(result) else result.findings,
        _headline(result),
        [("Level", result.level.value)],
        unknown,
        [plot for plot in plots if plot is not None],
        tolerance=view.tolerance,
    )


def _is_empty(result: Verification) -> bool:
    """Whether nothing was looked at, so that finding nothing means nothing."""
    return not result.segments and not result.findings


def _headline(result: Verification) -> str:
    what = f"{counted(result.segments, 'segment')}, {counted(result.objects, 'object')}"
    if result.level is not Level.LISTING:
        what += f", {counted(result.batches, 'batch', 'batches')}, {counted(result.records, 'record')}"
        what += f", {size_text(result.bytes_read)} read"
    outcome = verdict(result.level, len(result.findings), _NOT_READ.get(result.level))
    if _is_empty(result):
        outcome = "there was nothing to verify."
    headline = f"Verified {what} ({result.level.value}): {outcome}"
    if result.outside_subset:
        headline += f" Outside --subset: {counted(result.outside_subset, 'segment')}."
    if result.not_looked_at:
        headline += f" {counted(result.not_looked_at, 'segment')} not looked at: the store stopped answering."
    if result.transaction_indexes_unknown:
        headline += f" {_transaction_indexes(result)}"
    return headline


def _transaction_indexes(result: Verification) -> str:
    segments = counted(result.transaction_indexes_unknown, "segment")
    return f"Only --level full shows whether {segments} without a transaction index should have one."
