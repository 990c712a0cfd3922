"""`tieredctl diskless verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import pairs
from tieredctl.cli.options import Engine, SparkConf
from tieredctl.cli.verdict import verdict
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.ops.verification.report import Level
from tieredctl_inkless.cli.diskless_places import DisklessOptions

if TYPE_CHECKING:
    from tieredctl.ops.documents import Document
    from tieredctl_inkless.ops.diskless.verify import DisklessVerification

_NOT_READ = {
    Level.LISTING: "what the objects hold",
    Level.HEADERS: "all but the first and the last batch of each object",
}

_MOST_RANGES = 3


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
    view: FindingListView,
) -> ExitCode:
    """Prove that a bucket holds every batch that the control plane promises (exit 4 if something is lost or altered).

    With --engine spark, executors read the objects; only this process asks the control plane.
    For example: tieredctl diskless verify --level full --control-plane service=inkless --store s3://bucket
    """
    from tieredctl_inkless.wiring.diskless import verify_diskless

    older_than_ms = duration_ms(older_than)
    place, bucket = places.place(), places.bucket()
    chosen = engine_named(engine, pairs("--spark-conf", spark_conf))
    verified = verify_diskless(place, bucket, level, older_than_ms, engine=chosen)
    result, source = verified.result, verified.source | {"engine": engine}
    return view.show_findings("DisklessVerification", source, result.findings, result.summary(), _headline(result))


def _headline(result: DisklessVerification) -> str:
    what = f"{counted(result.segments, 'file')}, {counted(result.rows, 'batch', 'batches')}"
    if result.level is not Level.LISTING:
        read = counted(result.batches, "record batch", "record batches")
        what += f", {read}, {counted(result.records, 'record')}, {size_text(result.bytes_read)} read"
    outcome = verdict(result.level, len(result.findings), _NOT_READ.get(result.level))
    headline = f"Verified {what} ({result.level.value}): {outcome}"
    if result.not_looked_at:
        headline += f" {counted(result.not_looked_at, 'object')} not looked at: the store stopped answering."
    if result.elsewhere.partitions:
        offsets, partitions = (
            counted(result.elsewhere.offsets, "offset"),
            counted(result.elsewhere.partitions, "partition"),
        )
        named = ", ".join(_range_text(one) for one in result.elsewhere.ranges[:_MOST_RANGES])
        more = ", …" if result.elsewhere.partitions > _MOST_RANGES else ""
        headline += f" Not looked at: {offsets} of {partitions} that are not in the diskless tier: {named}{more}."
    return headline


def _range_text(one: Document) -> str:
    first, last = one["offsets"]
    return f"{one['topic']}:{one['partition']} {first} to {last}"
