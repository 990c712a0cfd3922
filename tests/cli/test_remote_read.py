"""`remote read` on a captured store: the bytes that the broker wrote, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment, own_process
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
def capture(captures: Path) -> Path:
    return captures / "kafka-4.3.1"


@pytest.fixture
def store(capture: Path) -> Path:
    return capture / "remote" / "kafka-tiered-storage"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "part"


@pytest.mark.parametrize("part", SUFFIXES)
def test_each_part_is_written_as_it_was(store: Path, target: Path, tieredctl: Tieredctl, part: str) -> None:
    outcome = tieredctl("remote", "read", SEGMENT_ID, "--part", part, "--to", target, "--store", f"file:{store}")

    assert outcome.exit_code == 0
    assert target.read_bytes() == (store / f"{STEM}.{SUFFIXES[part]}").read_bytes()


def test_the_log_is_read_unless_another_part_is_named(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}")

    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()


def test_what_was_written_is_reported(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", "-o", "json")

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


@pytest.mark.parametrize("selection", [(), ("--topic", "orders7", "--partition", "0")])
def test_the_segment_may_be_looked_up_in_the_metadata(
    capture: Path, store: Path, target: Path, tieredctl: Tieredctl, selection: tuple[str, ...]
) -> None:
    metadata = ("--log-dir", capture / "data", *selection)

    outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", *metadata)

    assert outcome.exit_code == 0
    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()


@pytest.mark.parametrize("metadata", [False, True])
@pytest.mark.parametrize(
    "words", [("AQIDBAUGBwgJCgsMDQ4PEA",), (SEGMENT_ID, "--topic", "slow7"), (SEGMENT_ID, "--partition", "1")]
)
def test_a_segment_that_is_not_there_is_named(
    capture: Path, store: Path, target: Path, tieredctl: Tieredctl, words: tuple[str, ...], metadata: bool
) -> None:
    source = ("--log-dir", capture / "data") if metadata else ()

    outcome = tieredctl("remote", "read", *words, "--to", target, "--store", f"file:{store}", *source)

    assert outcome.exit_code == 2
    assert words[0] in outcome.err
    assert not target.exists()


def test_a_part_that_no_broker_wrote_is_wrong_usage(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "read", SEGMENT_ID, "--part", "manifest", "--to", target, "--store", f"file:{store}")

    assert outcome.exit_code == 2
    assert "log, offset-index, time-index, producer-snapshot, leader-epoch, transaction-index" in outcome.err


def test_a_segment_without_the_part_leaves_no_file(
    capture: Path, store: Path, target: Path, tieredctl: Tieredctl
) -> None:
    without = next(path for path in sorted(store.rglob("*.log")) if not path.with_suffix(".txnindex").exists())
    words = (without.stem[-22:], "--part", "transaction-index", "--to", target)

    outcome = tieredctl("remote", "read", *words, "--store", f"file:{store}")

    assert outcome.exit_code == 1
    assert list(target.parent.iterdir()) == []


def test_a_reader_that_has_gone_is_not_a_failure(store: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    big = max(store.rglob("*.log"), key=lambda path: path.stat().st_size)

    with os.fdopen(write_end, "wb") as gone:
        outcome = own_process_to(
            gone.fileno(), "remote", "read", big.stem[-22:], "--to", "-", "--store", f"file:{store}"
        )

    assert outcome == (0, "")


def own_process_to(stdout: int, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "tieredctl", *words]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    return done.returncode, done.stderr


def test_two_sources_of_metadata_exclude_each_other(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    sources = ("--log-dir", "x", "--export", "y")

    outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", *sources)

    assert outcome.exit_code == 2
    assert "exclude each other" in outcome.err


def test_a_file_that_is_there_is_replaced_by_force_alone(store: Path, target: Path, tieredctl: Tieredctl) -> None:
    target.write_bytes(b"precious")
    words = ("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}")

    refused = tieredctl(*words)
    kept = target.read_bytes()
    forced = tieredctl(*words, "--force")

    assert (refused.exit_code, forced.exit_code) == (1, 0)
    assert f"{target} already exists" in refused.err
    assert "Give --force to replace it." in refused.err
    assert kept == b"precious"
    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()


def test_a_log_whose_size_is_unknown_is_written_as_it_is_stored(
    store: Path, target: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    partition = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "orders7", 0)
    segment = started(1, 39, 80, partition=partition, segment_size_in_bytes=-1, segment_id=SEGMENT_ID)
    write_events(tmp_path, segment, replace(updated(1, COPIED, partition=partition), segment_id=SEGMENT_ID))

    outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", "--log-dir", tmp_path)

    assert outcome.exit_code == 0, outcome.err
    assert target.read_bytes() == (store / f"{STEM}.log").read_bytes()


@pytest.mark.parametrize(("claimed", "said"), [(1_000, "more than the 1000 bytes"), (1 << 30, "not the 1073741824")])
def test_a_log_of_another_size_than_the_metadata_says_is_not_written(
    store: Path, target: Path, tmp_path: Path, tieredctl: Tieredctl, claimed: int, said: str
) -> None:
    partition = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "orders7", 0)
    segment = started(1, 39, 80, partition=partition, segment_size_in_bytes=claimed, segment_id=SEGMENT_ID)
    write_events(tmp_path, segment, replace(updated(1, COPIED, partition=partition), segment_id=SEGMENT_ID))
    words = ("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{store}", "--log-dir", tmp_path)

    outcome = tieredctl(*words)

    assert outcome.exit_code == 4
    assert said in outcome.err
    assert not target.exists()
