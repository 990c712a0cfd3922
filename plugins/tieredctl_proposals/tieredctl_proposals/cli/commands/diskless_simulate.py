"""`tieredctl diskless simulate`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT64
from tieredctl.cli.options import Output
from tieredctl.cli.outcome import finish
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import Talk
from tieredctl.config.file import price_hint, storage_price
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, duration_text
from tieredctl.ops.documents import Document

_MOST_BATCHES, _MOST_BROKERS, _MOST_COORDINATORS = 100_000_000, 300, 100
_LONGEST_MS = 30 * 86_400_000


def simulate(
    *,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="The same seed gives the same output.", min=0, max=GREATEST_INT64)
    ] = 0,
    batches: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many batches producers send.", min=1, max=_MOST_BATCHES)
    ] = 20_000,
    brokers: Annotated[int, typer.Option(metavar="NUMBER", help="Brokers.", min=1, max=_MOST_BROKERS)] = 6,
    racks: Annotated[int, typer.Option(metavar="NUMBER", help="Racks.", min=1, max=_MOST_BROKERS)] = 3,
    coordinators: Annotated[
        int, typer.Option(metavar="NUMBER", help="Partitions of __diskless_metadata.", min=1, max=_MOST_COORDINATORS)
    ] = 4,
    gateways: Annotated[
        bool, typer.Option("--gateways/--no-gateways", help="Producers send to their produce gateways, or anywhere.")
    ] = True,
    commit_interval: Annotated[
        str, typer.Option(metavar="DURATION", help="A broker uploads and commits a file this often.")
    ] = "250ms",
    retention: Annotated[str, typer.Option(metavar="DURATION", help="How long batches are retained.")] = "1m",
    grace: Annotated[
        str, typer.Option(metavar="DURATION", help="How long an object stays after its last live batch.")
    ] = "1m",
    orphan_scan: Annotated[
        str, typer.Option(metavar="DURATION", help="How often the store is searched for orphaned files.")
    ] = "2m",
    orphan_grace: Annotated[
        str, typer.Option(metavar="DURATION", help="Files less than this older than the oldest live one are kept.")
    ] = "5m",
    crash_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Brokers die after this share of uploads.", min=0, max=0.5)
    ] = 0.005,
    failover: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a coordinator keeps its leader, on average.")
    ] = "1m",
    slow_store_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="This share of requests takes 50 times as long.", min=0, max=1)
    ] = 0.01,
    clock_skew: Annotated[str, typer.Option(metavar="DURATION", help="How far each clock is off at most.")] = "20s",
    price_of: Annotated[
        str | None, typer.Option(metavar="URL", help="Calculate the cost by the configured price of this store.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Simulate a cluster with KIP-1164's coordinators: brokers that die, failovers, a slow store, wrong clocks.

    The coordinators are tieredctl's own, with their state in SQLite. Exits with 4 if anything was lost, which
    happens where the grace periods are too short for the clocks; with 3 if files were left in the end.
    For example: tieredctl diskless simulate --batches 100000 --failover 10s
    """
    from tieredctl_proposals.ops.diskless.simulation.report import SimulatedNumber, outcome_rows, outcome_summary
    from tieredctl_proposals.ops.diskless.simulation.run import simulate as simulated
    from tieredctl_proposals.ops.diskless.simulation.settings import Settings

    if racks > brokers:
        raise TieredctlError(ErrorCode.USAGE, f"{counted(brokers, 'broker')} cannot be in {racks} racks.")
    settings = Settings(
        seed=seed,
        batches=batches,
        brokers=brokers,
        racks=racks,
        coordinators=coordinators,
        uses_gateways=gateways,
        commit_interval_ms=_duration("--commit-interval", commit_interval, least_ms=10),
        retention_ms=_duration("--retention", retention),
        grace_ms=_duration("--grace", grace),
        orphan_scan_ms=_duration("--orphan-scan", orphan_scan, least_ms=1_000),
        orphan_grace_ms=_duration("--orphan-grace", orphan_grace),
        crash_rate=crash_rate,
        failover_ms=_duration("--failover", failover, least_ms=10_000),
        slow_store_rate=slow_store_rate,
        clock_skew_ms=_duration("--clock-skew", clock_skew),
    )
    price = None if price_of is None else storage_price(price_of)
    if price_of is not None and price is None:
        hint = price_hint(price_of)
        raise TieredctlError(ErrorCode.USAGE, f"The configuration has no price for {price_of}.", hint=hint)
    with TemporaryDirectory(prefix="tieredctl-simulation-") as folder:
        outcome = simulated(settings, Path(folder))
    summary = outcome_summary(outcome, price)
    source = {"kind": "simulation", "seed": seed}
    rows = list(outcome_rows(outcome, price))
    listing = result_listing("DisklessSimulation", source, SimulatedNumber, rows, summary)
    sentences = _sentences(summary) if output.is_table else ()
    return finish(listing, output, [], quiet=talk.quiet, besides=_exit_code(summary), sentences=sentences)


def _exit_code(summary: Document) -> ExitCode:
    if summary["lost"]:
        return ExitCode.CORRUPTION
    return ExitCode.FINDINGS if summary["filesLeft"] else ExitCode.CLEAN


def _sentences(summary: Document) -> list[str]:
    lost = counted(summary["lost"], "loss", "losses") if summary["lost"] else "nothing lost"
    produced, uploaded = counted(summary["produced"], "batch", "batches"), counted(summary["filesUploaded"], "file")
    by_owners, as_orphans = summary["filesDeletedByOwners"], summary["filesDeletedAsOrphans"]
    in_time, after = duration_text(summary["producedMs"]), duration_text(summary["lastedMs"])
    deleted = f"{by_owners} deleted by their last owner, {as_orphans} as orphans"
    sentences = [
        f"{produced} produced in {in_time}, {summary['acknowledged']} acknowledged; {lost}.",
        f"{uploaded} uploaded; {deleted}; {summary['filesLeft']} left after {after}.",
    ]
    if summary["cost"] is not None:
        sentences.append(f"{summary['cost']:.2f} {summary['currency']} for requests and storage.")
    return sentences


def _duration(option: str, text: str, least_ms: int = 0) -> int:
    duration = duration_ms(text)
    if not least_ms <= duration <= _LONGEST_MS:
        least, most = duration_text(least_ms), duration_text(_LONGEST_MS)
        raise TieredctlError(ErrorCode.USAGE, f"{option} {text} is out of range: from {least} to {most}.")
    return duration
