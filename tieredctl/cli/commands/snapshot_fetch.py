"""`tieredctl snapshot fetch`: a snapshot of the metadata log from a running controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import file_or_folder, snapshot_name
from tieredctl.cli.options import BootstrapController, ClusterId, DryRun
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.model.quantities import byte_count, size_text
from tieredctl.ops.snapshots.fetching import LARGEST_CHUNK_BYTES, FetchedSnapshot, fetch_snapshot
from tieredctl.wiring.places import QuorumPlace


def fetch(
    *,
    bootstrap_controller: BootstrapController = None,
    cluster_options: ClusterOptions,
    to: Annotated[Path, typer.Option(metavar="DIR|FILE", parser=file_or_folder, help="Where to write the snapshot.")],
    snapshot: Annotated[
        KraftSnapshotName | None,
        typer.Option(metavar="OFFSET-EPOCH", parser=snapshot_name, help="This snapshot, instead of the latest."),
    ] = None,
    max_bytes: Annotated[str, typer.Option(metavar="SIZE", help="Fetch at most this much at a time.")] = "8MiB",
    cluster_id: ClusterId = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dry_run: DryRun = False,
    view: ProgressView,
) -> ExitCode:
    """Fetch a snapshot of the metadata log from the leader of the quorum, and check it as it comes.

    The controllers are named, or found through a broker with --bootstrap-server. An interrupted fetch resumes from the
    .part file beside FILE.

    For example: tieredctl snapshot fetch --bootstrap-controller controller-1:9093 --to /tmp
    """
    chunk_bytes = byte_count(max_bytes)
    if not 0 < chunk_bytes <= LARGEST_CHUNK_BYTES:
        raise TieredctlError(
            ErrorCode.USAGE, f"--max-bytes {max_bytes} is not from 1 to {size_text(LARGEST_CHUNK_BYTES)}."
        )
    place = _place(bootstrap_controller, cluster_options)
    with place.open(cluster_id) as quorum:
        done = fetch_snapshot(quorum, to, snapshot, chunk_bytes=chunk_bytes, force=force, dry_run=dry_run)
        source = quorum.describe()
    if dry_run:
        view.say(f"Would write {size_text(done.bytes)} to {done.file}.")
    summary = {"bytes": done.bytes, "dryRun": dry_run}
    return view.show(result_listing("FetchedSnapshot", source, FetchedSnapshot, [done], summary))


def _place(bootstrap_controller: str | None, cluster: ClusterOptions) -> QuorumPlace:
    if bootstrap_controller is not None and cluster.bootstrap_server is not None:
        raise TieredctlError(ErrorCode.USAGE, "--bootstrap-controller and --bootstrap-server exclude each other.")
    broker = None if cluster.bootstrap_server is None else cluster.place()
    return QuorumPlace(bootstrap_controller, broker, cluster.command_config)
