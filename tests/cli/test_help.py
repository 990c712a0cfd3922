"""What the help of each command has: an example to type, the choices of options, the verbs in their order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.cli.main import NOUNS, command_of

EXAMPLE = re.compile(r"tieredctl (?P<words>\S.*?)(?: \\\n|$)", re.DOTALL)


def commands(words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command that runs, by its words."""
    for name in NOUNS if not words else verbs_of(words):
        named = (*words, name)
        if verbs_of(named):
            yield from commands(named)
        else:
            yield named, command_at(named)


def verbs_of(words: tuple[str, ...]) -> list[str]:
    return list(getattr(command_at(words), "commands", {}))


def command_at(words: tuple[str, ...]) -> Any:
    command: Any = command_of(words)
    for word in words:
        command = command.commands[word]
    return command


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], Any]:
    return dict(commands())


def test_the_help_has_an_example_that_the_command_takes(known: dict[tuple[str, ...], Any]) -> None:
    for words, command in known.items():
        examples = [shlex.split(match["words"]) for match in EXAMPLE.finditer(" ".join((command.help or "").split()))]

        assert examples, f"{' '.join(words)} has none"
        for example in examples:
            at = next(length for length in range(len(example), 0, -1) if tuple(example[:length]) in known)
            assert tuple(example[:at]) in (words, words[1:])
            known[tuple(example[:at])].make_context("tieredctl", example[at:])  # raises where it is not understood


def test_an_option_of_choices_lists_them_and_one_that_repeats_says_so(known: dict[tuple[str, ...], Any]) -> None:
    for words, command in known.items():
        for option in (one for one in command.params if one.param_type_name == "option"):
            named = f"{option.opts} of {' '.join(words)}"
            if choices := getattr(option.type, "choices", None):
                assert option.metavar is None or all(str(one) in option.metavar for one in choices), named
            if option.multiple:
                assert "repeat" in (option.help or "").lower(), named


@pytest.mark.parametrize("words", [("orphans",), ("diskless", "orphans")], ids=" ".join)
def test_verbs_are_in_the_order_in_which_they_are_used(words: tuple[str, ...]) -> None:
    verbs = [verb for verb in verbs_of(words) if verb != "show"]

    assert verbs[:5] == ["scan", "plan", "apply", "restore", "purge"]


@pytest.mark.parametrize("words", [("orphans", "--help"), ("verify", "--help")], ids=" ".join)
def test_the_help_fits_the_terminal(
    tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    assert max(map(len, tieredctl(*words).out.splitlines())) <= 60
