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
def capture(captures: Path) -> Path:
    return captures / "kafka-4.3.1"


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
    outcome = recover("-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, document["kind"]) == (0, "IndexRecoveryPlan")
    assert {item["condition"] for item in document["items"]} == {"sound"}
    assert document["summary"]["toWrite"] == 0


def test_a_plan_shows_what_is_wrong_and_what_would_be_written(recover: Recover, time_index: Path) -> None:
    time_index.write_bytes(b"seven b")

    outcome = recover("-o", "json")

    (item,) = [one for one in outcome.document()["items"] if one["condition"] != "sound"]
    assert outcome.exit_code == 3
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


def test_a_dry_run_changes_nothing_whatever_else_is_typed(recover: Recover, time_index: Path) -> None:
    time_index.write_bytes(b"seven b")

    outcome = recover(*CONFIRMED, "--dry-run", "-o", "json")

    assert (outcome.exit_code, outcome.document()["kind"]) == (3, "IndexRecoveryPlan")
    assert time_index.read_bytes() == b"seven b"


def test_a_plan_changes_nothing(recover: Recover, store: Path, time_index: Path) -> None:
    time_index.unlink()
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}

    recover()

    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_the_segment_and_the_interval_are_in_the_summary(recover: Recover) -> None:
    summary = recover("--index-interval-bytes", "1000", "-o", "json").document()["summary"]

    assert (summary["topic"], summary["partition"], summary["startOffset"]) == ("orders7", 0, 39)
    assert summary["indexIntervalBytes"] == 1_000


def test_it_is_done_once_it_is_confirmed(recover: Recover, time_index: Path) -> None:
    written = time_index.read_bytes()
    time_index.unlink()

    outcome = recover(*CONFIRMED, "-o", "json")

    assert outcome.exit_code == 0
    assert outcome.document()["kind"] == "IndexRecovery"
    assert outcome.document()["summary"]["written"] == 1
    assert time_index.read_bytes() == written


def test_a_second_run_has_nothing_to_do(recover: Recover, time_index: Path) -> None:
    time_index.unlink()
    recover(*CONFIRMED)

    outcome = recover(*CONFIRMED)

    assert outcome.exit_code == 0
    assert "there is nothing to write" in outcome.err


def test_what_was_replaced_is_told_with_where_it_went(recover: Recover, store: Path, time_index: Path) -> None:
    time_index.write_bytes(b"seven b")

    outcome = recover(*CONFIRMED, "-o", "json")

    (kept,) = [one["quarantinedAs"] for one in outcome.document()["items"] if one["quarantinedAs"]]
    assert (store / kept).read_bytes() == b"seven b"


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--apply",), "needs confirmation"), ((*CONFIRMED[:3], "AAAAAAAAAAAAAAAAAAAAAA"), "This is cluster")],
)
def test_nothing_is_done_unless_it_is_confirmed(
    recover: Recover, time_index: Path, words: tuple[str, ...], said: str
) -> None:
    time_index.unlink()

    outcome = recover(*words)

    assert (outcome.exit_code, said in outcome.err) == (2, True)
    assert not time_index.exists()


def test_what_stays_unmended_is_reported_and_the_end_is_incomplete(
    recover: Recover, store: Path, time_index: Path
) -> None:
    time_index.unlink()
    (store / f"{STEM}.leader_epoch_checkpoint").unlink()

    outcome = recover(*CONFIRMED, "-o", "json")

    assert outcome.exit_code == 5
    assert outcome.document()["summary"]["impossible"] == 1
    assert "leader-epoch is missing and cannot be rebuilt" in outcome.err
    assert time_index.exists()


def test_a_damaged_log_is_corruption(recover: Recover, store: Path, time_index: Path) -> None:
    log = store / f"{STEM}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\1")
    time_index.unlink()

    outcome = recover()

    assert (outcome.exit_code, "Nothing can be rebuilt from it" in outcome.err) == (4, True)


def test_the_files_that_brokers_may_have_cached_are_named(recover: Recover) -> None:
    outcome = recover("-o", "json")

    assert outcome.document()["summary"]["brokerCache"] == {"files": CACHED, "found": []}
    assert CACHED[0] in outcome.err


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


def test_quiet_says_nothing(recover: Recover) -> None:
    outcome = recover("--quiet")

    assert (outcome.exit_code, outcome.err) == (0, "")


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
