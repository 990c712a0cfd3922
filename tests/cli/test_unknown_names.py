"""A name that nothing knows is everywhere an error with the nearest names, and never a clean result of nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tieredctl_proposals.model.diskless_records import PartitionCreated

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Outcome, Tieredctl, this_process
from tests.cli.command_tree import commands
from tests.cli.wal.store_of_uploads import upload_words
from tests.diskless.coordinator_logs import NOON_MS, write_log
from tests.diskless_records import TOPIC_ID as DISKLESS_TOPIC_ID
from tests.metadata_logs import copied, segment_id, write_events
from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.errors import ExitCode
from tieredctl.model.nearest import nearest_hint

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
NOBODYS = "AAAAAAAAAAAAAAAAAAAAAQ"
METADATA, STORE, BOTH = ("metadata",), ("store",), ("metadata", "store")
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("metadata", "format"): METADATA,
    ("metadata", "format", "-o", "jsonl"): METADATA,
    ("metadata", "segments"): METADATA,
    ("metadata", "segments", "-o", "json"): METADATA,
    ("metadata", "segments", "--timeline"): METADATA,
    ("metadata", "history", SEGMENT_ID): METADATA,
    ("metadata", "stuck"): METADATA,
    ("remote", "ls"): STORE,
    ("remote", "ls", "-o", "json"): STORE,
    ("remote", "ls", "-o", "csv"): STORE,
    ("remote", "du"): STORE,
    ("remote", "read", SEGMENT_ID, "--to", "-"): STORE,
    ("remote", "read", SEGMENT_ID, "--to", "part"): BOTH,
    ("verify",): BOTH,
    ("orphans", "scan"): BOTH,
    ("orphans", "scan", "-o", "jsonl"): BOTH,
    ("orphans", "plan", "--to", "plan"): BOTH,
    ("heal",): BOTH,
    ("recover", "metadata"): BOTH,
    ("recover", "indexes"): BOTH,
    ("estimate", "cost"): BOTH,
    ("wal", "inspect"): ("wal",),
    ("wal", "restore", "--to", "restored"): ("wal",),
    ("wal", "upload"): ("wal", "logs"),
    ("diskless", "offsets"): ("coordinators",),
    ("restore", "plan"): ("sets",),
    ("restore", "apply"): ("sets",),
}
FILTERS = {
    "a topic": (("--topic", "order7"), "Did you mean orders7"),
    "another case": (("--topic", "ORDERS7"), "Did you mean orders7"),
    "a topic like none": (("--topic", "zzzzzz"), "zzzzzz"),
    "a topic's id": (("--topic-id", NOBODYS), f"topic id {NOBODYS}"),
    "another topic's id": (("--topic", "orders7", "--topic-id", NOBODYS), "Topic orders7 has the id "),
    "a partition of the topic": (
        ("--topic", "orders7", "--partition", "99"),
        "there are partitions 0, 1",
    ),
    "a partition": (("--partition", "99"), "partition 99"),
}

BESIDE = [("--topic", "orders7", "order7"), ("--partition", "0", "99"), ("--segment-id", SEGMENT_ID, NOBODYS)]
OF_SEGMENTS = [("metadata", "segments"), ("remote", "ls"), ("remote", "du"), ("verify",), ("orphans", "scan")]
OF_TIMES = [words for words in COMMANDS if words[:2] in (("metadata", "format"), ("metadata", "history"))]

Asked = Callable[..., Outcome]


@cache
def options_of_all() -> dict[tuple[str, ...], set[str]]:
    return {words: {name for one in command.params for name in one.opts} for words, command in commands()}


def options_of(words: tuple[str, ...]) -> set[str]:
    known = options_of_all()
    return known[words[:2]] if words[:2] in known else known[words[:1]]


@pytest.fixture(scope="module")
def places(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sequence[str | Path]]:
    """The options that say where a command reads."""
    capture, folder = captures / "kafka-4.3.1", tmp_path_factory.mktemp("active")
    for partition in ORDERS[:2]:
        write_partition(folder / "logs", replace(partition, topic="orders7"), [batch(0)])
    (folder / "wal").mkdir()
    assert this_process(*upload_words(folder / "logs", folder / "wal"), "--apply").exit_code == ExitCode.CLEAN
    created = [PartitionCreated(topic_id=DISKLESS_TOPIC_ID, topic="orders7", partition=number) for number in (0, 1)]
    write_log(folder / "coordinators", 0, [(NOON_MS, one) for one in created])
    return {
        "metadata": ("--log-dir", capture / "data"),
        "store": ("--store", f"file:{capture / 'remote/kafka-tiered-storage'}"),
        "wal": ("--store", f"file:{folder / 'wal'}"),
        "logs": ("--log-dir", folder / "logs"),
        "coordinators": ("--log-dir", folder / "coordinators", "--coordinators", "1"),
        "sets": CapturedSets.of(captures, folder / "backup").words("1=node"),
    }


@pytest.fixture
def ask(
    places: dict[str, Sequence[str | Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> Asked:
    """Runs a command of `COMMANDS` in a folder of its own, with prices."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tieredctl").mkdir()
    prices = "prices: [{store: 'file:', perGiBMonth: 1, currency: EUR}]\n"
    (tmp_path / "tieredctl/config.yaml").write_text(prices)
    return lambda words, *more: tieredctl(*words, *(one for name in COMMANDS[words] for one in places[name]), *more)


