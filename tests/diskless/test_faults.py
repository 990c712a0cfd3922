"""One thing is broken in the captured bucket or its control plane: `diskless verify` finds that, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.inkless import Inkless
from tieredctl.control_plane.postgres import PostgresControlPlane
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.file import FileStore

FOLDER = "kafka-prod/diskless/"
TWO_PARTITIONS = f"{FOLDER}j8sPwINeRtKiPiZlT01R0w"
"""File 2: payments-0 at offset 0, two record batches of idempotent producers, and orders-0 at offset 42."""
PRUNED, KEPT_PARTLY = f"{FOLDER}gQj1GrCqRnKjVRnEfy1SLg", f"{FOLDER}4n3RX4WnSiefm6pycS9bxQ"
"""Both with 2586 bytes, of the same partitions; file 10 has the batches 25 and 26."""
ONE_BATCH = f"{FOLDER}b66arlMtQRSjOhgrVZ6pUg"
"""File 15: orders-1 at offsets 7 to 11, batch 33."""
HOURS_AGO = -3 * 3600


@pytest.fixture
def tidy(inkless: Inkless) -> Inkless:
    """The capture without what nothing needs any more."""
    roles = inkless.capture.document["roles"]
    left = [roles[name] for name in ("orphan_broker_killed", "orphan_database_down")]
    for key in (*left, *roles["deleting_object_present"]):
        (inkless.bucket / key).unlink()
    return inkless


def alter(*statements: str) -> Callable[[Inkless], None]:
    return lambda inkless: inkless.run(*statements)


def flip(key: str, position: int) -> Callable[[Inkless], None]:
    def change(inkless: Inkless) -> None:
        path = inkless.bucket / key
        data = bytearray(path.read_bytes())
        data[position] ^= 0x01
        path.write_bytes(data)

    return change


def cut(key: str, size: int) -> Callable[[Inkless], None]:
    return lambda inkless: os.truncate(inkless.bucket / key, size)


def remove(inkless: Inkless) -> None:
    (inkless.bucket / TWO_PARTITIONS).unlink()


def swap(inkless: Inkless) -> None:
    data = (inkless.capture.folder / "bucket" / PRUNED).read_bytes()
    (inkless.bucket / KEPT_PARTLY).write_bytes(data)


def add_unknown_file(inkless: Inkless) -> None:
    path = inkless.bucket / FOLDER / "AAAAAAAAAAAAAAAAAAAAAA"
    path.write_bytes(b"x" * 10)
    then = inkless.capture.now_ms / 1000 + HOURS_AGO
    os.utime(path, (then, then))


class Fault(NamedTuple):
    """How to make it, and what is found: code, exit code, some of the evidence."""

    make: Callable[[Inkless], None]
    code: str
    exit_code: int
    evidence: dict[str, Any]


TEN_FAULTS = {
    "flipped byte": Fault(
        flip(TWO_PARTITIONS, 1000),
        *("batch-corrupt", 4),
        {"key": TWO_PARTITIONS, "position": 790, "topic": "orders", "partition": 0, "offsets": [42, 47]},
    ),
    "cut object": Fault(
        cut(TWO_PARTITIONS, 1000),
        "size-mismatch",
        4,
        {"key": TWO_PARTITIONS, "storedSize": 1000, "committedSize": 1302},
    ),
    "missing object": Fault(remove, "object-missing", 4, {"key": TWO_PARTITIONS, "batchCount": 2}),
    "object swapped": Fault(swap, "batch-mismatch", 4, {"key": KEPT_PARTLY, "position": 0, "offsets": [20, 29]}),
    "batch row altered": Fault(
        alter("UPDATE batches SET last_offset = last_offset + 1 WHERE batch_id = 33"),
        *("batch-mismatch", 4),
        {"key": ONE_BATCH, "topic": "orders", "partition": 1, "offsets": [7, 12]},
    ),
    "offset gap": Fault(
        alter("DELETE FROM batches WHERE batch_id = 8"),
        *("offset-gap", 4),
        {"topic": "orders", "partition": 0, "offsets": [42, 47]},
    ),
    "file row missing": Fault(
        alter("DELETE FROM files WHERE file_id = 15"),
        *("file-row-missing", 4),
        {"topic": "orders", "partition": 1, "offsets": [7, 11], "fileId": 15},
    ),
    "state altered": Fault(
        alter("UPDATE files SET state = 'deleting', marked_for_deletion_at = now() WHERE file_id = 2"),
        *("file-state-mismatch", 4),
        {"key": TWO_PARTITIONS, "state": "deleting", "batchCount": 2},
    ),
    "unknown file": Fault(
        add_unknown_file, "object-unreferenced", 3, {"cause": "no-metadata", "objects": 1, "bytes": 10}
    ),
    "double coordinates": Fault(
        alter("UPDATE batches SET byte_offset = 0 WHERE batch_id = 8"),
        *("coordinates-overlap", 4),
        {"key": TWO_PARTITIONS, "position": 0},
    ),
}


def verified(inkless: Inkless, tieredctl: Tieredctl, level: str = "full") -> Outcome:
    return tieredctl("diskless", "verify", "--level", level, *inkless.places, "-o", "json")


def test_without_a_fault_nothing_is_found(tidy: Inkless, tieredctl: Tieredctl) -> None:
    for level in ("listing", "headers", "full"):
        outcome = verified(tidy, tieredctl, level)

        assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


@pytest.mark.parametrize("fault", TEN_FAULTS.values(), ids=list(TEN_FAULTS))
def test_each_of_ten_faults_gives_exactly_its_finding(tidy: Inkless, tieredctl: Tieredctl, fault: Fault) -> None:
    fault.make(tidy)

    finding = verified(tidy, tieredctl).finding(fault.exit_code)

    assert finding["code"] == fault.code
    assert finding["evidence"].items() >= fault.evidence.items()
    assert finding["remedy"].startswith("tieredctl diskless ")


SEEN_IN_A_LISTING = ("cut object", "missing object", "offset gap", "file row missing", "state altered", "unknown file")


@pytest.mark.parametrize("level", ["listing", "headers"])
@pytest.mark.parametrize("name", SEEN_IN_A_LISTING)
def test_what_needs_no_bytes_is_found_at_every_level(
    tidy: Inkless, tieredctl: Tieredctl, name: str, level: str
) -> None:
    TEN_FAULTS[name].make(tidy)

    assert verified(tidy, tieredctl, level).finding(TEN_FAULTS[name].exit_code)["code"] == TEN_FAULTS[name].code


ALTERED_ROWS = {
    "byte_offset": "byte_offset + 1",
    "byte_size": "byte_size - 1",
    "base_offset": "base_offset + 1",
    "last_offset": "last_offset - 1",
    "batch_max_timestamp": "batch_max_timestamp - 1",
    "timestamp_type": "1 - timestamp_type",
    "magic": "1",
    "file_id": "1",
}


@pytest.mark.parametrize("batch", [33, 41, 42])
@pytest.mark.parametrize("column", [name for name in ALTERED_ROWS if name != "file_id"])
def test_an_altered_batch_row_is_one_finding_whatever_was_altered(
    tidy: Inkless, tieredctl: Tieredctl, column: str, batch: int
) -> None:
    tidy.run(f"UPDATE batches SET {column} = {ALTERED_ROWS[column]} WHERE batch_id = {batch}")

    finding = verified(tidy, tieredctl).finding(4)

    assert finding["code"] == "batch-mismatch"
    assert [one["batchId"] for one in finding["evidence"]["batches"]] == [batch]


@pytest.mark.parametrize("size", [0, 1, 60, 790, 791, 1301, 1303, 5000])
def test_an_object_of_another_size_is_one_finding(tidy: Inkless, tieredctl: Tieredctl, size: int) -> None:
    cut(TWO_PARTITIONS, size)(tidy)

    finding = verified(tidy, tieredctl).finding(4)

    assert (finding["code"], finding["evidence"]["storedSize"]) == ("size-mismatch", size)
    lost = [one["batchId"] for one in finding["evidence"]["batches"]]
    assert lost == [number for number, end in ((7, 790), (8, 1302)) if end > size]


PRODUCER_COLUMNS = ("producer_id", "producer_epoch", "base_sequence", "last_sequence", "batch_max_timestamp")


@pytest.mark.parametrize("column", [*PRODUCER_COLUMNS, "assigned_offset"])
def test_an_altered_producer_state_is_found(tidy: Inkless, tieredctl: Tieredctl, column: str) -> None:
    tidy.run(f"UPDATE producer_state SET {column} = {column} + 1 WHERE row_id = 4")

    finding = verified(tidy, tieredctl).finding(3)

    offset = 12 if column == "assigned_offset" else 11
    assert finding["code"] == "producer-state-mismatch"
    assert finding["evidence"].items() >= {"topic": "payments", "partition": 0, "offsets": [offset, offset]}.items()


LOG_ROWS = {
    "too small a log": ("byte_size = byte_size - 1", "log-row-mismatch", 3),
    "a high watermark that hides records": ("high_watermark = high_watermark - 1", "log-row-mismatch", 4),
    "a high watermark beyond all batches": ("high_watermark = high_watermark + 3", "offset-gap", 4),
    "a log start after a whole batch": ("log_start_offset = 43", "log-row-mismatch", 3),
}


@pytest.mark.parametrize(("change", "code", "exit_code"), LOG_ROWS.values(), ids=list(LOG_ROWS))
def test_an_altered_log_row_is_found(
    tidy: Inkless, tieredctl: Tieredctl, change: str, code: str, exit_code: int
) -> None:
    tidy.run(f"UPDATE logs SET {change} WHERE topic_name = 'orders' AND partition = 0")

    assert verified(tidy, tieredctl).finding(exit_code)["code"] == code


SWITCHED = "UPDATE logs SET log_start_offset = 120, remote_log_start_offset = NULL WHERE topic_name = 'audit'"


def test_a_log_that_was_switched_to_diskless_misses_nothing_before_the_switch(
    tidy: Inkless, tieredctl: Tieredctl
) -> None:
    """Its log start is the classic log's; batches begin at the diskless start."""
    tidy.run("UPDATE logs SET diskless_start_offset = 520 WHERE topic_name = 'audit'", SWITCHED)

    assert verified(tidy, tieredctl).exit_code == 0


