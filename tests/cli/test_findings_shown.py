"""Findings as a person reads them: what is wrong first, in few lines, with the command that mends it."""

from __future__ import annotations

import itertools
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl, environment, own_process
from tests.cli.terminal_screen import (
    everything_shown,
)
from tests.faults.lost_partition import lose_a_metadata_partition
from tieredctl.cli.completion.command_table import Command, CommandTable
from tieredctl.cli.findings.finding_report import MOST_PARTITIONS, FindingGroups, FindingReport
from tieredctl.cli.findings.remedies import Remedies
from tieredctl.cli.typed_words import options_of
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import FINDING_KINDS, Finding, Severity
from tieredctl.model.ids import TopicIdPartition

STORE = "file:remote/kafka-tiered-storage"
VERIFY = ("verify", "--level", "listing", "--log-dir", "data", "--store", STORE)


@pytest.fixture(scope="module")
def lost(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that lost a partition of its metadata topic, and hundreds of time indexes besides."""
    return lose_a_metadata_partition(captures / "kafka-4.3.1", tmp_path_factory.mktemp("lost") / "cluster")


def test_machines_get_every_finding_as_before(lost: Path, tieredctl: Tieredctl) -> None:
    shown = own_process(*in_folder(lost, VERIFY), "-o", "json", COLUMNS="40").document()
    lines = tieredctl(*in_folder(lost, VERIFY), "-o", "jsonl")

    assert len(shown["items"]) == shown["summary"]["findings"] > 100
    fields = ["code", "severity", "subject", "message", "evidence", "remedy"]
    assert all(list(item) == fields for item in shown["items"])
    assert "ignored" not in shown["summary"]
    assert ([item["code"] for item in lines.lines()], lines.err) == ([item["code"] for item in shown["items"]], "")


def test_as_many_of_each_code_are_shown_as_wanted(lost: Path, tieredctl: Tieredctl) -> None:
    for words, lines in ((("--limit", "2"), 2), (("--all",), 172), ((), 3)):
        shown = tieredctl(*in_folder(lost, VERIFY), *words)

        assert shown.exit_code == ExitCode.CORRUPTION
        assert sum(" time-index: " in line for line in shown.out.splitlines()) == lines, words
        assert ("--all show" in shown.out) == (lines < 172), words
        (recovery,) = (one for one in commands_in(shown.out) if "recover indexes" in one)
        assert f"--log-dir {lost / 'data'}" in recovery


def in_folder(folder: Path, words: tuple[str, ...]) -> list[str]:
    """The words with paths that hold everywhere."""
    absolute = {"data": str(folder / "data"), STORE: f"file:{folder / 'remote' / 'kafka-tiered-storage'}"}
    return [absolute.get(word, word) for word in words]


COMMANDS_THAT_FIND = (
    VERIFY,
    ("store", "check", "data"),
    ("orphans", "scan", "--min-age", "0s", "--log-dir", "data", "--store", STORE),
    ("metadata", "stats", "--log-dir", "data"),
    ("doctor", "--kraft-snapshot", "data/__cluster_metadata-0", "--log-dir", "data"),
)


def test_a_remedy_is_pasted_as_it_is_printed(lost: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lost)
    tried: dict[str, Outcome] = {}
    for columns, words in itertools.product(("", "60"), COMMANDS_THAT_FIND):
        monkeypatch.setenv("COLUMNS", columns)
        shown = tieredctl(*words)

        remedies = list(commands_in(shown.out + shown.err))

        assert remedies, words
        for remedy in remedies:
            assert "…" not in remedy
            if remedy.startswith("tieredctl ") and not re.search(r"\b[A-Z]{4,}\b", remedy):
                line = shlex.join(shlex.split(remedy)[1:])
                tried[line] = tried.get(line) or tieredctl(*shlex.split(line))
                assert tried[line].exit_code not in (ExitCode.USAGE, ExitCode.FAILURE), f"{remedy}\n{tried[line].err}"


def commands_in(shown: str) -> Iterator[str]:
    """The commands among these lines, each joined as a shell joins it."""
    for line in shown.replace("\\\n", " ").splitlines():
        if re.match(r"    (tieredctl|kafka-)", line):
            yield line.strip()


ORPHANED = ("--bootstrap-server", "b:9092", "--command-config", "client file.properties", "--store", "s3://bucket")


def test_every_remedy_becomes_a_command_that_there_is() -> None:
    remedies = Remedies(["orphans", "scan", *ORPHANED])
    kinds = FINDING_KINDS.values()
    every = {one for kind in kinds for one in (kind.remedy, kind.remedy_of_index, kind.remedy_of_segment) if one}
    for remedy in every:
        pasted = remedies.pasteable(remedy.replace("{", "").replace("}", ""))

        assert "…" not in pasted
        if pasted.startswith("tieredctl "):
            words = shlex.split(pasted)[1:]
            assert {word for word in words if word.startswith("--")} <= options_of(words), pasted


def test_the_remedies_of_many_findings_read_their_command_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Sequence[str]] = []
    command = CommandTable.command

    def counted(table: CommandTable, words: Sequence[str]) -> Command:
        read.append(words)
        return command(table, words)

    monkeypatch.setattr(CommandTable, "command", counted)
    remedies = Remedies(["orphans", "scan", *ORPHANED])

    pasted = [remedies.pasteable(f"tieredctl metadata history segment-{number} …") for number in range(100)]

    assert len(read) <= 2  # that of the run, and that of the remedies
    assert len({one.replace(f"segment-{number} ", "") for number, one in enumerate(pasted)}) == 1
    assert "--bootstrap-server b:9092" in pasted[0]


def test_the_brokers_and_how_to_reach_them_are_those_of_the_run() -> None:
    remedies = Remedies(["orphans", "scan", *ORPHANED, "--metadata-source-option=password=x"])
    brokers = "--bootstrap-server b:9092 --command-config 'client file.properties'"

    described = remedies.pasteable("kafka-topics --bootstrap-server … --describe --topic t")
    assert described == f"kafka-topics {brokers} --describe --topic t"
    stats = remedies.pasteable("tieredctl metadata stats …")
    assert stats == f"tieredctl metadata stats {brokers} --metadata-source-option 'password=(hidden)'"


def test_a_hostile_name_is_one_word_of_a_remedy_and_a_password_none() -> None:
    finding = Finding(FindingCode.STORE_DISAGREES, "x", "y", {"file": "a; rm -rf ~ $(reboot)"})
    assert shlex.split(finding.remedy) == ["tieredctl", "store", "inspect", "a; rm -rf ~ $(reboot)"]
    for words in (
        ("--store-option", "endpoint=http://u:geheim@h:1"),
        ("--metadata-source=pg:postgres://u:ge@heim@h/db",),
        ("--metadata-source-option", "url=x://:geheim@h"),
    ):
        pasted = Remedies(["verify", *words]).pasteable("tieredctl orphans scan …")
        assert ("heim" in pasted, "(hidden)@h" in pasted) == (False, True), words


def many_findings(count: int) -> Iterator[Finding]:
    codes = [FindingCode.OBJECT_MISSING, FindingCode.OFFSET_GAP, FindingCode.COPY_STUCK]
    for number in range(count):
        about = PartitionSubject(TopicIdPartition("A" * 22, "t", number))
        yield Finding(codes[number % 3], f"t-{number}", "gone", about=about)


def test_of_a_million_findings_only_the_first_few_are_held() -> None:
    groups = FindingGroups.of(many_findings(100_000), most=3).groups.values()

    assert {group.count for group in groups} == {33_333, 33_334}
    assert all(len(group.first) == 3 and len(group.partitions) == MOST_PARTITIONS for group in groups)


def test_groups_are_in_the_order_of_their_severity_and_the_first_line_counts() -> None:
    findings = [
        Finding(FindingCode.OFFSET_OVERLAP, "t-0", "twice"),
        Finding(FindingCode.COPY_STUCK, "t-0", "stuck"),
        *[Finding(FindingCode.OBJECT_UNREFERENCED, f"key-{number}", "nothing explains it") for number in range(433)],
        Finding(FindingCode.OFFSET_GAP, "t-0", "lost"),
        Finding(FindingCode.UNREADABLE, "s3://b", "it does not answer"),
    ]
    out = StringIO()

    FindingReport().write(findings, out)

    shown = out.getvalue().splitlines()
    assert shown[0] == "1 critical, 1 error, 434 warnings, 1 informational: it does not answer"
    severities = [
        line.partition(":")[0] for line in shown[1:] if line.partition(":")[0] in map(str.lower, Severity.__members__)
    ]
    assert severities == ["critical", "error", "warning", "warning", "info"]
    assert "warning: object-unreferenced: 433 objects that no live segment of the metadata owns" in shown


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_a_severity_has_a_colour_only_where_it_is_wanted(lost: Path, variables: dict[str, str], coloured: bool) -> None:
    person, terminal = pty.openpty()
    command = [sys.executable, "-m", "tieredctl", "store", "check", "data"]
    with subprocess.Popen(command, cwd=lost, stdout=terminal, stderr=terminal, env=environment(**variables)) as process:
        os.close(terminal)
        shown = everything_shown(person)
        process.wait(60)

    assert ("\x1b[31merror\x1b[0m: metadata-partition-missing" in shown) == coloured
    assert ("\x1b" in shown) == coloured


def test_intact_says_how_deep_it_looked(captures: Path, tieredctl: Tieredctl) -> None:
    for level in ("listing", "headers", "full"):
        words = in_folder(captures / "kafka-4.3.1", ("verify", "--log-dir", "data", "--store", STORE))
        shown = tieredctl(*words, "--level", level)

        assert (shown.exit_code, shown.out) == (ExitCode.CLEAN, "")
        assert ("all intact" in shown.err, "Not read: " in shown.err) == (level == "full", level != "full"), level
