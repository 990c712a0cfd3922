"""Options that belong together: a command takes one value for all of them. Here a context adds what was not typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from tieredctl.cli import running_command, running_words
from tieredctl.cli.context_in_use import DEFAULT, ENVIRONMENT, LINE, Role, context_in_use, filled_in, with_hint
from tieredctl.cli.outcome import say
from tieredctl.cli.progress import shown_progress
from tieredctl.errors import TieredctlError
from tieredctl.process.run_metrics import run_metrics

_CHANGING_PARAMETER, _CHANGING_COMMANDS = "yes", ("orphans plan",)
"""What says that a command changes something, or prepares that."""


class OptionGroup:
    """A dataclass whose fields are options. A command that has a parameter of such a type takes those options there.

    Groups that every command loads are not compared or printed: each method that is made for them takes time to start.
    """

    __slots__ = ()


def flattened(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with each group's options instead of the group, for Typer, which knows no groups; what of them a
    context may have is taken from it."""
    groups: dict[str, tuple[type[OptionGroup], tuple[str, ...]]] = {}
    parameters: list[Parameter] = []
    for parameter in _parameters(command):
        group = parameter.annotation
        options = _parameters(group) if isinstance(group, type) and issubclass(group, OptionGroup) else None
        if options is not None:
            groups[parameter.name] = group, tuple(option.name for option in options)
        parameters += [parameter] if options is None else options
    roles = _roles(parameters)
    shows_progress = any(one.name == _PROGRESS for one in parameters)
    if not groups and not roles and not shows_progress:
        return command
    own_context = next((one.name for one in parameters if one.annotation is typer.Context), None)
    if roles and own_context is None:
        parameters.append(Parameter(_CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context))

    def run(**parameters_given: Any) -> Any:
        if _METRICS_FILE in parameters_given:
            run_metrics.get().ask(parameters_given[_METRICS_FILE], running_command.get())
        if roles:
            parsed = parameters_given[own_context] if own_context else parameters_given.pop(_CONTEXT)
            parameters_given = _with_context(parameters_given, roles, parsed)
        shown = (
            shown_progress(parameters_given[_PROGRESS], quiet=parameters_given["quiet"])
            if shows_progress
            else nullcontext()
        )
        made = {
            name: group(**{option: parameters_given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        try:
            with shown:
                return command(**parameters_given, **made)
        except TieredctlError as error:
            raise with_hint(error) from error.__cause__

    run.__doc__ = command.__doc__
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    return run


_CONTEXT = "parsed_line"
_PROGRESS = "progress"
_METRICS_FILE = "metrics_file"


def _roles(parameters: list[Parameter]) -> dict[str, Role]:
    marks = ((one.name, mark) for one in parameters for mark in getattr(one.annotation, "__metadata__", ()))
    return {name: mark for name, mark in marks if isinstance(mark, Role)}


def _with_context(values: dict[str, Any], roles: Mapping[str, Role], parsed: typer.Context) -> dict[str, Any]:
    """Raises TieredctlError as `filled_in` does."""
    sources, spelled = {}, {}
    for parameter in parsed.command.params:
        name = parameter.name or ""
        if name in roles:
            source = parsed.get_parameter_source(name)
            sources[name] = DEFAULT if source is None else source.name
            spelled[name] = _spelled(parameter, sources[name])
    if parsed.invoked_subcommand is not None:  # a variable is about the command that runs
        return values | {name: None for name, source in sources.items() if source == ENVIRONMENT}
    changes = _CHANGING_PARAMETER in values or running_command.get() in _CHANGING_COMMANDS
    filled = filled_in(values, roles, sources, spelled, changes=changes)
    typed = {name: values[name] for name, source in sources.items() if source == LINE}
    added = [one for one in parsed.command.params if one.name in sources]
    running_words.set(_with_options(running_words.get(), added, typed, filled))
    used = context_in_use.get()
    if changes and not values.get("quiet") and used is not None and (places := used.places()):
        say(f"Using {places}.")
    return filled


def _with_options(
    words: Sequence[str], parameters: Sequence[Any], typed: Mapping[str, Any], filled: Mapping[str, Any]
) -> tuple[str, ...]:
    """The line as it would be if all that counts had been typed: for commands that are to be pasted."""
    options: list[str] = []
    for parameter in parameters:
        value = filled[parameter.name]
        if parameter.param_type_name != "option" or value in (None, False) or value == parameter.default:
            continue
        values = value if isinstance(value, list) else [value]
        if parameter.name in typed:
            values = _beside(typed[parameter.name], values)
        for one in values:
            options += [parameter.opts[0], str(one)]
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], *options, *words[end:])


def _beside(typed: Any, values: Sequence[Any]) -> list[Any]:
    """The settings (NAME=VALUE) that were added to those that were typed, which count where both have a name."""
    if not isinstance(typed, list):
        return []
    names = {str(one).partition("=")[0] for one in typed}
    return [one for one in values if str(one).partition("=")[0] not in names]


def _spelled(parameter: Any, source: str) -> str:
    if source == ENVIRONMENT:
        return str(parameter.envvar)
    return str(parameter.opts[0]) if parameter.param_type_name == "option" else str(parameter.metavar)


def _parameters(called: Callable[..., Any]) -> list[Parameter]:
    return list(signature(called, eval_str=True).parameters.values())
