"""`diskless simulate` on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

SMALL = ("diskless", "simulate", "--batches", "2000", "--seed", "7", "--failover", "20s", "--crash-rate", "0.05")


def test_the_table_has_what_happened_and_nothing_is_lost(tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*SMALL)

    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0].split() == ["OF", "WHAT", "NUMBER", "COST"]
    assert "2000 batches produced" in outcome.err
    assert "2000 acknowledged; nothing lost." in outcome.err
    assert "0 left after" in outcome.err


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    """Whatever the order is in which that process has its sets."""
    words = [sys.executable, "-m", "tieredctl", *SMALL, "-o", "json"]

    first, second = (
        subprocess.run(words, env=os.environ | {"PYTHONHASHSEED": number}, capture_output=True, check=True).stdout
        for number in ("1", "2")
    )

    assert first == second
    assert b'"acknowledged": 2000' in first


def test_another_seed_gives_another_history(tieredctl: Tieredctl) -> None:
    assert tieredctl(*SMALL).out != tieredctl(*SMALL, "--seed", "8").out


def test_losses_are_counted_and_end_with_4(tieredctl: Tieredctl) -> None:
    """Nothing waits for consumers that still read."""
    outcome = tieredctl(*SMALL, "--grace", "0s", "--retention", "1s", "--batches", "20000", "-o", "json")

    assert outcome.exit_code == 4
    assert outcome.document()["summary"]["lost"] > 0


def test_the_configured_price_of_a_store_gives_the_cost(
    tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "prices:\n- {store: 's3://b', perGiBMonth: 0.023, perThousandPuts: 5, perThousandGets: 0.4, currency: USD}\n"
    )
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(file))

    document = tieredctl(*SMALL, "--price-of", "s3://b", "-o", "json").document()

    rows = {row["what"]: row for row in document["items"]}
    assert rows["write requests"]["cost"] == round(rows["write requests"]["number"] * 5 / 1000, 4)
    assert rows["bytes stored on average"]["cost"] >= 0
    assert document["summary"]["currency"] == "USD"
    assert document["summary"]["cost"] > rows["write requests"]["cost"]


def test_without_a_price_the_cost_is_not_known(tieredctl: Tieredctl) -> None:
    document = tieredctl(*SMALL, "-o", "json").document()

    assert document["summary"]["cost"] is None
    assert {row["cost"] for row in document["items"]} == {None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--batches", "0"), "batches"),
        (("--seed", "-1"), "seed"),
        (("--racks", "7"), "6 brokers cannot be in 7 racks"),
        (("--retention", "soon"), "is not a duration"),
        (("--failover", "1ms"), "--failover 1ms is out of range"),
        (("--clock-skew", "99999d"), "out of range"),
        (("--crash-rate", "1.5"), "crash-rate"),
        (("--price-of", "s3://elsewhere"), "has no price for s3://elsewhere"),
    ],
)
def test_what_cannot_be_simulated_ends_in_a_sentence(
    words: tuple[str, ...], message: str, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl(*SMALL, *words)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert message in outcome.err


@pytest.mark.parametrize("output", ["wide", "jsonl", "yaml", "csv"])
def test_every_format_has_every_row(output: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*SMALL, "-o", output)

    assert outcome.exit_code == 0
    assert "deleted by their last owner" in outcome.out
