"""`tieredctl completions SHELL`: the script that a shell sources to complete commands and options.

The scripts ask tieredctl itself: `_TIEREDCTL_COMPLETE` names the shell, and `completing.py` answers. No script
evaluates anything that was typed or answered.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.errors import ExitCode

_SCRIPTS = Path(__file__).parents[1] / "completion"


class Shell(StrEnum):
    """A shell that has a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this command."""
    del meaning  # its own text says more
    app.command(noun)(completions)


def completions(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> ExitCode:
    """Print a shell's completion script.

    For example: tieredctl completions bash
    """
    print((_SCRIPTS / f"script.{shell}").read_text(encoding="utf-8"), end="")
    return ExitCode.CLEAN