def test_a_log_that_was_switched_and_has_no_batch_yet_misses_nothing(tidy: Inkless, tieredctl: Tieredctl) -> None:
    tidy.run(
        "DELETE FROM batches WHERE file_id = 14",
        "DELETE FROM files WHERE file_id = 14",
        "UPDATE logs SET diskless_start_offset = 500, high_watermark = 500, byte_size = 0 WHERE topic_name = 'audit'",
        SWITCHED,
    )
    (tidy.bucket / f"{FOLDER}d0HF-i-BRfiPRqf1osBlBg").unlink()

    assert verified(tidy, tieredctl).exit_code == 0


def test_a_batch_that_is_lost_after_the_switch_is_a_gap_from_there(tidy: Inkless, tieredctl: Tieredctl) -> None:
    tidy.run(SWITCHED)

    assert verified(tidy, tieredctl).finding(4)["evidence"]["offsets"] == [500, 519]


def test_a_lost_first_or_last_batch_is_a_gap_up_to_the_logs_ends(tidy: Inkless, tieredctl: Tieredctl) -> None:
    tidy.run("DELETE FROM batches WHERE batch_id IN (5, 40)")

    findings = verified(tidy, tieredctl).document()["items"]

    assert [finding["code"] for finding in findings] == ["offset-gap", "offset-gap"]
    assert [finding["evidence"]["offsets"] for finding in findings] == [[0, 3], [12, 51]]


