"""`diskless status`: what the control plane holds, and what the bucket has besides."""

from __future__ import annotations

import re

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import Inkless


def test_every_row_of_the_capture_is_counted(inkless: Inkless, tieredctl: Tieredctl) -> None:
    tables = inkless.capture.tables

    outcome = tieredctl("diskless", "status", *inkless.places, "-o", "json")

    document = outcome.document()
    summary = document["summary"]
    assert outcome.exit_code == 0
    assert (summary["schemaVersion"], summary["topics"], summary["partitions"]) == (27, 7, len(tables["logs"]))
    assert (summary["batches"], summary["producerStates"]) == (len(tables["batches"]), len(tables["producer_state"]))
    for state in ("uploaded", "deleting"):
        sizes = [row["size"] for row in tables["files"] if row["state"] == state]
        assert (summary["files"][state]["files"], summary["files"][state]["bytes"]) == (len(sizes), sum(sizes))
    assert summary["files"]["unknown"]["files"] == 0
    assert summary["liveBytes"] == sum(row["byte_size"] for row in tables["batches"])


def test_each_partition_has_its_offsets_and_bytes(inkless: Inkless, tieredctl: Tieredctl) -> None:
    expected = {name: told for name, told in inkless.capture.document["expected"].items() if told["topic"] != "scratch"}

    items = tieredctl("diskless", "status", *inkless.control_plane, "-o", "jsonl").lines()

    found = {f"{item['topic']}-{item['partition']}": item for item in items}
    assert set(found) == set(expected)
    for name, item in found.items():
        told = expected[name]
        assert item["topicId"] == told["topic_id"]
        assert (item["logStartOffset"], item["highWatermark"]) == (told["log_start_offset"], told["high_watermark"])
        assert (item["bytes"], item["batches"]) == (told["byte_size"], told["row_count"])
        assert item["files"] == len({batch["object_key"] for batch in told["batches"]})
        assert item["disklessStartOffset"] == told["diskless_start_offset"]
        assert item["remoteLogStartOffset"] == told["remote_log_start_offset"]


def test_objects_that_were_never_committed_are_counted(inkless: Inkless, tieredctl: Tieredctl) -> None:
    roles, times = inkless.capture.document["roles"], inkless.capture.times_ms
    left = [roles[name] for name in ("orphan_broker_killed", "orphan_database_down")]
    left.append(roles["in_flight_uploaded_not_committed_young"])

    summary = tieredctl("diskless", "status", *inkless.places, "-o", "json").document()["summary"]

    assert summary["objects"] == len(times)
    assert summary["uncommitted"]["objects"] == len(left)
    assert summary["uncommitted"]["oldestKey"] == min(left, key=times.__getitem__)


def test_objects_that_its_brokers_do_not_write_are_not_called_uncommitted(
    inkless: Inkless, tieredctl: Tieredctl
) -> None:
    """Another cluster's, by their folder, and those of other programs, by their names."""
    before = tieredctl("diskless", "status", *inkless.places, "-o", "json").document()["summary"]
    for key in ("another-cluster/AAAAAAAAAAAAAAAAAAAAAA", "kafka-prod/diskless/backup.tar", "notes.txt"):
        path = inkless.bucket / key
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"0123456789")

    outcome = tieredctl("diskless", "status", *inkless.places)
    summary = tieredctl("diskless", "status", *inkless.places, "-o", "json").document()["summary"]

    assert summary["uncommitted"] == before["uncommitted"]
    assert (before["others"], summary["others"]) == ({"objects": 0, "bytes": 0}, {"objects": 3, "bytes": 30})
    assert "3 other objects, 30 B, were not written by its brokers." in outcome.err


def test_unreferenced_bytes_are_those_of_uploaded_files_alone(inkless: Inkless, tieredctl: Tieredctl) -> None:
    """Files that are deleting, and may still have batches by a fault, have none."""
    tables = inkless.capture.tables
    inkless.run("UPDATE files SET state = 'deleting', marked_for_deletion_at = now() WHERE file_id <> 2")

    summary = tieredctl("diskless", "status", *inkless.control_plane, "-o", "json").document()["summary"]

    (size,) = (row["size"] for row in tables["files"] if row["file_id"] == 2)
    referenced = sum(row["byte_size"] for row in tables["batches"] if row["file_id"] == 2)
    assert summary["unreferencedBytes"] == size - referenced


def test_a_table_tells_it_in_sentences(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status", *inkless.places)

    assert outcome.exit_code == 0
    assert outcome.err.startswith("Schema version 27, read at ")
    assert "12 files uploaded, " in outcome.err
    assert "2 files deleting, 3.5 KiB, the oldest since " in outcome.err
    assert "3 of 16 objects in the bucket, 2.1 KiB, are not committed, the oldest of " in outcome.err
    assert outcome.out.splitlines()[0].split()[-3:] == ["BATCHES", "FILES", "SIZE"]


def test_what_the_control_plane_is_asked_is_shown_on_request(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("-v", "diskless", "status", *inkless.control_plane)

    assert re.search(r"control_plane  control plane: connect: \S+:\d+/\w+, \d+\.\d ms\n", outcome.err)
    assert re.search(r"control_plane  control plane: SELECT .*: \d+ rows?, \d+\.\d ms\n", outcome.err)
    assert re.search(r"^control plane was asked \d+ times, and took ", outcome.err, re.MULTILINE)
