"""`tieredctl snapshot …`: KRaft snapshots, and the metadata log of which they are (KIP-630)."""

from __future__ import annotations

import typer

from tieredctl.cli.commands.snapshot_clean import clean
from tieredctl.cli.commands.snapshot_compare import compare_command
from tieredctl.cli.commands.snapshot_fetch import fetch
from tieredctl.cli.commands.snapshot_inspect import inspect
from tieredctl.cli.commands.snapshot_ls import list_snapshots
from tieredctl.cli.commands.snapshot_verify import verify

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