def test_a_batch_that_is_there_twice_is_found_once(tidy: Inkless, tieredctl: Tieredctl) -> None:
    columns = "magic, topic_id, partition, base_offset, last_offset, file_id, byte_offset, byte_size, timestamp_type,"
    columns += " log_append_timestamp, batch_max_timestamp"
    tidy.run(f"INSERT INTO batches ({columns}) SELECT {columns} FROM batches WHERE batch_id = 33")

    assert verified(tidy, tieredctl).finding(4)["code"] == "coordinates-overlap"


def test_a_file_that_is_deleting_may_be_gone(tidy: Inkless, tieredctl: Tieredctl) -> None:
    """A broker deletes the object first, and its row afterwards."""
    gone = tidy.capture.document["roles"]["deleting_object_already_gone"]

    assert not (tidy.bucket / gone).exists()
    assert verified(tidy, tieredctl).exit_code == 0


@pytest.mark.parametrize("change", ["state = 'uploaded'", "marked_for_deletion_at = NULL"])
def test_a_file_without_batches_that_is_not_marked_is_found(tidy: Inkless, tieredctl: Tieredctl, change: str) -> None:
    tidy.run(f"UPDATE files SET {change} WHERE file_id = 8")

    assert verified(tidy, tieredctl).finding(3)["code"] == "file-state-mismatch"


def test_bytes_that_no_batch_claims_may_be_anything(tidy: Inkless, tieredctl: Tieredctl) -> None:
    """Record batches that the commit refused stay in the object, and nobody reads them."""
    flip(f"{FOLDER}_J3SWEwmRvyvK2oFPJBMUw", 500)(tidy)

    assert verified(tidy, tieredctl).exit_code == 0


