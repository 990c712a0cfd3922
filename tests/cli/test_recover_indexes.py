"""`recover indexes` on captured stores: what it shows, what it asks for, and how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl, own_process

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 with aborted transactions, so one with all six objects."""
STEM = "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ/00000000000000000039-zYJ8cWbWS6Wrn_UH97CRKw"
CLUSTER_ID = "preTTRqnQOeby9xOnCMfyA"
CACHED = [f"39_{SEGMENT_ID}.index", f"39_{SEGMENT_ID}.timeindex", f"39_{SEGMENT_ID}.txnindex"]
CONFIRMED = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)

Recover = Callable[..., Outcome]


@pytest.fixture
def store(capture: Path, tmp_path: Path) -> Path:
    """A copy of the partition's folder."""
    folder = STEM.partition("/")[0]
    shutil.copytree(capture / "remote" / "kafka-tiered-storage" / folder, tmp_path / "store" / folder)
    return tmp_path / "store"


@pytest.fixture
def time_index(store: Path) -> Path:
    return store / f"{STEM}.timeindex"


@pytest.fixture
def recover(capture: Path, store: Path, tieredctl: Tieredctl) -> Recover:
    where = ("--store", f"file:{store}", "--log-dir", capture / "data")
    return lambda *words: tieredctl("recover", "indexes", SEGMENT_ID, *where, *words)


def test_a_sound_segment_is_clean(recover: Recover) -> None:
    outcome = recover("--index-interval-bytes", "1000", "-o", "json")

    document = outcome.document()
    summary = document["summary"]
    assert (outcome.exit_code, document["kind"]) == (0, "IndexRecoveryPlan")
    assert {item["condition"] for item in document["items"]} == {"sound"}
    assert (summary["toWrite"], summary["indexIntervalBytes"]) == (0, 1_000)
    assert (summary["topic"], summary["partition"], summary["startOffset"]) == ("orders7", 0, 39)
    assert summary["brokerCache"] == {"files": CACHED, "found": []}
    assert recover("--quiet").err == ""


def test_a_plan_shows_what_is_wrong_and_changes_nothing_whatever_else_is_typed(
    recover: Recover, store: Path, time_index: Path
) -> None:
    time_index.write_bytes(b"seven b")
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for words in ((), (*CONFIRMED, "--dry-run")):
        outcome = recover(*words, "-o", "json")

        (item,) = [one for one in outcome.document()["items"] if one["condition"] != "sound"]
        assert (outcome.exit_code, outcome.document()["kind"]) == (3, "IndexRecoveryPlan"), words
        assert item == {
            "part": "time-index",
            "condition": "damaged",
            "action": "replace",
            "bytes": 7,
            "rebuiltBytes": 12,
            "key": f"{STEM}.timeindex",
            "reason": "index ends inside an entry of 12 bytes",
            "obstacle": None,
        }
        assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before, words


def test_it_is_done_once_it_is_confirmed_and_then_there_is_nothing_to_do(recover: Recover, time_index: Path) -> None:
    written = time_index.read_bytes()
    time_index.unlink()

    for words in (("--apply",), (*CONFIRMED[:3], "AAAAAAAAAAAAAAAAAAAAAA")):
        assert (recover(*words).exit_code, time_index.exists()) == (2, False), words
    outcome, again = recover(*CONFIRMED, "-o", "json"), recover(*CONFIRMED)

    assert (outcome.exit_code, again.exit_code) == (0, 0)
    assert outcome.document()["kind"] == "IndexRecovery"
    assert outcome.document()["summary"]["written"] == 1
    assert time_index.read_bytes() == written
    assert "there is nothing to write" in again.err


def test_what_was_replaced_is_told_with_where_it_went_and_what_stays_unmended(
    recover: Recover, store: Path, time_index: Path
) -> None:
    """Of a damaged log nothing is rebuilt."""
    log = store / f"{STEM}.log"
    time_index.write_bytes(b"seven b")
    (store / f"{STEM}.leader_epoch_checkpoint").unlink()

    outcome = recover(*CONFIRMED, "-o", "json")
    (kept,) = [one["quarantinedAs"] for one in outcome.document()["items"] if one["quarantinedAs"]]
    time_index.unlink()
    log.write_bytes(log.read_bytes()[:-1] + b"\1")
    damaged = recover()

    assert (outcome.exit_code, outcome.document()["summary"]["impossible"], damaged.exit_code) == (5, 1, 4)
    assert (store / kept).read_bytes() == b"seven b"


def test_those_in_the_log_directories_that_were_named_are_found(
    capture: Path, store: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    log_dir = tmp_path / "data"
    shutil.copytree(capture / "data", log_dir, ignore=shutil.ignore_patterns("orders*", "payments*", "slow*"))
    cached = log_dir / "remote-log-index-cache" / CACHED[1]
    cached.parent.mkdir(exist_ok=True)
    cached.touch()

    outcome = tieredctl(
        "recover", "indexes", SEGMENT_ID, "--store", f"file:{store}", "--log-dir", log_dir, "-o", "json"
    )

    assert str(cached) in outcome.document()["summary"]["brokerCache"]["found"]


def test_aiven_is_planned_and_not_written(captures: Path, tmp_path: Path) -> None:
    capture = captures / "aiven-plain-4.3.1"
    bucket = tmp_path / "bucket"
    shutil.copytree(capture / "bucket", bucket)
    indexes = next(path for path in bucket.rglob("*.indexes") if path.stat().st_size > 400)
    indexes.write_bytes(bytes(byte ^ 1 for byte in indexes.read_bytes()))
    damaged = indexes.read_bytes()
    segment_id = indexes.name[21:43]
    where = ("--store", f"file:{bucket}", "--log-dir", capture / "data", *CONFIRMED[:2])

    outcome = own_process("recover", "indexes", segment_id, *where, "-o", "json")

    unmended = [one for one in outcome.document()["items"] if one["condition"] != "sound"]
    assert outcome.exit_code == 5
    assert "time-index" in [one["part"] for one in unmended]
    assert {one["obstacle"] for one in unmended if one["rebuiltBytes"] is not None} == {
        "recover indexes cannot write the layout aiven yet"
    }
    assert indexes.read_bytes() == damaged
