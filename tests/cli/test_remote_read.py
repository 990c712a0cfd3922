"""`remote read` on a captured store: the bytes that the broker wrote, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, own_process
from tests.metadata_logs import COPIED, started, updated, write_events
from tieredctl.model.ids import TopicIdPartition

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 with aborted transactions, so one with all six objects."""
STEM = "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ/00000000000000000039-zYJ8cWbWS6Wrn_UH97CRKw"
SUFFIXES = {
    "log": "log",
    "offset-index": "index",
    "time-index": "timeindex",
    "producer-snapshot": "snapshot",
    "leader-epoch": "leader_epoch_checkpoint",
    "transaction-index": "txnindex",
}


@pytest.fixture
def store(capture: Path) -> Path:
    return capture / "remote" / "kafka-tiered-storage"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "part"


def test_each_part_is_written_as_it_was(capture: Path, store: Path, target: Path, tieredctl: Tieredctl) -> None:
    """The log unless another is named; of a segment that may be looked up in the metadata."""
    metadata = ("--log-dir", capture / "data")
    for words, suffix in (
        *((("--part", part), suffix) for part, suffix in SUFFIXES.items()),
        ((), "log"),
        (metadata, "log"),
        ((*metadata, "--topic", "orders7", "--partition", "0"), "log"),
    ):
        outcome = tieredctl(
            "remote", "read", SEGMENT_ID, *words, "--to", target, "--store", f"file:{store}", "--force", "-o", "json"
        )

        assert outcome.exit_code == 0, words
        assert target.read_bytes() == (store / f"{STEM}.{suffix}").read_bytes(), words
    document = outcome.document()
    assert document["kind"] == "RemoteRead"
    assert document["items"] == [
        {
            "topic": "orders7",
            "topicId": "Ex-aw3fEQIi3do0H9Y7cKQ",
            "partition": 0,
            "segmentId": SEGMENT_ID,
            "startOffset": 39,
            "part": "log",
            "bytes": target.stat().st_size,
            "file": str(target),
        }
    ]


def test_a_dash_means_stdout_and_nothing_else_is_written_there(store: Path) -> None:
    outcome = own_process(
        "remote", "read", SEGMENT_ID, "--part", "leader-epoch", "--to", "-", "--store", f"file:{store}"
    )

    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out == (store / f"{STEM}.leader_epoch_checkpoint").read_text()


def test_what_is_not_there_or_cannot_be_meant_is_wrong_use(
    capture: Path, store: Path, target: Path, tieredctl: Tieredctl
) -> None:
    for source in ((), ("--log-dir", capture / "data")):
        for words in (("AQIDBAUGBwgJCgsMDQ4PEA",), (SEGMENT_ID, "--topic", "slow7"), (SEGMENT_ID, "--partition", "1")):
            outcome = tieredctl("remote", "read", *words, "--to", target, "--store", f"file:{store}", *source)

            assert (outcome.exit_code, words[0] in outcome.err, target.exists()) == (2, True, False), (words, source)
    for options in (("--part", "manifest"), ("--log-dir", "x", "--export", "y")):
        outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", *options)

        assert (outcome.exit_code, target.exists()) == (2, False), options


def test_a_segment_without_the_part_leaves_no_file(
    capture: Path, store: Path, target: Path, tieredctl: Tieredctl
) -> None:
    without = next(path for path in sorted(store.rglob("*.log")) if not path.with_suffix(".txnindex").exists())
    words = (without.stem[-22:], "--part", "transaction-index", "--to", target)

    outcome = tieredctl("remote", "read", *words, "--store", f"file:{store}")

    assert outcome.exit_code == 1
    assert list(target.parent.iterdir()) == []


def test_a_file_that_is_there_is_replaced_by_force_alone(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    target.write_bytes(b"precious")
    words = ("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}")

    refused = tieredctl(*words)
    kept = target.read_bytes()
    forced = tieredctl(*words, "--force")

    assert (refused.exit_code, forced.exit_code) == (1, 0)
    assert kept == b"precious"
    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()


def test_a_log_is_written_where_its_size_is_that_of_the_metadata_or_unknown_there(
    store: Path, target: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    partition = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "orders7", 0)
    for number, (claimed, code) in enumerate(((1_000, 4), (1 << 30, 4), (-1, 0))):
        segment = started(1, 39, 80, partition=partition, segment_size_in_bytes=claimed, segment_id=SEGMENT_ID)
        finished = replace(updated(1, COPIED, partition=partition), segment_id=SEGMENT_ID)
        write_events(tmp_path / str(number), segment, finished)
        where = ("--store", f"file:{store}", "--log-dir", tmp_path / str(number))

        outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, *where)

        assert (outcome.exit_code, target.exists()) == (code, code == 0), (claimed, outcome.err)
    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()