def test_every_command_that_takes_a_topic_is_tried() -> None:
    taking = {words for words, options in options_of_all().items() if "--topic" in options}

    assert taking == {words[:2] if words[:2] in taking else words[:1] for words in COMMANDS}


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, marks=pytest.mark.exhaustive) if "-o" in words else words for words in COMMANDS],
    ids=" ".join,
)
def test_what_nothing_knows_is_an_error_with_the_nearest_names_also_beside_what_is_known(
    words: tuple[str, ...], ask: Asked, tmp_path: Path
) -> None:
    taken = options_of(words)
    for filters, said in FILTERS.values():
        if taken >= {one for one in filters if one.startswith("--")}:
            outcome = ask(words, *filters)

            assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), (filters, outcome.err)
            assert said in outcome.err
    for option, known, unknown in BESIDE:
        if option in taken and (option != "--segment-id" or words in OF_SEGMENTS):
            outcome = ask(words, option, known, option, unknown)

            assert outcome.exit_code == ExitCode.USAGE, (option, outcome)
            assert unknown in outcome.err, option
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(".key")] == ["tieredctl"]


@pytest.mark.parametrize(
    "words",
    [
        ("metadata", "lookup", "order7:0", "--epoch", "0", "--offset", "0"),
        ("metadata", "epochs", "order7:0"),
        ("explain", "order7:0@3"),
        ("remote", "records", "order7:0"),
        ("remote", "records", "order7"),
    ],
    ids=" ".join,
)
def test_a_partition_of_a_topic_that_nothing_knows_is_an_error_with_the_nearest_names(
    words: tuple[str, ...], places: dict[str, Sequence[str | Path]], tieredctl: Tieredctl
) -> None:
    store = places["store"] if words[0] == "remote" else ()

    outcome = tieredctl(*words, *places["metadata"], *store)

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "Did you mean orders7" in outcome.err


def test_a_segment_that_nothing_knows_is_an_error(ask: Asked) -> None:
    for words in OF_SEGMENTS:
        outcome = ask(words, "--segment-id", NOBODYS)

        assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), words
        assert f"segment {NOBODYS}" in outcome.err, words


def test_a_deleted_segment_is_known(log_dir: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("metadata", "segments", "--segment-id", segment_id(1), "--log-dir", log_dir)

    assert outcome == (ExitCode.CLEAN, "", "No segments.\n")


def test_what_metadata_that_is_not_whole_does_not_have_is_unknown(tmp_path: Path, tieredctl: Tieredctl) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"\x00\x63 of a later release")

    for words in (("metadata", "segments"), ("metadata", "format"), ("metadata", "stuck")):
        assert tieredctl(*words, "--topic", "another", "--log-dir", tmp_path).exit_code == ExitCode.FINDINGS


def test_a_known_topic_without_events_at_that_time_is_no_error(ask: Asked) -> None:
    for words in OF_TIMES:
        for times in (("--since", "2030-01-01"), ("--until", "2001-01-01")):
            assert ask(words, "--topic", "orders7", *times)[:2] == (ExitCode.CLEAN, ""), (words, times)
            assert ask(words, "--topic", "order7", *times).exit_code == ExitCode.USAGE, (words, times)


def test_of_a_large_clusters_topics_only_the_likely_ones_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"prod.eu-west-1.team{number % 997}.payments.by.customer.and.region.v{number}" for number in range(10_000)]
    compared: list[str] = []

    class Counting(difflib.SequenceMatcher[str]):
        def set_seq1(self, a: str) -> None:  # type: ignore[override]
            compared.append(a)
            super().set_seq1(a)

    monkeypatch.setattr(difflib, "SequenceMatcher", Counting)

    hint = nearest_hint(names[4711].replace("payments", "paymets"), names)

    assert (hint or "").startswith(f"Did you mean {names[4711]}")
    assert len(compared) < 1000
