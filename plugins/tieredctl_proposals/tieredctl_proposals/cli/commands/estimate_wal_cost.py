"""`tieredctl estimate wal-cost`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, given_path
from tieredctl.cli.options import Output, Quiet
from tieredctl.cli.outcome import finish
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.result_listing import result_listing
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.quantities import byte_count, duration_ms

_SENTENCE = (
    "{before} dollars a month per broker before, {after} after: {saving} saved, by the lines that KIP-1176 counts"
)
_MOST_BYTES = 10**15
_MOST_MS = 10**13
_MOST_FOLLOWERS = 100


def wal_cost(
    *,
    brokers: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many brokers the cluster has.", min=1, max=GREATEST_INT32)
    ] = 90,
    inbound: Annotated[
        str, typer.Option(metavar="BYTES", help="Bytes that a broker takes in per second: 30MB, 28MiB.")
    ] = "31100KB",
    upload_interval: Annotated[
        str, typer.Option(metavar="DURATION", help="A broker uploads a combined object this often.")
    ] = "10ms",
    upload_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Or sooner, when a combined object has this many bytes.")
    ] = None,
    wal_retention: Annotated[str, typer.Option(metavar="DURATION", help="How long combined objects are kept.")] = "1h",
    local_retention: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a follower keeps data on its disk.")
    ] = "12h",
    replication_factor: Annotated[
        int, typer.Option(metavar="NUMBER", help="Replicas without WAL tiering.", min=1, max=_MOST_FOLLOWERS)
    ] = 3,
    wal_replication_factor: Annotated[
        int, typer.Option(metavar="NUMBER", help="Replicas with WAL tiering.", min=1, max=_MOST_FOLLOWERS)
    ] = 2,
    price_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=given_path, help="Prices in YAML; those it lacks are the KIP's."),
    ] = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """Estimate what a broker costs a month with replication by followers, and with WAL tiering (KIP-1176).

    Without options, the KIP's own example and prices: 2478 against 1424 dollars. Each line is shown, also those that
    the KIP's sums leave out.
    For example: tieredctl estimate wal-cost --inbound 50MB --upload-interval 20ms
    """
    from tieredctl_proposals.config.wal_prices import kip_1176_prices, wal_prices
    from tieredctl_proposals.ops.wal_cost import WalCostRow, WalWorkload
    from tieredctl_proposals.ops.wal_cost import wal_cost as estimated

    workload = WalWorkload(
        brokers=brokers,
        inbound_per_second=_within("--inbound", byte_count(inbound), _MOST_BYTES),
        upload_interval_ms=_within("--upload-interval", duration_ms(upload_interval), _MOST_MS, least=1),
        upload_bytes=None
        if upload_bytes is None
        else _within("--upload-bytes", byte_count(upload_bytes), _MOST_BYTES, least=1),
        wal_retention_ms=_within("--wal-retention", duration_ms(wal_retention), _MOST_MS),
        local_retention_ms=_within("--local-retention", duration_ms(local_retention), _MOST_MS),
        followers_before=replication_factor - 1,
        followers_after=wal_replication_factor - 1,
    )
    prices = kip_1176_prices() if price_file is None else wal_prices(price_file)
    estimate = estimated(workload, prices)
    source = {"kind": "arguments", "priceFile": None if price_file is None else str(price_file)}
    saving = estimate.summary["saving"]
    share = "nothing" if saving is None else f"{saving:.0%}"
    sentences = [_SENTENCE.format_map({**estimate.summary, "saving": share}), *estimate.summary["notes"]]
    listing = result_listing("WalCost", source, WalCostRow, estimate.rows, estimate.summary)
    return finish(listing, output, [], quiet=quiet, sentences=sentences if output.is_table else ())


def _within(option: str, number: int, most: int, least: int = 0) -> int:
    if not least <= number <= most:
        raise TieredctlError(ErrorCode.USAGE, f"{option} {number} is out of range: from {least} to {most}.")
    return number
