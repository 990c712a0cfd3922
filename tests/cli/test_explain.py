"""`explain` without a cluster: what the metadata of a captured one tells of an offset."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import DELETING, copied, updated, write_events
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""The segment of orders7-0 with offsets 39 to 43."""


@pytest.fixture
def log_dir(captures: Path) -> Path:
    return captures / "kafka-4.3.1/data"


@pytest.fixture
def store(captures: Path) -> Path:
    return captures / "kafka-4.3.1/remote/kafka-tiered-storage"


def test_an_offset_in_remote_storage_has_a_segment_and_no_word_of_local_disks(
    log_dir: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("explain", "orders7:0@40", "--log-dir", log_dir, "-o", "json")

    (item,) = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert (item["place"], item["leaderEpoch"]) == ("remote", 0)
    assert item["segment"]["segmentId"] == SEGMENT_ID
    assert (item["log"], item["consumerFetch"]) == (None, None)
    assert (item["timeline"]["copied"], item["timeline"]["localLogStartOffset"]) == ([[0, 89]], None)


def test_what_is_on_its_way_is_said_of_the_offset(captures: Path, tieredctl: Tieredctl) -> None:
    for where, marked in (
        ("gone33:0@40", "40: not tiered, being deleted"),
        ("gone33:1@12", "12: tiered"),
        ("gone33:1@100000", "100000: not tiered >"),
    ):
        shown = tieredctl("explain", where, "--log-dir", captures / "aiven-crash-4.3.1" / "data").out
        assert marked in shown
        assert where != "gone33:0@40" or ("reaches to" in shown, "up to 71" in shown) == (False, True)


def test_an_offset_behind_what_is_uploaded_or_of_another_epoch_is_in_no_remote_segment(
    log_dir: Path, tieredctl: Tieredctl
) -> None:
    behind = tieredctl("explain", "orders7:0@100000", "--log-dir", log_dir, "-o", "json")
    (item,) = behind.document()["items"]
    assert behind.exit_code == 3
    assert (item["place"], item["segment"]) == ("not-remote", None)

    for offset in (39, 40, 43):  # the segment's first and last, and one between
        of_epoch = ("explain", f"orders7:0@{offset}", "--epoch", "2", "--log-dir", log_dir)
        other = tieredctl(*of_epoch, "-o", "json")
        (of_other,) = other.document()["items"]
        assert other.exit_code == 3, offset
        assert [segment["segmentId"] for segment in of_other["otherSegments"]] == [SEGMENT_ID], offset
        assert "the other segment has another one" in tieredctl(*of_epoch).out, offset


def test_what_cannot_be_explained_is_a_mistake_of_usage(log_dir: Path, tieredctl: Tieredctl) -> None:
    for line in (
        "orders7:0",
        "orders7:0@1 --timestamp 0",
        "orders7:0 --timestamp 0",
        "orders7:0@-1",
        "orders7@1",
        "orders7:0@99999999999999999999",
        "no-such-topic:0@1",
    ):
        assert tieredctl("explain", *line.split(), "--log-dir", log_dir).exit_code == 2, line


def test_with_a_store_each_object_is_there_with_its_size(log_dir: Path, store: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("explain", "orders7:0@40", "--log-dir", log_dir, "--store", f"file:{store}", "-o", "json")

    (item,) = outcome.document()["items"]
    parts = {stored["part"]: stored["size"] for stored in item["objects"]}
    assert parts["log"] == 1109
    assert set(parts) == {
        "log", "offset-index", "time-index", "producer-snapshot", "leader-epoch", "transaction-index",
    }  # fmt: skip


def test_an_object_that_is_missing_is_the_finding(
    log_dir: Path, store: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    damaged = shutil.copytree(store, tmp_path / "store")
    (log,) = damaged.glob(f"*/*{SEGMENT_ID}.log")
    log.unlink()

    outcome = tieredctl("explain", "orders7:0@40", "--log-dir", log_dir, "--store", f"file:{damaged}", "-o", "json")

    (finding,) = outcome.document()["summary"]["findings"]
    assert outcome.exit_code == 4
    assert finding["code"] == "object-missing"
    assert finding["evidence"]["offsets"] == [39, 43]


def test_an_object_that_retention_deletes_while_it_is_looked_for_is_not_missing(
    tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, data, bucket = copied(1, 0, 9), tmp_path / "data", tmp_path / "store"
    bucket.mkdir()
    write_events(data, *events)
    where = ("t:0@5", "--log-dir", data, "--store", f"file:{bucket}", "--layout", "local", "-o", "json")
    at_rest = tieredctl("explain", *where)
    head = FileStore.head

    def deleted_before(store: FileStore, key: str) -> StoredObject | None:
        write_events(data, *events, updated(1, DELETING))
        return head(store, key)

    monkeypatch.setattr(FileStore, "head", deleted_before)

    moving = tieredctl("explain", *where)

    assert (at_rest.exit_code, moving.exit_code) == (4, 3)
    assert moving.document()["summary"]["findings"] == []
