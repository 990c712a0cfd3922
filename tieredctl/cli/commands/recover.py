"""`tieredctl recover …`: what was lost, rebuilt from what the remote store still has."""

from __future__ import annotations

import typer

from tieredctl.cli.commands.recover_indexes import indexes
from tieredctl.cli.commands.recover_log_starts import log_starts
from tieredctl.cli.commands.recover_metadata import metadata
from tieredctl.cli.dashed_ids import CommandOfIds

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("indexes", cls=CommandOfIds)(indexes)
_commands.command("metadata")(metadata)
_commands.command("log-starts")(log_starts)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
