"""`tieredctl diskless …`: topics that are kept in object storage alone, as Inkless does it."""

from __future__ import annotations

import typer

from tieredctl_inkless.cli.commands.diskless_explain import explain
from tieredctl_inkless.cli.commands.diskless_inspect import inspect
from tieredctl_inkless.cli.commands.diskless_orphans import orphans
from tieredctl_inkless.cli.commands.diskless_status import status
from tieredctl_inkless.cli.commands.diskless_verify import verify


def add_to(commands: typer.Typer) -> None:
    """Adds this noun's commands."""
    for verb in (status, inspect, explain, verify):
        commands.command(verb.__name__)(verb)
    commands.add_typer(orphans, name="orphans", help="Find and remove orphaned objects of diskless topics.")
