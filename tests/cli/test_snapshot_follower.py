"""`snapshot ls --follower-at`: what a node, if it leads, sends a follower."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.errors import ExitCode


@pytest.fixture
def data(captures: Path) -> Path:
    """Its log has epoch 1 from offset 0 and epoch 2 from 86 to 123; the latest snapshot is 107-2."""
    return captures / "kafka-4.3.1/data"


@pytest.mark.parametrize(
    ("at", "answer", "sentence"),
    [
        ("0:0", ("snapshot", 107, 2), "is sent the snapshot 107-2 (the follower's log is empty"),
        ("10:0", ("snapshot", 107, 2), "epoch 0 is before that of the oldest snapshot, 1"),
        ("50:1", ("records", 50, 1), "is sent records from offset 50 on"),
        ("90:1", ("diverging", 86, 1), "truncate to offset 86 of epoch 1 (epoch 1 ends at offset 86 here"),
        ("123:2", ("records", 123, 2), "records from offset 123 on"),
        ("124:2", ("diverging", 123, 2), "truncate to offset 123 of epoch 2"),
        ("123:3", ("diverging", 123, 2), "the log has no epoch 3"),
    ],
)
def test_what_a_follower_is_sent(
    tieredctl: Tieredctl, data: Path, at: str, answer: tuple[str, int, int], sentence: str
) -> None:
    outcome = tieredctl("snapshot", "ls", data, "--follower-at", at, "-o", "json")

    (log,) = outcome.document()["summary"]["logs"]
    follower = log["follower"]
    assert outcome.exit_code == ExitCode.CLEAN
    assert (follower["answer"], follower["endOffset"], follower["epoch"]) == answer
    assert sentence in tieredctl("snapshot", "ls", data, "--follower-at", at).err


@pytest.mark.parametrize(
    "at", ["", "5", "5:", ":1", "-1:0", "5:-1", "1e3:1", "\u0665:1", f"{1 << 63}:0", f"0:{1 << 31}", "9" * 9_999 + ":1"]
)
def test_what_is_no_offset_and_epoch_is_a_usage_error(tieredctl: Tieredctl, data: Path, at: str) -> None:
    outcome = tieredctl("snapshot", "ls", data, f"--follower-at={at}")

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "--follower-at" in outcome.err


def test_a_single_snapshot_answers_no_follower(tieredctl: Tieredctl, data: Path) -> None:
    snapshot = next((data / "__cluster_metadata-0").glob("*.checkpoint"))

    outcome = tieredctl("snapshot", "ls", snapshot, "--follower-at", "0:0")

    assert outcome.exit_code == ExitCode.USAGE
    assert "is for nodes' folders" in outcome.err
