"""`tieredctl wal upload`: brokers' active segments into combined objects, whatever interrupts it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import CONFIRMED, EVENTS, FIRST, cut_at, logs_in, objects, restored, upload_words
from tests.wal.killed_store import Killed, killed_after
from tests.wal.local_partitions import ORDERS, batch, write_partition


def test_without_apply_an_upload_is_only_planned(log_dir: Path, store: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*upload_words(log_dir, store), "-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, list(store.iterdir())) == (0, [])
    assert [(row["topic"], row["partition"], row["startOffset"], row["endOffset"]) for row in document["items"]] == [
        ("orders", 0, 0, 5),
        ("orders", 1, 0, 1),
        ("other", 0, 10, 13),
    ]
    assert (document["summary"]["objects"], document["summary"]["applied"]) == (1, False)


def test_only_what_is_new_is_uploaded(log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    before = objects(uploaded)
    log = log_dir / "orders-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + batch(6, epoch=1))

    again = tieredctl(*upload_words(log_dir, uploaded), "--apply", "-o", "json").document()

    assert [(row["topic"], row["startOffset"], row["endOffset"]) for row in again["items"]] == [("orders", 6, 6)]
    assert len(objects(uploaded)) == len(before) + 1
    assert restored(tieredctl, uploaded, tmp_path / "to") == 0
    assert (tmp_path / "to/orders-0" / log.name).read_bytes() == log.read_bytes()


def test_closed_segments_are_uploaded_when_asked_and_long_sections_divided_between_batches(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    batches = [batch(offset) for offset in range(7)]
    write_partition(tmp_path / "two", ORDERS[0], FIRST[:2], FIRST[2:])
    write_partition(tmp_path / "one", ORDERS[0], batches)
    for logs, words, expected in (
        ("two", (), [(2, 5)]),
        ("two", ("--all-segments",), [(0, 5)]),
        ("one", ("--upload-bytes", str(3 * len(batches[0]))), [(0, 2), (3, 5), (6, 6)]),
        ("one", ("--upload-bytes", "1"), [(offset, offset) for offset in range(7)]),
    ):
        rows = tieredctl(*upload_words(tmp_path / logs, store), *words, "-o", "jsonl").lines()

        assert [(row["startOffset"], row["endOffset"]) for row in rows] == expected, (logs, words)


def test_of_replicas_the_one_of_the_latest_leader_is_uploaded(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(tmp_path / "longer", ORDERS[0], [batch(offset) for offset in range(9)])
    write_partition(tmp_path / "later", ORDERS[0], FIRST)

    words = upload_words(tmp_path / "longer", store)
    rows = tieredctl(*words, "--log-dir", tmp_path / "later", "-o", "jsonl").lines()

    assert [(row["startOffset"], row["endOffset"]) for row in rows] == [(0, 5)]


def test_an_incomplete_last_batch_is_left_out_and_other_damage_reported(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    torn = write_partition(tmp_path / "logs", ORDERS[0], FIRST) / f"{0:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    damaged = write_partition(tmp_path / "logs", ORDERS[1], FIRST) / f"{0:020d}.log"
    damaged.write_bytes(FIRST[0] + FIRST[1][:-1] + b"?" + FIRST[2])

    outcome = tieredctl(*upload_words(tmp_path / "logs", store), "--apply", "-o", "jsonl")

    assert outcome.exit_code == 4
    assert [(row["partition"], row["endOffset"]) for row in outcome.lines()] == [(0, 4), (1, 0)]
    assert "wal-log-damaged" in outcome.err


def test_a_log_that_ends_before_what_is_uploaded_adds_nothing(
    log_dir: Path, uploaded: Path, tieredctl: Tieredctl
) -> None:
    (log_dir / "orders-0" / f"{0:020d}.log").write_bytes(FIRST[0])

    outcome = tieredctl(*upload_words(log_dir, uploaded), "--apply", *CONFIRMED)

    assert outcome.exit_code == 4
    assert "wal-log-behind" in outcome.err
    assert "wal-log-damaged" in outcome.err


def test_a_new_leaders_log_replaces_what_it_does_not_have(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    """KIP-1176, "Leader Failover and Recovery in an AZ Outage": B1 uploaded up to offset 10, B2 has 5 and goes on."""
    old = [batch(offset) for offset in range(11)]
    new = [*old[:6], *(batch(offset, epoch=1, size=50) for offset in range(6, 14))]
    write_partition(tmp_path / "b1", ORDERS[0], old)
    write_partition(tmp_path / "b2", ORDERS[0], new)
    of_b1 = (*upload_words(tmp_path / "b1", store), "--upload-bytes", "300", "--apply")
    assert tieredctl(*of_b1).exit_code == 0

    outcome = tieredctl(*upload_words(tmp_path / "b2", store), "--apply", *CONFIRMED, "-o", "json")

    assert outcome.exit_code == 0, outcome.err
    assert outcome.document()["summary"]["deleted"] > 0
    assert restored(tieredctl, store, tmp_path / "to") == 0
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(new)
    assert tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full").exit_code == 0
    again = tieredctl(*of_b1)
    assert again.exit_code == 3
    assert "wal-log-behind" in again.err


WRITES = 11
"""Of the upload below, with its own objects for lease and clock."""


@pytest.mark.parametrize("boundary", cut_at(WRITES))
def test_an_upload_killed_before_any_of_its_writes_loses_nothing(
    boundary: int, log_dir: Path, store: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*upload_words(log_dir, store), "--upload-bytes", "900", "--apply")
    with monkeypatch.context() as patched:
        written = killed_after(patched, boundary if boundary < WRITES else None)
        with suppress(Killed):
            assert tieredctl(*words).exit_code == 0
    assert len(written) == boundary
    verify = ("wal", "verify", "--store", f"file:{store}")
    if (store / EVENTS).exists():
        assert tieredctl(*verify).exit_code == 0
        assert tieredctl(*verify, "--older-than", "0s").exit_code in (0, 3)
    # In its place: five minutes, after which a lease is no longer held.
    (store / ".tieredctl/lease.json").unlink(missing_ok=True)

    assert tieredctl(*words).exit_code == 0

    assert restored(tieredctl, store, tmp_path / "to") == 0
    assert logs_in(tmp_path / "to") == logs_in(log_dir)
    assert tieredctl(*verify, "--level", "full").exit_code == 0


def test_an_upload_that_never_ended_needs_attention_after_an_hour(
    log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, suppress(Killed):
        killed_after(patched, 4)
        tieredctl(*upload_words(log_dir, store), "--apply")

    verify = ("wal", "verify", "--store", f"file:{store}", "-o", "json")
    assert tieredctl(*verify).exit_code == 0
    assert tieredctl(*verify, "--now", "2100-01-01").finding(3)["code"] == "wal-upload-unfinished"
