"""`tieredctl estimate wal-cost`, beside the other estimates."""

from __future__ import annotations

import typer

from tieredctl_proposals.cli.commands.estimate_wal_cost import wal_cost


def add_to(commands: typer.Typer) -> None:
    """Adds this command to the noun."""
    commands.command("wal-cost")(wal_cost)
