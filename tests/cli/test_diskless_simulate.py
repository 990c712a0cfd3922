"""`diskless simulate` on the command line."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment
from tests.rigs.waiting import wait_until

_OPTIONS = {"--batches": "2000", "--seed": "7", "--failover": "20s", "--crash-rate": "0.05"}


def small(*options: str) -> tuple[str, ...]:
    """A small cluster with many faults, with other options or others of their values."""
    all_options = _OPTIONS | dict(zip(options[::2], options[1::2], strict=True))
    return ("diskless", "simulate", *(word for option in all_options.items() for word in option))


SMALL = small()


def test_the_table_has_what_happened_and_nothing_is_lost(tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*SMALL)

    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0].split() == ["OF", "WHAT", "NUMBER", "COST"]
    assert "2000 acknowledged; nothing lost." in outcome.err
    assert "0 left after" in outcome.err
    assert outcome.out != tieredctl(*small("--seed", "8")).out
    for output in ("wide", "jsonl", "yaml", "csv"):
        other = tieredctl(*SMALL, "-o", output)
        assert (other.exit_code, "deleted by their last owner" in other.out) == (0, True), output


def test_without_a_price_the_cost_is_not_known(tieredctl: Tieredctl) -> None:
    document = tieredctl(*SMALL, "-o", "json").document()

    assert document["summary"]["cost"] is None
    assert {row["cost"] for row in document["items"]} == {None}


def test_what_cannot_be_simulated_is_refused(tieredctl: Tieredctl) -> None:
    for words in (
        ("--batches", "0"),
        ("--seed", "-1"),
        ("--racks", "7"),
        ("--retention", "soon"),
        ("--failover", "1ms"),
        ("--clock-skew", "99999d"),
        ("--crash-rate", "1.5"),
        ("--price-of", "s3://elsewhere"),
    ):
        assert tieredctl(*small(*words))[:2] == (2, ""), words


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    """Whatever the order is in which that process has its sets."""
    words = [sys.executable, "-m", "tieredctl", *SMALL, "-o", "json"]

    first, second = (
        subprocess.run(words, env=environment(PYTHONHASHSEED=number), capture_output=True, check=True).stdout
        for number in ("1", "2")
    )

    assert first == second
    assert b'"acknowledged": 2000' in first


def test_losses_are_counted_and_end_with_4(tieredctl: Tieredctl) -> None:
    """Nothing waits for consumers that still read."""
    outcome = tieredctl(*small("--grace", "0s", "--retention", "1s", "--batches", "20000", "-o", "json"))

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


def test_interrupted_it_leaves_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tieredctl", *small("--batches", "9000000")]
    running = subprocess.Popen(
        words, env=environment(TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: any(tmp_path.glob("*/*/state-0.sqlite")), "states are there", 60)

    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)

    assert (running.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_is_full_ends_in_a_sentence(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tieredctl", *SMALL]

    done = subprocess.run(
        words,
        env=environment(TMPDIR=str(tmp_path)),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot be written to {tmp_path}" in done.stderr
    assert list(tmp_path.iterdir()) == []
