"""A command line that is not understood: in every command one sentence, one hint, and exit 2, whoever noticed it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
import typer

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.command_tree import commands, verbs_of
from tieredctl.cli.command_tree import nouns
from tieredctl.errors import ExitCode, TieredctlError

ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
SHAPE = re.compile(r"tieredctl: (?P<sentence>[^\n]*[^.\n]\.)\n  (?P<hint>[A-Z][^\n]*[.?])\n")
GROUPS = [(), *((noun,) for noun in nouns() if verbs_of((noun,))), ("orphans", "quarantine")]
FILTERS = {"--topic", "--topic-id", "--partition", "--segment-id"}
Words = tuple[str, ...]


def sentence_and_hint(outcome: Outcome) -> tuple[str, str]:
    """What is said, which has one shape."""
    shape = SHAPE.fullmatch(outcome.err)
    assert shape is not None, outcome.err
    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    return shape["sentence"], shape["hint"]


def help_of(words: Words) -> str:
    return f"Run `{' '.join(('tieredctl', *words))} --help` to see what it takes."


def name_of(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).removesuffix("...").strip("[]")


def required(command: Any, wrong: Any = None) -> Iterator[str]:
    """Words for what a command cannot do without, with one wrong value."""
    for one in command.params:
        if one.required or one is wrong:
            names = [name_of(one)] if one.param_type_name == "option" else []
            yield from (*names, *["qqq" if one is wrong else value_of(one)] * max(one.nargs, 1))


def value_of(parameter: Any) -> str:
    if choices := getattr(parameter.type, "choices", None):
        return str(getattr(choices[0], "value", choices[0]))
    least = getattr(parameter.type, "min", None)
    return ID if least is None else str(least)


def test_an_option_that_is_not_there(tieredctl: Tieredctl) -> None:
    for words, _ in commands():
        told = sentence_and_hint(tieredctl(*words, "--qqqqqqqq"))

        assert told == ("There is no option --qqqqqqqq.", help_of(words))


def test_an_option_that_is_mistyped(tieredctl: Tieredctl) -> None:
    for words, command in commands():
        name = max((name for one in command.params for name in one.opts if name.startswith("--")), key=len, default="")
        if name:
            sentence, hint = sentence_and_hint(tieredctl(*words, name[:-1]))

            assert sentence == f"There is no option {name[:-1]}."
            assert re.search(rf"^Did you mean .*{name}\b", hint), words


def options(*, are_flags: bool) -> Iterator[tuple[Words, str]]:
    """Each command with one of its options at least, and each option with one command at least."""
    names = set[str]()
    for words, command in commands():
        of_command = {name_of(one) for one in command.params if getattr(one, "is_flag", None) is are_flags}
        yield from ((words, name) for name in sorted(of_command - names) or sorted(of_command)[:1])
        names |= of_command


def test_an_option_without_its_value(tieredctl: Tieredctl) -> None:
    for words, name in options(are_flags=False):
        told = sentence_and_hint(tieredctl(*words, name))

        assert told == (
            (f"{name} needs a value.", help_of(words))
            if name != "--context"
            else ("--context needs a context's name.", "`tieredctl context list` shows them.")
        )


def test_a_flag_with_a_value(tieredctl: Tieredctl) -> None:
    for words, name in options(are_flags=True):
        told = sentence_and_hint(tieredctl(*words, f"{name}=x"))

        assert told == (f"{name} takes no value.", help_of(words))


def test_an_option_that_is_given_twice() -> None:
    for words, command in commands():
        for one in command.params:
            if one.param_type_name == "option":
                names = [*one.opts, *one.secondary_opts]
                given = [word for name in (names[0], names[-1]) for word in (name, *([] if one.is_flag else ["x=1"]))]

                said = refusal(command, given)

                expected = f"{max(names, key=len)} {'x ' if one.multiple else ''}is given more than once."
                is_refused = not one.multiple or one.metavar == "NAME=VALUE"
                assert (said == expected) == is_refused, (words, given, said)


def test_every_filter_may_be_repeated_in_every_command_that_has_it() -> None:
    for words, command in commands():
        for one in command.params:
            if one.param_type_name == "option" and FILTERS.intersection(one.opts):
                assert one.multiple, (words, one.opts)


def refusal(command: Any, given: list[str]) -> str:
    """What is said of a command's options; empty where nothing is."""
    try:
        copy_context().run(command.make_context, "tieredctl", given)
    except TieredctlError as error:
        return error.message if error.exit_code == ExitCode.USAGE else str(error.exit_code)
    except typer.TyperException as error:
        return error.message
    return ""


