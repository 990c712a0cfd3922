"""The reference, from the code itself: a page for each noun of the command line, and one of exit codes and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from tieredctl.cli.anywhere import CONTEXT
from tieredctl.cli.command_tree import command_of, nouns
from tieredctl.errors import EXIT_CODE_MEANINGS, ErrorCode, ExitCode

_EXAMPLE = "For example: "
_SENTENCES = re.compile(r"(?<!\n)\n(?!\n)")


def reference_pages() -> dict[str, str]:
    """The text of each page, by its name."""
    # What the environment sets here is no default.
    assert not any(name.startswith("TIEREDCTL_") and name != "TIEREDCTL_CONFIG" for name in os.environ)
    pages = {noun: "\n".join(_page(noun, meaning)) for noun, meaning in nouns().items()}
    return {"commands": "\n".join(_overview()), **pages, "exit-codes": "\n".join(_codes())}


def commands_of(noun: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command of a noun that runs, by its words, with its options."""
    yield from _commands((noun,))


def _commands(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    command: Any = command_of(words)
    for word in words:
        command = command.commands[word]
    verbs = list(getattr(command, "commands", {}))
    if not verbs or getattr(command, "invoke_without_command", False):
        yield words, command
    for verb in verbs:
        yield from _commands((*words, verb))


def _overview() -> Iterator[str]:
    yield "# Commands\n"
    yield f"Every command takes `--help`, `-v`, `--debug`, `--no-color` and `{CONTEXT} NAME`, anywhere in the line.\n"
    yield "| command | does |\n| --- | --- |"
    for noun in nouns():
        for words, command in commands_of(noun):
            yield f"| [`{' '.join(words)}`]({noun}.md#{'-'.join(words)}) | {_cell(_first_line(command))} |"
    yield "\nWhat the exit codes mean: [Exit codes and errors](exit-codes.md). What findings mean: "
    yield "[Findings](../findings.md)."


def _page(noun: str, meaning: str) -> Iterator[str]:
    yield f"# {noun}\n\n{meaning} What it exits with: [Exit codes](exit-codes.md).\n"
    for words, command in commands_of(noun):
        yield from _section(words, command)


def _section(words: tuple[str, ...], command: Any) -> Iterator[str]:
    name = " ".join(words)
    yield f"## {name}" + f" {{: #{'-'.join(words)} }}\n"
    help_text, _, example = (command.help or "").partition(_EXAMPLE)
    yield _text(_SENTENCES.sub(" ", help_text).strip()) + "\n"
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    yield f"```text\ntieredctl {' '.join([name, *map(_metavar, arguments), '[OPTIONS]'])}\n```\n"
    if example:
        yield f"For example:\n\n```text\n{_SENTENCES.sub(' ', example).strip()}\n```\n"
    if any(getattr(one, "help", None) for one in arguments):
        yield "| argument | meaning |\n| --- | --- |"
        for argument in arguments:
            yield f"| `{_code(_metavar(argument))}` | {_cell(getattr(argument, 'help', None) or '')} |"
        yield ""
    if options:
        yield "| option | meaning | default | variable |\n| --- | --- | --- | --- |"
        for option in options:
            yield f"| {_typed(option)} | {_cell(option.help or '')} | {_default(option)} | {_variable(option)} |"
        yield ""


def _codes() -> Iterator[str]:
    yield "# Exit codes and errors\n\n| exit code | means |\n| --- | --- |"
    yield from (f"| {code.value} | {EXIT_CODE_MEANINGS[code]} |" for code in ExitCode)
    yield "\nWhere several apply, the gravest counts."
    yield "[Findings](../findings.md#findings-and-exit-codes-in-ci) tells how findings set the code,"
    yield "and how `--fail-on` and `--ignore` change that.\n\n## Errors\n"
    yield "A command that ends with an error says why in a sentence. `explain-code CODE` shows what is in this table.\n"
    yield "| error | exit code | what to do |\n| --- | --- | --- |"
    yield from (f"| `{code}` | {code.exit_code.value} | {_cell(code.hint)} |" for code in ErrorCode)


def _typed(option: Any) -> str:
    names = " / ".join(
        ", ".join(f"`{name}`" for name in names) for names in (option.opts, option.secondary_opts) if names
    )
    value = "" if option.is_flag else f" `{_code(_metavar(option))}`"
    return names + value + (" (repeatable)" if option.multiple else "")


def _metavar(parameter: Any) -> str:
    choices = getattr(parameter.type, "choices", None)
    if parameter.metavar is None and choices:
        return "|".join(str(_plain(one)) for one in choices)
    metavar = parameter.metavar or parameter.type.name.upper()
    return f"{metavar}..." if parameter.param_type_name == "argument" and parameter.nargs == -1 else str(metavar)


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.default is None or option.is_flag or option.default == ():
        return ""
    return f"`{_code(str(_plain(option.default)))}`"


def _variable(option: Any) -> str:
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or []
    return ", ".join(f"`{name}`" for name in names)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def _first_line(command: Any) -> str:
    return _SENTENCES.sub(" ", command.help or "").partition("\n")[0]


def _text(text: str) -> str:
    return re.sub(r"(?<!`)<", "&lt;", text)


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


def _code(text: str) -> str:
    """Text for a code span within a table."""
    return text.replace("|", "\\|")
