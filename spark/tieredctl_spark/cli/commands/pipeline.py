"""`tieredctl pipeline …`: metadata and store as tables that remember."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, pairs
from tieredctl.cli.options import MinAge, SparkConf
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.pages.report import Reported
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import MetadataOptions, RemoteOptions, TopicListOptions
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.trouble.interruption import clear_interrupt
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.verification.report import Level
from tieredctl.process.run_metrics import run_metrics

if TYPE_CHECKING:
    from tieredctl.wiring.places import StorePlace
    from tieredctl_spark.catalogs.place import CatalogPlace
    from tieredctl_spark.pipeline.following import Following
    from tieredctl_spark.pipeline.run import PipelineOptions, PipelineRun
    from tieredctl_spark.tables.files import ReadableTables
    from tieredctl_spark.tables.manifest import Manifest
    from tieredctl_spark.tables.table_store import TablesPlace

_COLUMNS = (
    TableColumn("TABLE", "table", importance=2),
    TableColumn("ROWS", "rows"),
    TableColumn("FILES", "files"),
    size_column("bytes"),
    TableColumn("FROM", "firstDay"),
    TableColumn("TO", "lastDay"),
    moment_column("CHANGED", "changed"),
    TableColumn("RUN", "runId", wide=True),
    TableColumn("SCHEMA VERSION", "schemaVersion", wide=True),
)
_FIELDS = ("table", "rows", "files", "bytes", "firstDay", "lastDay", "changed", "runId", "schemaVersion")
Tables = Annotated[
    str | None, typer.Option("--tables", metavar="DIR|URL", help="The folder of all tables: a path, s3://… or gs://….")
]
CatalogName = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="NAME[.NAMESPACE]",
        help="Iceberg or Delta tables in this catalog of Spark's, instead of --tables.",
    ),
]
TableOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--tables-option",
        metavar="NAME=VALUE",
        help="A store setting of --tables; repeat it for several.",
    ),
]


def add_to(commands: typer.Typer) -> None:
    """Adds this noun's commands."""
    for verb in (run, status):
        commands.command(verb.__name__)(verb)


def run(
    *,
    tables: Tables = None,
    catalog: CatalogName = None,
    tables_option: TableOptions = None,
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    topic_lists: TopicListOptions,
    level: Annotated[
        Level, typer.Option(help="Check the listing, the first and last batches too, or every byte.")
    ] = Level.LISTING,
    max_age: Annotated[
        str, typer.Option(metavar="DURATION", help="Read a segment again that was found sound longer ago than this.")
    ] = "12h",
    min_age: MinAge = "24h",
    list_every: Annotated[
        str, typer.Option(metavar="DURATION", help="Without new events, list the store again after this time.")
    ] = "1h",
    keep_events: Annotated[
        str, typer.Option(metavar="DURATION", help="Keep rows of the table of events this long, by whole days.")
    ] = "365d",
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Follow the metadata until Ctrl-C, with Spark's checkpoint in this folder."
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="With --stream, begin no run for news sooner after another.")
    ] = "1m",
    spark_conf: SparkConf = None,
    view: View,
) -> ExitCode:
    """Bring the tables up to date: new events, segments, objects, costs, findings, orphans, lags and forecasts.

    The store and the metadata are only read. All tables change together, when a run ends; an interrupted one changes
    nothing, and is run again. Exit codes are those of `verify` and `orphans scan`; with --stream, of the last run.

    For example: tieredctl pipeline run --bootstrap-server broker:9092 --store s3://kafka-tiered --tables s3://lake/tiered
    """
    from tieredctl_spark.pipeline.following import Following
    from tieredctl_spark.pipeline.run import PipelineOptions, run_pipeline

    metadata, store = metadata_options.place(), remote_options.place()
    options = PipelineOptions(
        metadata,
        store,
        topic_lists.beside(metadata),
        _place(tables, tables_option, catalog, store),
        level,
        duration_ms(max_age),
        duration_ms(min_age),
        duration_ms(list_every),
        duration_ms(keep_events),
        clock_ms(),
    )
    settings = pairs("--spark-conf", spark_conf)
    if stream is None:
        return _show(run_pipeline(options, settings), options.tables.url, view)
    return _followed(options, Following(stream, duration_ms(interval)), settings, view)


def _followed(options: PipelineOptions, following: Following, settings: dict[str, str], view: View) -> ExitCode:
    """Shows each run until Ctrl-C; the exit code of the last."""
    from tieredctl_spark.pipeline.following import follow_pipeline

    code: ExitCode | None = None

    def ended(done: PipelineRun) -> None:
        nonlocal code
        code = _show(done, options.tables.url, view)
        run_metrics.get().write(code)
        sys.stdout.flush()

    try:
        follow_pipeline(options, following, settings, ended)
    except KeyboardInterrupt:
        if code is None:
            raise
        clear_interrupt()  # this is how it ends
    return code or ExitCode.CLEAN


