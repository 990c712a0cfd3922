"""What this package adds to tieredctl's command line. Nothing that the commands need is loaded here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tieredctl.model.command_packages import CommandPackage, Commands, Rights

if TYPE_CHECKING:
    from tieredctl.model.finding_kind import FindingKind


def _finding_kinds() -> Iterable[FindingKind]:
    from tieredctl_inkless.model.diskless_finding_kinds import DISKLESS_FINDING_KINDS

    return DISKLESS_FINDING_KINDS


INKLESS = CommandPackage(
    "tieredctl_inkless",
    (
        Commands(
            "diskless",
            "tieredctl_inkless.cli.commands.diskless",
            "Inspect and check diskless topics: Inkless's objects and its control plane.",
        ),
    ),
    _finding_kinds,
    {("diskless", "orphans", verb): "" for verb in ("apply", "restore", "purge")},
    {("diskless", "explain"): Rights(("Describe", "Read"))},
)
"""The entry point `inkless` of the group `tieredctl.commands`."""
