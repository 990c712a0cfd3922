"""`tieredctl diskless offsets`, `batches`, `files`, `format`, `gateways` and `simulate`: KIP-1164's coordinators."""

from __future__ import annotations

import typer

from tieredctl_proposals.cli.commands.diskless_batches import batches
from tieredctl_proposals.cli.commands.diskless_files import files
from tieredctl_proposals.cli.commands.diskless_format import format_records
from tieredctl_proposals.cli.commands.diskless_gateways import gateways
from tieredctl_proposals.cli.commands.diskless_offsets import offsets
from tieredctl_proposals.cli.commands.diskless_simulate import simulate


def add_to(commands: typer.Typer) -> None:
    """Adds these commands to the noun."""
    for verb in (offsets, batches, files, gateways, simulate):
        commands.command(verb.__name__)(verb)
    commands.command("format")(format_records)
