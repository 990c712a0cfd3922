"""What a command line that was not understood is told: one sentence in tieredctl's words, and one hint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tieredctl.cli import PROGRAM
from tieredctl.cli.typed_words import named_command
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_package
from tieredctl.model.nearest import nearest_hint

_SURPLUS = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)", re.DOTALL)
_NO_COMMAND = re.compile(r"No such command '(?P<name>.*?)'\.", re.DOTALL)
_VALUE = re.compile(r"(?P<value>.*) is not (?:one of|in the range|a valid) ", re.DOTALL)
_TAKES_NO_VALUE = "does not take a value"


def refused(wrong_use: Any, words: Sequence[str]) -> TieredctlError:
    """What Typer found wrong with a command line. Its exceptions have no public names."""
    context: Any = getattr(wrong_use, "ctx", None)
    message = wrong_use.message.replace("Value error, ", "")
    hint = None
    match type(wrong_use).__name__:
        case "NoSuchOption":
            sentence = f"There is no option {wrong_use.option_name}."
            hint = nearest_hint(wrong_use.option_name, _options(context))
        case "BadOptionUsage":
            needs = "takes no value" if _TAKES_NO_VALUE in message else "needs a value"
            sentence = f"{wrong_use.option_name} {needs}."
        case "MissingParameter":
            sentence, hint = f"No {_name(wrong_use.param)} was given.", _expected(wrong_use.param)
        case "BadParameter" if wrong_use.param is not None and (match := _VALUE.match(message)):
            sentence = f"{_quoted(match['value'])}{_origin(wrong_use)} is not a value of {_name(wrong_use.param)}."
            hint = _expected(wrong_use.param)
        case _ if match := _NO_COMMAND.match(message):
            if (package := package_of(words)) and match["name"] in package.words:
                return missing_package(f"`{' '.join([PROGRAM, *package.words])}`", package.name)
            sentence = f"There is no command {match['name']!r}."
            hint = nearest_hint(match["name"], getattr(context.command, "commands", ()))
        case _ if match := _SURPLUS.match(message):
            sentence = f"{match['words']!r} is not expected here."
        case _:
            sentence = wrong_use.format_message()
    return TieredctlError(ErrorCode.USAGE, sentence, hint=hint or _help_of(words))


def naming_command(error: TieredctlError, words: Sequence[str]) -> TieredctlError:
    """The same, with the words' command in the hint where no more is known than that its help says what it takes."""
    if error.hint == ErrorCode.USAGE.hint:
        error.hint = _help_of(words)
    return error


def _help_of(words: Sequence[str]) -> str:
    return f"Run `{' '.join([PROGRAM, *named_command(words)])} --help` to see what it takes."


def _options(context: Any) -> list[str]:
    return [name for one in context.command.get_params(context) for name in (*one.opts, *one.secondary_opts)]


def _name(parameter: Any) -> str:
    """`--output`, `TOPIC:PARTITION`, `PATH`."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).removesuffix("...").strip("[]")


def _origin(wrong_use: Any) -> str:
    """The variable that a value was taken from."""
    source = wrong_use.ctx.get_parameter_source(wrong_use.param.name)
    return f" in {wrong_use.param.envvar}" if getattr(source, "name", "") == "ENVIRONMENT" else ""


def _quoted(value: str) -> str:
    return value if value.startswith(("'", '"')) else f"'{value}'"


def _expected(parameter: Any) -> str | None:
    """The values that a parameter may have, where they are few or a range."""
    choices = getattr(parameter.type, "choices", None)
    if choices:
        return f"Give one of {', '.join(str(getattr(one, 'value', one)) for one in choices)}."
    least, most = getattr(parameter.type, "min", None), getattr(parameter.type, "max", None)
    if least is None:
        return None
    number = "a whole number" if isinstance(least, int) and parameter.type.name == "int range" else "a number"
    return f"Give {number} {f'of {least} or more' if most is None else f'from {least} to {most}'}."


_PROPOSALS, _INKLESS = "tieredctl-proposals", "tieredctl-inkless"
_PACKAGES = {
    ("diskless", "format"): _PROPOSALS,
    ("diskless", "gateways"): _PROPOSALS,
    ("diskless", "simulate"): _PROPOSALS,
    ("estimate", "wal-cost"): _PROPOSALS,
    ("diskless",): _INKLESS,
    ("wal",): _PROPOSALS,
}
"""By the words of its commands, those of verbs before those of their noun."""


class KnownPackage(NamedTuple):
    """A package, and the words that it would serve."""

    words: tuple[str, ...]
    name: str


def package_of(words: Sequence[str]) -> KnownPackage | None:
    """The package that has the command of these words; None where there is no such command."""
    named = [word for word in words if not word.startswith("-")]
    return next((KnownPackage(one, name) for one, name in _PACKAGES.items() if tuple(named[: len(one)]) == one), None)
