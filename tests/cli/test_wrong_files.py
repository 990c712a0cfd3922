"""A file of another kind, where a command takes one: exit 2, as for any wrong argument. Exit 4 means data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.command_tree import commands
from tests.cli.test_lost_inputs import LOG, OF_METADATA, OF_STORES, TOPIC_ID, copied, run
from tieredctl.errors import ExitCode

STORE = ("--store", "file:{store}", "--layout", "local")
GIVEN: Mapping[str, tuple[str, ...]] = {
    **OF_METADATA,
    **OF_STORES,
    "topic list": LOG,
    "topic status": ("orders7", *LOG),
    "partition remove": (TOPIC_ID, "--even-if-live", *LOG, *STORE),
    **{f"diskless {verb}": () for verb in ("inspect", "orphans show", "orphans apply", "orphans restore")},
    "orphans show": (),
    "orphans apply": ("--offline-metadata", *LOG),
    "orphans restore": (),
    "store inspect": (),
    "doctor config": (),
    "estimate wal-cost": (),
    "recover log-starts": ("--log-dir", "{folder}/node"),
    "snapshot clean": ("{data}",),
    "snapshot compare": ("{folder}/wrong",),
    **{f"snapshot {verb}": () for verb in ("inspect", "ls", "verify")},
}
"""What a command is given besides the wrong file."""
ARGUMENTS = {"PATH...", "PLAN", "RECEIPTS", "FILE", "KEY|FILE"}
OPTIONS = {
    *("--export", "--as-of", "--live-topic-ids", "--kraft-snapshot", "--key-list", "--inventory", "--resume", "--from"),
    *("--result", "--verified", "--price-file", "--server-properties"),
}
ANY_TEXT_IS_ONE = {("doctor config", ""), ("orphans scan", "--key-list"), ("diskless inspect", "")}
"""Any line is a setting or a key; and an object has nothing at its beginning by which it is known."""
OF_BUCKETS = {("orphans scan", "--inventory"), ("orphans plan", "--inventory")}
MADE_WHERE_EMPTY = "--resume"
ELSEWHERE = {"exporter", "diskless explain", "context show", "orphans purge", "support-bundle", "estimate cost"} | {
    f"wal {verb}" for verb in ("clean", "purge", "restore", "upload")
}
"""What serves until it is ended, asks a database, keeps what it is given, says in its file what it could not read, or
refuses other things first here."""
AFTER_OTHERS = {
    ("orphans apply", "--export"),
    ("orphans apply", "--live-topic-ids"),
    ("orphans apply", "--kraft-snapshot"),
}
AFTER_OTHERS |= {("recover indexes", "--verified")}
DAMAGED_RATHER = {"orphans restore", "diskless orphans restore"}
"""Receipts that cannot be read may be those of a removal: they end with 1."""
WRITTEN = {"--to", "--receipts", "--report", "--metrics-file"}
OF_CLIENTS = {"--command-config"}
NAMED = re.compile(r"wrong|list of topic ids")
"""What the sentence is about: it is this file that is refused, and not another word of the line."""
INSTEAD_OF_LOGS = {"--export"}


def taken() -> Iterator[tuple[str, str]]:
    """Each command with each option by which it reads a file; "" for an argument."""
    for words, command in commands():
        for one in command.params:
            metavar = one.metavar or ""
            name = "" if one.param_type_name == "argument" else max(one.opts, key=len)
            if name in OPTIONS or (not name and metavar in ARGUMENTS and words != ("metadata", "export")):
                yield " ".join(words), name
            elif name and ("FILE" in metavar or metavar == "PLAN"):
                assert name in WRITTEN | OF_CLIENTS, (words, name)


def without_logs(given: tuple[str, ...]) -> tuple[str, ...]:
    at = given.index(LOG[0]) if LOG[0] in given else len(given)
    return given[:at] + given[at + len(LOG) :]


@pytest.mark.parametrize(
    "content", [b"this is another kind of file\n" * 3, bytes(range(256)) * 16, b"\0" * 4096, b""], ids=str
)
def test_a_file_of_another_kind_is_a_wrong_argument(captures: Path, tmp_path: Path, content: bytes) -> None:
    places = copied(captures, tmp_path / "cluster")
    wrong = tmp_path / "cluster" / "wrong"

    wrongly = []
    for command, option in taken():
        if command in ELSEWHERE | DAMAGED_RATHER or (command, option) in ANY_TEXT_IS_ONE | OF_BUCKETS | AFTER_OTHERS:
            continue
        if option == MADE_WHERE_EMPTY and not content:
            continue
        given = without_logs(GIVEN[command]) if option in INSTEAD_OF_LOGS else GIVEN[command]
        wrong.write_bytes(content)

        outcome = run(command, (*given, *([option] if option else []), "{folder}/wrong"), places)

        is_refused = outcome.exit_code == ExitCode.USAGE and NAMED.search(outcome.err)
        if not is_refused or wrong.read_bytes() != content:
            wrongly.append(f"{outcome.exit_code} of {command} {option}: {outcome.err}")
    assert not wrongly, "\n".join(wrongly)
