"""Options that were given twice: of two values one would be dropped without a word. Only what repeats may be.

What a context or a variable adds was not given: only the line counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from typer.core import TyperGroup

from tieredctl.cli.anywhere import given_twice

_SETTING = "NAME=VALUE"


class OptionsOnce:
    """A command whose options may be given once, by whichever of their names; those that repeat, once for each NAME of
    a NAME=VALUE."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises TieredctlError `usage` for an option that was given twice."""
        values, _, options = self.make_parser(ctx).parse_args(args=list(args))  # type: ignore[attr-defined]
        demand_given_once(options)
        for option in dict.fromkeys(options):
            if getattr(option, "multiple", False) and option.metavar == _SETTING:
                _demand_names_once(option, values[option.name])
        left: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return left


class GroupWithOptionsOnce(OptionsOnce, TyperGroup):
    """Refuses options that are given twice, for a noun that has verbs."""


def demand_given_once(options: Iterable[Any]) -> None:
    """Raises TieredctlError `usage` for an option that was given twice, and does not repeat."""
    for option, times in Counter(one for one in options if one.param_type_name == "option").items():
        if times > 1 and not option.multiple:
            raise given_twice(max((*option.opts, *option.secondary_opts), key=len))


def _demand_names_once(option: Any, settings: Sequence[str]) -> None:
    for name, times in Counter(str(one).partition("=")[0] for one in settings).items():
        if times > 1:
            raise given_twice(f"{max(option.opts, key=len)} {name}")
