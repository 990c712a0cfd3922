"""`tieredctl snapshot compare`: what changed in a cluster between two points of its metadata log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.ops.snapshots.comparison import ChangeRow, Comparison, compare
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

_POINT = "A snapshot, or a node's __cluster_metadata-0: its latest snapshot and the log after it."


def compare_command(
    *,
    before: Annotated[Path, typer.Argument(metavar="BEFORE", parser=given_path, help=_POINT)],
    after: Annotated[Path, typer.Argument(metavar="AFTER", parser=given_path, help=_POINT)],
    view: FindingsView,
) -> ExitCode:
    """Show what changed between two KRaft snapshots, or between a snapshot and the end of the log.

    Topics, partitions, settings, features, brokers, controllers, voters, quotas, ACLs; secrets are hidden. For example:
    tieredctl snapshot compare data/__cluster_metadata-0/00000000000000000050-0000000001.checkpoint data
    """
    comparison = compare(OfflineClusterPlace(before).read(), OfflineClusterPlace(after).read())
    listing = result_listing(
        "SnapshotComparison", comparison.source(), ChangeRow, comparison.rows(), comparison.summary()
    )
    return view.show(listing, comparison.findings(), sentences=[_sentence(comparison)])


def _sentence(comparison: Comparison) -> str:
    was, now = comparison.before.image, comparison.after.image
    return f"{counted(len(comparison.changes), 'change')} from offset {was.end_offset} to offset {now.end_offset}."
