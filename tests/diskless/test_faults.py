"""One thing is broken in the captured bucket or its control plane: `diskless verify` finds that, and nothing else."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import FOLDER, KEPT_PARTLY, ONE_BATCH, PRUNED, TWO_PARTITIONS, Change, cut, flip, verified
from tests.rigs.inkless import Inkless

HOURS_AGO = -3 * 3600


def alter(*statements: str) -> Change:
    return lambda inkless: inkless.run(*statements)


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

    make: Change
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


BEYOND_THE_END = {
    "begins far beyond": "byte_offset = 1000000000",
    "ends far beyond": "byte_size = 1000000000",
    "ends one byte beyond": "byte_size = byte_size + 1",
    "ends where no number is": "byte_offset = 4611686018427387904, byte_size = 4611686018427387904",
}


@pytest.mark.parametrize("level", ["listing", "headers", "full"])
@pytest.mark.parametrize("change", BEYOND_THE_END.values(), ids=list(BEYOND_THE_END))
def test_a_batch_beyond_the_end_of_its_object_is_found_at_every_level(
    tidy: Inkless, tieredctl: Tieredctl, change: str, level: str
) -> None:
    tidy.run(f"UPDATE batches SET {change} WHERE batch_id = 8")

    finding = verified(tidy, tieredctl, level).finding(4)

    assert (finding["code"], finding["evidence"]["key"]) == ("batch-mismatch", TWO_PARTITIONS)
    assert [one["batchId"] for one in finding["evidence"]["batches"]] == [8]


def test_a_batch_that_reaches_over_others_overlaps_all_of_them(tidy: Inkless, tieredctl: Tieredctl) -> None:
    """The next one is not the only one that it may overlap."""
    (first, *others) = _batches_of_the_largest_file(tidy)
    reach = others[-1]["byte_offset"] + 1 - first["byte_offset"]
    tidy.run(f"UPDATE batches SET byte_size = {reach} WHERE batch_id = {first['batch_id']}")

    finding = verified(tidy, tieredctl).finding(4)

    assert finding["code"] == "coordinates-overlap"
    assert [one["batchId"] for one in finding["evidence"]["batches"]] == [row["batch_id"] for row in (first, *others)]


def test_an_overlap_does_not_hide_another_fault_of_its_object(tidy: Inkless, tieredctl: Tieredctl) -> None:
    (first, second, *_, last) = _batches_of_the_largest_file(tidy)
    tidy.run(
        f"UPDATE batches SET byte_offset = {first['byte_offset']} WHERE batch_id = {second['batch_id']}",
        f"UPDATE batches SET batch_max_timestamp = 5 WHERE batch_id = {last['batch_id']}",
    )

    found = {item["code"]: item["evidence"]["batches"] for item in verified(tidy, tieredctl).document()["items"]}

    assert set(found) == {"coordinates-overlap", "batch-mismatch"}
    assert [one["batchId"] for one in found["batch-mismatch"]] == [last["batch_id"]]


def _batches_of_the_largest_file(inkless: Inkless) -> list[dict[str, Any]]:
    """Those of the file with most batches, by byte offset."""
    by_file: dict[int, list[dict[str, Any]]] = {}
    for row in inkless.capture.tables["batches"]:
        by_file.setdefault(row["file_id"], []).append(row)
    found = sorted(by_file[max(by_file, key=lambda file: len(by_file[file]))], key=lambda row: int(row["byte_offset"]))
    assert len(found) > 2
    return found


@pytest.mark.parametrize("level", ["headers", "full"])
@pytest.mark.parametrize("change", [flip(TWO_PARTITIONS, 1000), cut(TWO_PARTITIONS, 790)], ids=["flipped", "cut"])
def test_a_lost_row_beside_a_damaged_batch_is_a_gap_at_every_level(
    tidy: Inkless, tieredctl: Tieredctl, change: Change, level: str
) -> None:
    """Which offsets the damaged one has is not doubted, so it explains no gap."""
    change(tidy)
    tidy.run(
        "DELETE FROM batches WHERE topic_id = (SELECT topic_id FROM batches WHERE batch_id = 8)"
        " AND partition = 0 AND base_offset = 48"
    )

    gaps = [item for item in verified(tidy, tieredctl, level).document()["items"] if item["code"] == "offset-gap"]

    assert [gap["evidence"]["offsets"][0] for gap in gaps] == [48]


def test_a_lost_row_beside_one_without_its_file_is_a_gap(tidy: Inkless, tieredctl: Tieredctl) -> None:
    tidy.run("DELETE FROM files WHERE file_id = 2", "DELETE FROM batches WHERE base_offset = 48")

    found = verified(tidy, tieredctl).document()["items"]

    assert {item["code"] for item in found} >= {"file-row-missing", "offset-gap"}


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
