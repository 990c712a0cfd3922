"""`tieredctl diskless format`, `gateways` and `simulate`: KIP-1164's coordinators."""

from __future__ import annotations

import typer

from tieredctl_proposals.cli.commands.diskless_format import format_records
from tieredctl_proposals.cli.commands.diskless_gateways import gateways
from tieredctl_proposals.cli.commands.diskless_simulate import simulate


def add_to(commands: typer.Typer) -> None:
    """Adds these commands to the noun."""
    commands.command("gateways")(gateways)
    commands.command("simulate")(simulate)
    commands.command("format")(format_records)
