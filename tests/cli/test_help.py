"""What the help of each command has: an example to type, the choices of options, the verbs in their order."""

from __future__ import annotations

import re
import shlex
from contextvars import copy_context
from typing import Any

import pytest

from tests.cli.command_line import REPOSITORY, Tieredctl
from tests.cli.command_tree import commands, verbs_of

EXAMPLE = re.compile(r"tieredctl (?P<words>\S.*?)(?: \\\n|$)", re.DOTALL)
READING = {
    *("status", "exporter", "verify", "offsets", "explain", "explain-code", "completions"),
    *(f"metadata {verb}" for verb in ("format", "segments", "history", "lookup", "epochs", "stuck", "stats")),
    *("pipeline run", "pipeline status"),
    *(
        "metadata partition-of",
        "store inspect",
        "store check",
        "store compare",
        "remote ls",
        "remote du",
        "remote multipart",
    ),
    "remote records",
    *(f"{orphans} {verb}" for orphans in ("orphans", "diskless orphans") for verb in ("scan", "show", "quarantine ls")),
    *("topic list", "topic status", "wal inspect", "wal verify", "wal explain"),
    *(f"diskless {verb}" for verb in ("status", "inspect", "explain", "verify", "gateways", "simulate", "format")),
    *(f"diskless {verb}" for verb in ("offsets", "batches", "files")),
    *(f"estimate {what}" for what in ("follower-bootstrap", "retention", "metadata", "cost", "wal-cost")),
    *("doctor config", "doctor connect", "doctor store", "doctor upgrade", "doctor downgrade"),
    *("context list", "context show"),
    *(f"snapshot {verb}" for verb in ("compare", "inspect", "ls", "verify")),
    *("backup status", "backup verify", "restore plan"),
    "demo",  # its files are its own, in a folder that is new
}
"""Commands that write nothing but the answers that were asked for: pages, metrics, checkpoints of listings."""


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
            copy_context().run(
                known[tuple(example[:at])].make_context, "tieredctl", example[at:]
            )  # raises where it is not understood


def test_an_example_that_takes_several_lines_can_be_pasted(
    tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["tieredctl", "metadata", "history", "zYJ8cWbWS6Wrn_UH97CRKw", "--bootstrap-server", "broker:9092"]
    for columns in ("40", "80", "200"):
        monkeypatch.setenv("COLUMNS", columns)

        example = tieredctl("metadata", "history", "--help").out.partition("For example:")[2].partition("\n\n")[0]

        assert shlex.split(example.replace("\\\n", "")) == words, columns


def test_an_option_of_choices_lists_them_and_one_that_repeats_says_so(known: dict[tuple[str, ...], Any]) -> None:
    for words, command in known.items():
        for option in (one for one in command.params if one.param_type_name == "option"):
            named = f"{option.opts} of {' '.join(words)}"
            if choices := getattr(option.type, "choices", None):
                said = f"{option.metavar} {option.help}"
                assert option.metavar is None or all(str(one) in said for one in choices), named
            if option.multiple:
                assert "repeat" in (option.help or "").lower(), named
        for argument in (one for one in command.params if one.param_type_name == "argument"):
            assert (argument.nargs == -1) is argument.metavar.endswith("..."), f"{argument.name} of {words}"


def test_whatever_writes_something_takes_dry_run(known: dict[tuple[str, ...], Any]) -> None:
    taking = {" ".join(words) for words, command in known.items() if "--dry-run" in options_of(command)}

    assert {" ".join(words) for words in known} - taking == READING


def test_what_changes_something_is_not_among_those_that_only_read(known: dict[tuple[str, ...], Any]) -> None:
    for words, command in known.items():
        # An offset or a time; a store that is only read.
        reads = words in (("remote", "records"), ("store", "compare"))
        to = set[str]() if reads else {"--to"}
        if ({"--apply", "--yes", "--no-lease", "--force"} | to) & options_of(command):
            assert " ".join(words) not in READING


def test_the_page_about_safety_lists_the_commands_that_change_something(known: dict[tuple[str, ...], Any]) -> None:
    page = (REPOSITORY / "docs" / "safety.md").read_text()
    named = set(re.findall(r"^\| `(\w+(?: [a-z][a-z-]*)?)(?: --apply)?` \|", page, re.MULTILINE))

    assert named == {
        " ".join(words)
        for words, command in known.items()
        if len(words) <= 2 and options_of(command) & {"--apply", "--no-lease", "--yes"}
    }


def options_of(command: Any) -> set[str]:
    return {name for one in command.params for name in one.opts}


def test_verbs_are_in_the_order_in_which_they_are_used() -> None:
    for words in (("orphans",), ("diskless", "orphans")):
        verbs = [verb for verb in verbs_of(words) if verb != "show"]
        assert verbs[:5] == ["scan", "plan", "apply", "restore", "purge"], words


def test_every_help_fits_the_terminal(
    known: dict[tuple[str, ...], Any], tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    every: list[tuple[str, ...]] = [(), *((noun,) for noun, *_ in known), *known]
    for columns, commands_shown in ((80, every), (60, [("orphans",), ("verify",)])):
        monkeypatch.setenv("COLUMNS", str(columns))
        for words in commands_shown:
            shown = tieredctl(*words, "--help")
            assert (shown.exit_code, max(map(len, shown.out.splitlines())) <= columns) == (0, True), words