def test_an_option_that_is_given_twice_ends_with_2(tieredctl: Tieredctl) -> None:
    for given in (["-o", "json", "--output", "csv"], ["--store-option", "a=1", "--store-option", "a=2"], ["-qq"]):
        sentence, hint = sentence_and_hint(tieredctl("verify", *given))

        assert sentence.endswith("is given more than once."), given
        assert hint == "Give it once."


def test_an_option_that_stands_anywhere_is_given_once(tieredctl: Tieredctl) -> None:
    for option in (["--context", "a"], ["--context=a"], ["-v"], ["--debug"], ["--no-color"]):
        sentence, _ = sentence_and_hint(tieredctl(*option, "status", *option))

        assert sentence.endswith("is given more than once."), option


def test_what_a_variable_says_is_not_given(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    monkeypatch.setenv("TIEREDCTL_STORE", "file:/nowhere")
    monkeypatch.setenv("TIEREDCTL_STORE_OPTION", "a=1 a=2")

    outcome = tieredctl("remote", "ls", "--store", "file:/elsewhere", "--store-option", "a=3")

    assert "more than once" not in outcome.err


def test_what_is_missing(tieredctl: Tieredctl) -> None:
    for words, command in commands():
        first = next((one for one in command.params if one.required), None)
        if first is not None:
            sentence, hint = sentence_and_hint(tieredctl(*words))

            assert sentence == f"No {name_of(first)} was given."
            assert hint == help_of(words) or hint.startswith("Give ")


def test_a_value_that_is_not_among_the_choices_or_in_the_range(tieredctl: Tieredctl) -> None:
    for words, command in commands():
        for one in command.params:
            choices, least = getattr(one.type, "choices", None), getattr(one.type, "min", None)
            if choices or least is not None:
                sentence, hint = sentence_and_hint(tieredctl(*words, *required(command, wrong=one)))

                assert sentence == f"'qqq' is not a value of {name_of(one)}."
                assert hint.startswith("Give one of " if choices else "Give a ")


def test_a_variable_with_a_value_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    monkeypatch.setenv("TIEREDCTL_OUTPUT", "xml")

    sentence, _ = sentence_and_hint(tieredctl("remote", "ls"))

    assert sentence == "'xml' in TIEREDCTL_OUTPUT is not a value of --output."


def test_an_argument_too_many(tieredctl: Tieredctl) -> None:
    for words, command in commands():
        if all(one.nargs > 0 for one in command.params if one.param_type_name == "argument"):
            optional = [
                value_of(one) for one in command.params if one.param_type_name == "argument" and not one.required
            ]

            told = sentence_and_hint(tieredctl(*words, *required(command), *optional, "surplus"))

            assert told == ("'surplus' is not expected here.", help_of(words))


def test_a_command_that_is_not_there(tieredctl: Tieredctl) -> None:
    for words in GROUPS:
        told = sentence_and_hint(tieredctl(*words, "qqqqqqqq"))

        assert told == ("There is no command 'qqqqqqqq'.", help_of(words))


def test_what_a_command_itself_notices_has_the_same_hint(tieredctl: Tieredctl) -> None:
    words = ("metadata", "format", "--since", "2026-01-02", "--until", "2026-01-01", "--log-dir", ".")

    assert sentence_and_hint(tieredctl(*words)) == ("--since is later than --until.", help_of(words[:2]))
