"""`diskless explain`: where an offset lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import TWO_PARTITIONS
from tests.metadata_logs import copied, segment_id, write_events
from tests.rigs.inkless import Inkless
from tieredctl.model.ids import TopicIdPartition


def test_each_batch_of_the_capture_is_found_by_its_last_offset(inkless: Inkless, tieredctl: Tieredctl) -> None:
    for name in ("orders-0", "clicks-1", "audit-0"):
        told = inkless.capture.document["expected"][name]
        for batch in told["batches"]:
            where = f"{told['topic']}:{told['partition']}@{batch['last_offset']}"

            outcome = tieredctl("diskless", "explain", where, *inkless.places, "-o", "json")

            (item,) = outcome.document()["items"]
            assert (outcome.exit_code, item["tier"], item["key"]) == (0, "diskless", batch["object_key"])
            assert (item["byteOffset"], item["byteSize"]) == (batch["byte_offset"], batch["size"])
            assert (item["baseOffset"], item["lastOffset"]) == (batch["base_offset"], batch["last_offset"])
            assert item["objectPresent"]


def test_the_record_batch_in_a_merged_batch_is_the_one_that_holds_the_offset(
    inkless: Inkless, tieredctl: Tieredctl
) -> None:
    """orders-0 at 0 to 41 are several record batches; the second one begins at offset 10, byte 2955."""
    (item,) = tieredctl("diskless", "explain", "orders:0@20", *inkless.places, "-o", "jsonl").lines()
    physical = next(one for one in inkless.capture.document["objects"] if one["object_key"] == item["key"])["physical"]

    holders = [
        {"position": batch["byte_offset"], "size": batch["size"]}
        for batch in physical
        if (batch["topic"], batch["partition"]) == ("orders", 0)
        and 0 <= 20 - batch["assigned_base_offset"] <= batch["last_offset_delta"]
    ]
    assert [item["recordBatch"]] == holders


def test_how_many_share_the_object_and_what_state_it_is_in(inkless: Inkless, tieredctl: Tieredctl) -> None:
    (item,) = tieredctl("diskless", "explain", "clicks:1@8", *inkless.control_plane, "-o", "jsonl").lines()

    batches = inkless.capture.tables["batches"]
    own = next(row for row in batches if row["batch_id"] == item["batchId"])
    sharing = {(row["topic_id"], row["partition"]) for row in batches if row["file_id"] == own["file_id"]}
    assert item["otherPartitions"] == len(sharing) - 1
    assert (item["file"]["state"], item["file"]["uploaderBrokerId"]) == ("uploaded", 1)
    assert "objectPresent" not in item


@pytest.mark.parametrize(
    ("where", "exit_code", "tier", "reason"),
    [
        ("orders:0@19", 3, "none", "it is below the log start: it was deleted"),
        ("orders:0@107", 3, "none", "it is not below the high watermark: nothing was committed there yet"),
        ("orders:3@0", 3, "none", "it is not below the high watermark: nothing was committed there yet"),
        ("audit:0@299", 3, "none", "it is below the log start: it was deleted"),
        ("audit:0@300", 0, "remote", "it is in a tiered segment: ask `tieredctl explain` with the cluster's metadata"),
        ("audit:0@519", 0, "remote", "it is in a tiered segment: ask `tieredctl explain` with the cluster's metadata"),
        ("audit:0@520", 0, "diskless", None),
        (
            "orders:0@9223372036854775807",
            3,
            "none",
            "it is not below the high watermark: nothing was committed there yet",
        ),
    ],
)
def test_what_is_in_no_object_has_its_reason(
    inkless: Inkless, tieredctl: Tieredctl, where: str, exit_code: int, tier: str, reason: str | None
) -> None:
    outcome = tieredctl("diskless", "explain", where, *inkless.control_plane, "-o", "json")

    (item,) = outcome.document()["items"]
    assert (outcome.exit_code, item["tier"], item["reason"]) == (exit_code, tier, reason)


FAULTS = {
    "a lost batch": ("DELETE FROM batches WHERE batch_id = 8", "offset-gap", 4),
    "a lost file": ("DELETE FROM files WHERE file_id = 2", "file-row-missing", 4),
    "an altered batch": ("UPDATE batches SET byte_offset = byte_offset - 1 WHERE batch_id = 8", "batch-mismatch", 4),
    "a lost object": ("UPDATE files SET object_key = 'gone' WHERE file_id = 2", "object-missing", 4),
}


@pytest.mark.parametrize(("statement", "code", "exit_code"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_where_the_offset_lies_is_found(
    inkless: Inkless, tieredctl: Tieredctl, statement: str, code: str, exit_code: int
) -> None:
    inkless.run(statement)

    outcome = tieredctl("diskless", "explain", "orders:0@45", *inkless.places)

    assert outcome.exit_code == exit_code
    assert f"critical: {code}: " in outcome.err


def test_what_retention_deletes_a_moment_before_the_store_is_asked_is_not_lost(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = PostgresControlPlane.states_of

    def meanwhile(self: PostgresControlPlane, keys: Any) -> Any:
        inkless.run("UPDATE files SET state = 'deleting', marked_for_deletion_at = now() WHERE file_id = 2")
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", meanwhile)
    (inkless.bucket / TWO_PARTITIONS).unlink()

    outcome = tieredctl("diskless", "explain", "orders:0@45", *inkless.places, "-o", "json")

    (item,) = outcome.document()["items"]
    assert (outcome.exit_code, item["tier"], item["reason"]) == (3, "none", "it was deleted a moment ago")


def test_before_the_switch_an_offset_is_in_the_classic_log(inkless: Inkless, tieredctl: Tieredctl) -> None:
    inkless.run("UPDATE logs SET log_start_offset = 120 WHERE topic_name = 'audit'")

    outcome = tieredctl("diskless", "explain", "audit:0@499", *inkless.control_plane, "-o", "json")

    assert (outcome.exit_code, outcome.document()["items"][0]["tier"]) == (0, "remote")


@pytest.mark.parametrize(
    ("offset", "tier", "exit_code", "has_segment"),
    [(300, "remote", 0, True), (515, "none", 3, False), (520, "diskless", 0, False), (305, "remote", 0, True)],
)
def test_where_a_partition_lies_in_both_tiers_both_are_asked(
    inkless: Inkless,
    tieredctl: Tieredctl,
    tmp_path: Path,
    *,
    offset: int,
    tier: str,
    exit_code: int,
    has_segment: bool,
) -> None:
    ids = {topic["name"]: topic["topic_id"] for topic in inkless.capture.document["topics"]}
    audit = TopicIdPartition(ids["audit"], "audit", 0)
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    write_events(log_dir, *copied(1, 300, 509, partition=audit))

    outcome = tieredctl(
        "diskless", "explain", f"audit:0@{offset}", *inkless.control_plane, "--log-dir", log_dir, "-o", "json"
    )

    (item,) = outcome.document()["items"]
    assert (outcome.exit_code, item["tier"]) == (exit_code, tier)
    assert (item["tiered"] and item["tiered"]["segmentId"]) == (segment_id(1) if has_segment else None)


def test_a_table_has_a_row_for_each_fact(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "explain", "orders:0@45", *inkless.places)

    assert outcome.exit_code == 0
    assert ["file.state", "uploaded"] in [line.split() for line in outcome.out.splitlines()]
    assert ["recordBatch.position", "790"] in [line.split() for line in outcome.out.splitlines()]


def test_of_a_topic_made_again_the_id_decides(inkless: Inkless, tieredctl: Tieredctl) -> None:
    inkless.run("UPDATE logs SET topic_name = 'orders' WHERE topic_name = 'clicks'")
    ids = {topic["name"]: topic["topic_id"] for topic in inkless.capture.document["topics"]}

    both = tieredctl("diskless", "explain", "orders:0@40", *inkless.control_plane)
    one = tieredctl(
        "diskless", "explain", "orders:0@40", "--topic-id", ids["clicks"], *inkless.control_plane, "-o", "json"
    )

    assert both.exit_code == 2
    assert all(topic_id in both.err for topic_id in (ids["orders"], ids["clicks"]))
    assert one.document()["items"][0]["topicId"] == ids["clicks"]


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("typo:0@1", "The control plane has no partition 0 of topic typo."),
        ("orders:9@1", "The control plane has no partition 9 of topic orders."),
        ("\udcff:0@1", "The control plane has no partition 0 of topic \\udcff."),
        ("nul\0:0@1", "The control plane has no partition 0 of topic nul\\x00."),
        ("orders:0", "Name one offset, as TOPIC:PARTITION@OFFSET."),
        ("orders:0@", "'orders:0@' is not TOPIC:PARTITION@OFFSET."),
        ("orders@1", "'orders' is not TOPIC:PARTITION."),
        ("or'; DROP TABLE files; --:0@1", "The control plane has no partition 0 of topic or'; DROP TABLE files; --."),
    ],
)
def test_what_cannot_be_explained_is_a_sentence(
    inkless: Inkless, tieredctl: Tieredctl, where: str, sentence: str
) -> None:
    outcome = tieredctl("diskless", "explain", where, *inkless.control_plane)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: {sentence}")
