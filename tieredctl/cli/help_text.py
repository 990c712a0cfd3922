"""Help whose example can be pasted, in a narrow terminal too."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from tieredctl.cli.given_once import OptionsOnce
from tieredctl.cli.line_breaks import broken_command

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

_EXAMPLE = re.compile(r"(?P<said>.*)For example:\s+(?P<command>tieredctl .*)", re.DOTALL)


class CommandWithExample(OptionsOnce, TyperCommand):
    """A command whose help ends with an example."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Writes an example that has no room on its line as lines that a shell takes for one."""
        match = _EXAMPLE.fullmatch(inspect.cleandoc(self.help or ""))
        example = " ".join(match["command"].split()) if match else ""
        if match is None or len(f"  For example: {example}") <= formatter.width:
            super().format_help_text(ctx, formatter)
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{match['said']}For example:")
        for line in broken_command(example, formatter.width):
            formatter.write(f"{line}\n")
