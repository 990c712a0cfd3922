"""`tieredctl diskless verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import pairs
from tieredctl.cli.diskless_places import DisklessOptions
from tieredctl.cli.findings_table import FINDING_COLUMNS, FINDING_FIELDS
from tieredctl.cli.options import Engine, MetricsFile, Output, ProgressStyle, Quiet, SparkConf
from tieredctl.cli.outcome import finding_documents, finish, say
from tieredctl.cli.output import Listing, OutputFormat
from tieredctl.cli.progress import ProgressMode, counted_progress
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.ops.verification.report import Level

if TYPE_CHECKING:
    from tieredctl.ops.diskless.verify import DisklessVerification


def verify(
    *,
    places: DisklessOptions,
    level: Annotated[
        Level, typer.Option(help="Check the listing and the control plane, some headers too, or every byte.")
    ] = Level.HEADERS,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Report objects as left behind when they are older.")
    ] = "1h",
    engine: Engine = LOCAL,
    spark_conf: SparkConf = None,
    output: Output = OutputFormat.TABLE,
    progress: ProgressStyle = ProgressMode.AUTO,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Prove that a bucket holds every batch that the control plane promises (exit 4 if something is lost or altered).

    With --engine spark, executors read the objects; only this process asks the control plane.
    For example: tieredctl diskless verify --level full --control-plane service=inkless --store s3://bucket
    """
    from tieredctl.wiring.diskless import verify_diskless

    older_than_ms = duration_ms(older_than)
    place, bucket = places.place(), places.bucket()
    chosen = engine_named(engine, pairs("--spark-conf", spark_conf))
    with counted_progress(progress, quiet, "objects") as told:
        verified = verify_diskless(place, bucket, level, older_than_ms, engine=chosen, progress=told)
    result = verified.result
    items = finding_documents(result.findings)
    source = verified.source | {"engine": engine}
    listing = Listing("DisklessVerification", source, items, FINDING_COLUMNS, result.summary(), FINDING_FIELDS)
    if output.is_table and not quiet:
        say(_headline(result))
    return finish(listing, output, result.findings, quiet=True, metrics_file=metrics_file)


def _headline(result: DisklessVerification) -> str:
    what = f"{counted(result.segments, 'file')}, {counted(result.rows, 'batch', 'batches')}"
    if result.level is not Level.LISTING:
        read = counted(result.batches, "record batch", "record batches")
        what += f", {read}, {counted(result.records, 'record')}, {counted(result.bytes_read, 'byte')} read"
    verdict = counted(len(result.findings), "finding") if result.findings else "all intact"
    headline = f"Verified {what} ({result.level.value}): {verdict}."
    if result.not_looked_at:
        headline += f" {counted(result.not_looked_at, 'object')} not looked at: the store stopped answering."
    return headline
