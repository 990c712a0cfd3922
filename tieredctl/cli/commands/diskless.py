"""`tieredctl diskless …`: topics that are kept in object storage alone, as Inkless does it."""

from __future__ import annotations

import typer

from tieredctl.cli.commands.diskless_explain import explain
from tieredctl.cli.commands.diskless_format import format_records
from tieredctl.cli.commands.diskless_gateways import gateways
from tieredctl.cli.commands.diskless_inspect import inspect
from tieredctl.cli.commands.diskless_orphans import orphans
from tieredctl.cli.commands.diskless_simulate import simulate
from tieredctl.cli.commands.diskless_status import status
from tieredctl.cli.commands.diskless_verify import verify

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
for verb in (status, inspect, explain, verify, gateways, simulate):
    _commands.command(verb.__name__)(verb)
_commands.command("format")(format_records)
_commands.add_typer(orphans, name="orphans", help="Find and remove orphaned objects of diskless topics.")


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
