"""`tieredctl wal …`: combined objects of several partitions (KIP-1176)."""

from __future__ import annotations

import typer

from tieredctl.cli.commands.wal_clean import clean
from tieredctl.cli.commands.wal_explain import explain
from tieredctl.cli.commands.wal_inspect import inspect
from tieredctl.cli.commands.wal_purge import purge
from tieredctl.cli.commands.wal_restore import restore
from tieredctl.cli.commands.wal_upload import upload
from tieredctl.cli.commands.wal_verify import verify

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
for _verb in (inspect, verify, explain, upload, restore, clean, purge):
    _commands.command(_verb.__name__)(_verb)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
