"""Whether a command that shows a plan first makes the change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tieredctl.cli.option_groups import OptionGroup


@dataclass(frozen=True, slots=True)
class ApplyChoice(OptionGroup):
    """--apply, and what takes it back."""

    apply: Annotated[bool, typer.Option("--apply", help="Make the change; without it, only show the plan.")] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan, even with --apply; as without both.")
    ] = False

    @property
    def is_made(self) -> bool:
        """Whether the change is to be made."""
        return self.apply and not self.dry_run

    def advice(self, *, changes: bool) -> tuple[str, ...]:
        """What follows a plan that is only shown, where it would change something."""
        return ("Nothing was changed: --apply makes the change.",) if changes and not self.apply else ()
