"""Ids that begin with a dash, where a parser of command lines expects an option."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tieredctl.cli.help_text import CommandWithExample
from tieredctl.model.ids import is_uuid


class CommandOfIds(CommandWithExample):
    """A command whose arguments are ids: one that begins with a dash may be typed as it is, without `--` before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [option for option in self.get_params(ctx) if option.param_type_name == "option"]
        taking_value = {name for option in options if not getattr(option, "is_flag", False) for name in option.opts}
        return super().parse_args(ctx, _ids_last(args, taking_value))


def _ids_last(words: Sequence[str], taking_value: Collection[str]) -> list[str]:
    """The words with all arguments after `--`, if one of them is an id that begins with a dash."""
    options: list[str] = []
    arguments: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            arguments += left
        elif word in taking_value:
            options += [word, *(value for value in [next(left, None)] if value is not None)]
        elif word.startswith("-") and not _is_id(word):
            options.append(word)
        else:
            arguments.append(word)
    return [*options, "--", *arguments] if any(word.startswith("-") for word in arguments) else list(words)


def _is_id(word: str) -> bool:
    """Also TOPIC-ID:PARTITION."""
    return is_uuid(word.partition(":")[0])
