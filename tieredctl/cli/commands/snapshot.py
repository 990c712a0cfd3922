"""`tieredctl snapshot …`: KRaft snapshots, and the metadata log of which they are (KIP-630)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.commands.snapshot_clean import clean
from tieredctl.cli.commands.snapshot_compare import compare_command
from tieredctl.cli.commands.snapshot_fetch import fetch
from tieredctl.cli.commands.snapshot_inspect import inspect
from tieredctl.cli.commands.snapshot_ls import list_snapshots
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.wiring.snapshot_verification import check_snapshots


def verify(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", parser=given_path, help="A node's __cluster_metadata-0 or log directory, or files of it."
        ),
    ],
    view: FindingListView,
) -> ExitCode:
    """Check that KRaft snapshots and the metadata log are whole and sound, and fit each other.

    Of a folder, the snapshots must also fit the log, and the log its leader-epoch checkpoint. A snapshot and the log
    after it must give the next snapshot.

    For example: tieredctl snapshot verify /var/lib/kafka/__cluster_metadata-0
    """
    check = check_snapshots(paths)
    outcome = f"{counted(len(check.findings), 'finding')}." if check.findings else "all are sound."
    read = f"{counted(check.snapshots, 'snapshot')} and {counted(check.segments, 'log segment')}"
    source = {"kind": "metadata-log", "paths": [str(path) for path in paths]}
    headline = f"Read {read} with {counted(check.records, 'record')}: {outcome}"
    if not view.is_table:
        view.say(headline)
    return view.show_findings("SnapshotCheck", source, check.findings, check.summary(), headline)


_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("clean")(clean)
_commands.command("compare")(compare_command)
_commands.command("fetch")(fetch)
_commands.command("inspect")(inspect)
_commands.command("ls")(list_snapshots)
_commands.command("verify")(verify)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
