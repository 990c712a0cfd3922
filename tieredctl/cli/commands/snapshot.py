"""`tieredctl snapshot …`: KRaft snapshots, and the metadata log of which they are (KIP-630)."""

from __future__ import annotations

import typer

from tieredctl.cli.commands.snapshot_compare import compare_command

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("compare")(compare_command)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.callback()
def snapshot() -> None:
    """Keeps `compare` a verb of its own, though it is the only one."""