def test_an_object_is_missing_only_if_the_control_plane_still_has_it(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes files while they are verified."""
    asked = PostgresControlPlane.states_of

    def meanwhile(self: PostgresControlPlane, keys: Any) -> Any:
        tidy.run("DELETE FROM batches WHERE file_id = 2", "UPDATE files SET state = 'deleting' WHERE file_id = 2")
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", meanwhile)
    remove(tidy)

    assert verified(tidy, tieredctl).exit_code == 0


def test_the_whole_capture_is_verified_and_what_is_left_behind_is_reported(
    inkless: Inkless, tieredctl: Tieredctl
) -> None:
    objects = {row["object_key"]: row for row in inkless.capture.tables["files"]}
    physical = [
        batch
        for one in inkless.capture.document["objects"]
        if one["in_bucket"] and one["live_batch_rows"]
        for batch in one["physical"]
    ]

    outcome = verified(inkless, tieredctl)

    document = outcome.document()
    summary = document["summary"]
    assert outcome.exit_code == 3
    assert (summary["files"], summary["batchRows"], summary["complete"]) == (len(objects), 30, True)
    assert summary["batches"] == len(physical)
    assert summary["records"] == sum(batch["record_count"] for batch in physical)
    assert summary["bytesRead"] == sum(batch["size"] for batch in physical)
    causes = {item["evidence"]["cause"]: item["evidence"]["objects"] for item in document["items"]}
    assert causes == {"no-metadata": 2, "delete-never-finished": 1}


def test_a_table_begins_with_a_sentence(tidy: Inkless, tieredctl: Tieredctl) -> None:
    TEN_FAULTS["missing object"].make(tidy)

    outcome = tieredctl("diskless", "verify", "--level", "listing", *tidy.places)

    assert outcome.exit_code == 4
    assert outcome.err.startswith("Verified 14 files, 30 batches (listing): 1 finding.\n")
    assert "critical  object-missing" in outcome.out


def test_what_is_committed_while_the_bucket_is_listed_is_not_missing(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = FileStore.list

    def before_it_was_uploaded(self: FileStore, *words: str) -> Any:
        return (stored for stored in listing(self, *words) if stored.key != TWO_PARTITIONS)

    monkeypatch.setattr(FileStore, "list", before_it_was_uploaded)

    outcome = verified(tidy, tieredctl)

    assert (outcome.exit_code, outcome.document()["summary"]["objects"]) == (0, 12)


def test_what_is_missing_is_unknown_while_the_control_plane_cannot_be_asked_again(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: PostgresControlPlane, keys: Any) -> Any:
        raise TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, "The control plane does not answer: gone")

    monkeypatch.setattr(PostgresControlPlane, "states_of", silent)
    remove(tidy)

    outcome = verified(tidy, tieredctl)

    finding = outcome.finding(5)
    assert (finding["code"], outcome.document()["summary"]["complete"]) == ("unreadable", False)


def test_a_store_that_stops_answering_makes_the_rest_unknown(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, asked = FileStore.stream, count()

    def stopping(self: FileStore, key: str, *words: int) -> Any:
        if next(asked) >= 5:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "The store does not answer.")
        return stream(self, key, *words)

    monkeypatch.setattr(FileStore, "stream", stopping)

    outcome = verified(tidy, tieredctl)

    summary = outcome.document()["summary"]
    assert outcome.finding(5)["code"] == "unreadable"
    assert (summary["objects"], summary["notLookedAt"], summary["complete"]) == (5, 7, False)


def test_an_object_that_is_altered_on_the_way_is_not_called_damaged(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, asked = FileStore.stream, count()

    def once_altered(self: FileStore, key: str, *words: int) -> Any:
        for piece in stream(self, key, *words):
            is_first = key == ONE_BATCH and next(asked) == 0
            yield bytes([piece[0] ^ 1]) + piece[1:] if is_first else piece

    monkeypatch.setattr(FileStore, "stream", once_altered)

    assert verified(tidy, tieredctl).finding(3)["code"] == "altered-in-transit"


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "csv", "yaml"])
@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("verify", "--level", "listing", "--progress", "none"),
        ("orphans", "scan"),
        ("inspect", TWO_PARTITIONS),
        ("explain", "orders:0@45"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_has_every_output_format(
    tidy: Inkless, tieredctl: Tieredctl, words: tuple[str, ...], output: str
) -> None:
    metrics = tidy.bucket.parent / "metrics"

    outcome = tieredctl("diskless", *words, *tidy.places, "-o", output, "--metrics-file", metrics)

    assert outcome.exit_code == 0
    assert outcome.out or words[0] == "verify"
    assert "tieredctl_" in metrics.read_text()


def test_an_object_that_may_not_be_read_is_not_called_lost(tidy: Inkless, tieredctl: Tieredctl) -> None:
    path: Path = tidy.bucket / TWO_PARTITIONS
    path.unlink()
    path.symlink_to("/proc/self/mem")

    outcome = verified(tidy, tieredctl)

    assert outcome.exit_code != 0
    assert "object-missing" not in outcome.out
