"""`estimate follower-bootstrap` from stated bytes."""

from __future__ import annotations

import pytest

from tests.cli.command_line import Tieredctl

STATED = ("--partition-bytes", "12TB", "--local-bytes", "1TB", "--pending-bytes", "100GB")


def test_each_way_has_its_bytes_its_time_and_its_ratios(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "follower-bootstrap", *STATED, "--throughput", "100MB", "-o", "json")

    rows = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert [row["way"] for row in rows] == ["everything", "local", "pending-upload"]
    assert [row["bytes"] for row in rows] == [12 * 10**12, 10**12, 10**11]
    assert [row["seconds"] for row in rows] == [120_000, 10_000, 1_000]
    assert [row["ratioToEverything"] for row in rows] == [1, 0.0833, 0.0083]
    assert [row["ratioToLocal"] for row in rows] == [None, None, 0.1]


def test_what_the_kips_measured_stands_beside(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "follower-bootstrap", *STATED)

    assert "KIP-405: 2 of 230 minutes, 4 of 520 minutes" in outcome.out
    assert "KIP-1023: 10 to 15 % of local" in outcome.out


def test_without_a_throughput_there_are_no_times(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "follower-bootstrap", *STATED, "-o", "json")

    assert {row["seconds"] for row in outcome.document()["items"]} == {None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name a partition, or state"),
        (STATED[:4], "Name a partition, or state"),
        (("orders:0", *STATED), "Name a partition, or state"),
        (("orders:0",), "No cluster was given"),
        ((*STATED, "--throughput", "0"), "never ends"),
        ((*STATED, "--throughput", "fast"), "is not a number of bytes"),
        (("--partition-bytes", "1", "--local-bytes", "2", "--pending-bytes", "0"), "must not exceed"),
    ],
)
def test_what_cannot_be_estimated_is_a_mistake_of_usage(
    words: tuple[str, ...], message: str, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("estimate", "follower-bootstrap", *words)

    assert outcome.exit_code == 2
    assert message in outcome.err
