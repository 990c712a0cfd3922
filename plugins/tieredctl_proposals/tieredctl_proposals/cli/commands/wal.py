"""`tieredctl wal …`: combined objects of several partitions (KIP-1176)."""

from __future__ import annotations

import typer

from tieredctl_proposals.cli.commands.wal_clean import clean
from tieredctl_proposals.cli.commands.wal_explain import explain
from tieredctl_proposals.cli.commands.wal_inspect import inspect
from tieredctl_proposals.cli.commands.wal_purge import purge
from tieredctl_proposals.cli.commands.wal_restore import restore
from tieredctl_proposals.cli.commands.wal_upload import upload
from tieredctl_proposals.cli.commands.wal_verify import verify


def add_to(commands: typer.Typer) -> None:
    """Adds this noun's commands."""
    for verb in (inspect, verify, explain, upload, restore, clean, purge):
        commands.command(verb.__name__)(verb)
