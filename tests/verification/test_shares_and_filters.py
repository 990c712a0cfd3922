"""`verify` of a part of a cluster, as the command line does it, and what its summary counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tests.faults.cluster import Cluster
from tieredctl.cli.main import run
from tieredctl.ops.verification.options import Subset
from tieredctl.ops.verification.report import Level

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 with all six objects."""


@pytest.fixture
def capture(captures: Path) -> Path:
    return captures / "kafka-4.3.1"


def words_for(capture: Path, *words: str) -> list[str]:
    store = f"file:{capture / 'remote' / 'kafka-tiered-storage'}"
    return ["verify", "--log-dir", str(capture / "data"), "--store", store, *words]


def verified(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Outcome:
    exit_code = run(words_for(capture, "-o", "json", *words))
    said = capsys.readouterr()
    return Outcome(exit_code, said.out, said.err)


def summary(outcome: Outcome) -> dict[str, Any]:
    assert outcome.exit_code == 0
    counts: dict[str, Any] = outcome.document()["summary"]
    return counts


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_shares_are_disjoint_and_cover_everything(cluster: Cluster, count: int) -> None:
    ids = [metadata.segment_id for metadata in cluster.finished()]

    owners = [[number for number in range(1, count + 1) if Subset(number, count).has(one)] for one in ids]

    assert all(len(owning) == 1 for owning in owners)
    assert {number for (number,) in owners} == set(range(1, count + 1))


@pytest.mark.parametrize("level", list(Level))
def test_shares_add_up_to_the_whole(cluster: Cluster, level: Level) -> None:
    whole = cluster.verify(level)

    shares = [cluster.verify(level, subset=Subset(number, 3)) for number in (1, 2, 3)]

    for count in ("segments", "objects", "bytes_read", "batches", "records"):
        assert sum(getattr(share, count) for share in shares) == getattr(whole, count)
    assert all(share.findings == [] for share in shares)


def test_a_share_in_percent_is_the_first_of_so_many(cluster: Cluster) -> None:
    ids = [metadata.segment_id for metadata in cluster.finished()]

    assert [Subset.parse("5%").has(one) for one in ids] == [Subset.parse("1/20").has(one) for one in ids]


@pytest.mark.parametrize("text", ["0/3", "4/3", "-1/3", "1/0", "3", "x/3", "0%", "101%", "nan%", "inf%", "-5%", ""])
def test_what_is_not_a_share_is_wrong_use(capture: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = verified(capture, capsys, f"--subset={text}")

    assert (outcome.exit_code, outcome.out) == (2, "")


def test_the_summary_has_its_fixed_fields(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = summary(verified(capture, capsys, "--level", "full"))

    assert {name: counts[name] for name in ("segments", "objects", "batches", "records", "skipped", "complete")} == {
        "segments": 172,
        "objects": 879,
        "batches": 255,
        "records": 780,
        "skipped": 0,
        "complete": True,
    }
    assert counts["bytesRead"] > 2_000_000


def test_one_segment(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = summary(verified(capture, capsys, "--level", "full", "--segment-id", SEGMENT_ID))

    assert (counts["segments"], counts["objects"], counts["batches"], counts["records"]) == (1, 6, 2, 5)


def test_one_topic(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(verified(capture, capsys, "--topic", "slow7"))["segments"] == 2


def test_one_partition_of_a_topic(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(verified(capture, capsys, "--topic", "orders7", "--partition", "2"))["segments"] == 25


def test_one_partition_of_each_topic(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(verified(capture, capsys, "--partition", "2"))["segments"] == 50


@pytest.mark.parametrize(
    "words",
    [
        ["--topic", "nosuch"],
        ["--partition", "77"],
        ["--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
        ["--segment-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
    ],
)
def test_what_nobody_knows_is_not_clean(capture: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outcome = verified(capture, capsys, *words)

    assert (outcome.exit_code, outcome.out) == (2, "")