def _show(done: PipelineRun, tables: str, view: View) -> ExitCode:
    sentence = f"Version {done.manifest.version} of {counted(len(done.manifest.tables), 'table')} is current."
    if not done.had_news:
        sentence = f"Nothing is new since {iso_8601(done.manifest.looked.listed_ms)}. {sentence}"
    summary = _summary(done.manifest) | {"news": done.had_news, "leftoversRemoved": done.leftovers}
    return view.show(_listing("PipelineRun", tables, done.manifest, summary), (), done.exit_code, [sentence])


def status(
    *,
    tables: Tables = None,
    catalog: CatalogName = None,
    tables_option: TableOptions = None,
    spark_conf: SparkConf = None,
    view: View,
    page: ReportOptions,
) -> ExitCode:
    """Show which version of the tables is current, what each has, and what is due. Starts Spark for --catalog only.

    For example: tieredctl pipeline status --tables s3://lake/tiered --report tiered.html
    """
    from tieredctl_spark.catalogs.place import CatalogPlace
    from tieredctl_spark.tables.files import FolderNow

    place = _place(tables, tables_option, catalog, None)
    page.demand_possible()
    if isinstance(place, CatalogPlace):
        return _catalog_status(place, pairs("--spark-conf", spark_conf), view, page)
    return _status(place.url, FolderNow.opened(place), view, page)


def _catalog_status(place: CatalogPlace, settings: dict[str, str], view: View, page: ReportOptions) -> ExitCode:
    from tieredctl_spark.catalogs.reading import CurrentTables
    from tieredctl_spark.failures import spark_failures
    from tieredctl_spark.session import spark_session

    place.demand_release()
    with spark_session(settings) as session, spark_failures():
        return _status(place.url, CurrentTables.opened(place.open(session)), view, page)


def _status(url: str, tables: ReadableTables, view: View, page: ReportOptions) -> ExitCode:
    due = tables.due(clock_ms())
    sentences = [f"Due: {one['task']}, because {one['why']}{_command(one)}." for one in due] or ["Nothing is due."]
    listing = _listing("PipelineStatus", url, tables.manifest, _summary(tables.manifest) | {"due": due})
    code = view.show(listing, (), ExitCode.CLEAN, sentences)

    def reported() -> Reported:
        from tieredctl_spark.cli.pipeline_page import reported_tables

        return reported_tables(tables, listing)

    return page.write(code, reported)


def _command(due: Document) -> str:
    return f": {due['command']}" if "command" in due else ""


def _place(
    tables: str | None, options: list[str] | None, catalog: str | None, store: StorePlace | None
) -> TablesPlace | CatalogPlace:
    from tieredctl_spark.catalogs.place import tables_or_catalog

    found = tables_or_catalog(tables, pairs("--tables-option", options), catalog, store)
    if found is None:
        hint = "Give --tables with a folder or a bucket, or --catalog with one of Spark's."
        raise TieredctlError(ErrorCode.USAGE, "Neither tables nor a catalog were given.", hint=hint)
    return found


def _listing(kind: str, url: str, manifest: Manifest, summary: Document) -> Listing:
    looked = manifest.looked
    source = {
        "kind": "tables",
        "tables": url,
        "store": looked.store,
        "layout": looked.layout,
        "clusterId": looked.cluster_id,
        "endOffsets": {number: end for number, (_, end) in looked.offsets.items()},
    }
    items = [_item(name, manifest) for name in manifest.tables]
    return Listing(kind, source, items, _COLUMNS, summary, _FIELDS)


def _item(name: str, manifest: Manifest) -> Document:
    state = manifest.tables[name]
    return {
        "table": name,
        "rows": state.rows,
        "files": state.file_count,
        "bytes": state.bytes,
        "firstDay": state.first_day,
        "lastDay": state.last_day,
        "changed": iso_8601(state.changed_ms),
        "runId": state.run_id,
        "schemaVersion": state.schema_version,
    }


def _summary(manifest: Manifest) -> Document:
    looked = manifest.looked
    return {
        "version": manifest.version,
        "runId": manifest.run_id,
        "looked": iso_8601(manifest.looked_ms),
        "listed": iso_8601(looked.listed_ms),
        "level": looked.level,
        "complete": looked.complete,
        "exitCode": looked.exit_code,
    }
