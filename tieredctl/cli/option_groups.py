"""Options that belong together: a command takes one value for all of them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any


class OptionGroup:
    """A dataclass whose fields are options. A command that has a parameter of such a type takes those options there."""

    __slots__ = ()


def flattened(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with each group's options instead of the group, for Typer, which knows no groups."""
    groups: dict[str, tuple[type[OptionGroup], tuple[str, ...]]] = {}
    parameters: list[Parameter] = []
    for parameter in _parameters(command):
        group = parameter.annotation
        options = _parameters(group) if isinstance(group, type) and issubclass(group, OptionGroup) else None
        if options is not None:
            groups[parameter.name] = group, tuple(option.name for option in options)
        parameters += [parameter] if options is None else options
    if not groups:
        return command

    def run(**given: Any) -> Any:
        made = {
            name: group(**{option: given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        return command(**given, **made)

    run.__doc__ = command.__doc__
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    return run


def _parameters(called: Callable[..., Any]) -> list[Parameter]:
    return list(signature(called, eval_str=True).parameters.values())
