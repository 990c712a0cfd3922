"""What this package adds to tieredctl's command line. Nothing that the commands need is loaded here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tieredctl.model.command_packages import CommandPackage, Commands, Rights

if TYPE_CHECKING:
    from tieredctl.model.finding_kind import FindingKind


def _finding_kinds() -> Iterable[FindingKind]:
    from tieredctl_proposals.model.coordinator_finding_kinds import COORDINATOR_FINDING_KINDS
    from tieredctl_proposals.model.wal_finding_kinds import WAL_FINDING_KINDS

    return (*WAL_FINDING_KINDS, *COORDINATOR_FINDING_KINDS)


_MODULES = "tieredctl_proposals.cli.commands"
_DISKLESS = ("offsets", "batches", "files", "gateways", "simulate", "format")
PROPOSALS = CommandPackage(
    "tieredctl_proposals",
    (
        Commands("wal", f"{_MODULES}.wal", "Try WAL tiering (KIP-1176): combined objects of brokers' active segments."),
        Commands("estimate", f"{_MODULES}.estimate", verbs=("wal-cost",)),
        Commands("diskless", f"{_MODULES}.diskless", verbs=_DISKLESS),
    ),
    _finding_kinds,
    {("wal", "upload"): "--apply", ("wal", "clean"): "--apply", ("wal", "purge"): "--apply"},
    {
        ("wal", "upload"): Rights(("Describe", "Read")),
        ("wal", "restore"): Rights(("Describe", "Read")),
        ("wal", "clean"): Rights(("Describe", "Read"), topics=("Describe", "DescribeConfigs")),
        ("wal", "purge"): Rights(("Describe", "Read"), topics=("Describe", "DescribeConfigs")),
    },
)
"""The entry point `proposals` of the group `tieredctl.commands`."""
