"""Where a partition lies in both tiers: what the database has of tiered segments, and what `verify` leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import verified
from tests.rigs.inkless import READER, Inkless
from tests.rigs.inkless_rlmm import Segment, add_segment, make_schema
from tieredctl.model.ids import uuid_text

FIRST, SECOND = Segment(1, 300, 399, {0: 300, 2: 350}), Segment(2, 400, 509, {2: 400})


@pytest.fixture
def audit(inkless_alone: Inkless) -> Inkless:
    """A database that has the metadata of audit's tiered segments besides; its diskless offsets begin at 520."""
    make_schema(inkless_alone)
    for segment in (FIRST, SECOND):
        add(inkless_alone, segment)
    return inkless_alone


def add(inkless: Inkless, segment: Segment) -> None:
    (topic_id,) = {row["topic_id"] for row in inkless.capture.tables["logs"] if row["topic_name"] == "audit"}
    add_segment(inkless, topic_id, segment)


def explained(inkless: Inkless, tieredctl: Tieredctl, offset: int, exit_code: int = 0) -> dict[str, Any]:
    outcome = tieredctl("diskless", "explain", f"audit:0@{offset}", *inkless.control_plane, "-o", "json")
    assert outcome.exit_code == exit_code, outcome.err
    (item,) = outcome.document()["items"]
    found: dict[str, Any] = item
    return found


def name_of(segment: Segment) -> str:
    return uuid_text(bytes.fromhex(f"00000000000040008000{segment.number:012}"))


def test_an_offset_before_the_diskless_start_is_asked_of_the_databases_own_segments(
    audit: Inkless, tieredctl: Tieredctl
) -> None:
    for offset, tier, exit_code, segment in (
        (299, "none", 3, None),
        (300, "remote", 0, FIRST),
        (349, "remote", 0, FIRST),
        (350, "remote", 0, FIRST),
        (400, "remote", 0, SECOND),
        (509, "remote", 0, SECOND),
        (510, "none", 3, None),
        (520, "diskless", 0, None),
    ):
        item = explained(audit, tieredctl, offset, exit_code)

        assert item["tier"] == tier
        assert (item["tiered"] and item["tiered"]["segmentId"]) == (segment and name_of(segment))


def test_a_segment_is_told_as_the_database_has_it(audit: Inkless, tieredctl: Tieredctl) -> None:
    tiered = explained(audit, tieredctl, 300)["tiered"]

    assert (tiered["startOffset"], tiered["endOffset"], tiered["brokerId"]) == (300, 399, 3)
    assert (tiered["state"], tiered["segmentSizeInBytes"]) == ("COPY_SEGMENT_FINISHED", 99)
    assert [(one["leaderEpoch"], one["offset"]) for one in tiered["segmentLeaderEpochs"]] == [(0, 300), (2, 350)]


def test_of_several_leader_epochs_the_latest_serves_the_offset(audit: Inkless, tieredctl: Tieredctl) -> None:
    later = Segment(3, 380, 420, {5: 380})
    add(audit, later)

    assert explained(audit, tieredctl, 399)["tiered"]["segmentId"] == name_of(later)


def test_a_segment_that_begins_later_hides_one_that_reaches_farther(audit: Inkless, tieredctl: Tieredctl) -> None:
    """Kafka looks for the last one that begins at the offset or before it, and only then where that one ends."""
    add(audit, Segment(3, 450, 460, {2: 450}))

    assert explained(audit, tieredctl, 470, 3)["tiered"] is None


def test_a_segment_that_is_not_copied_or_is_being_deleted_serves_nothing(audit: Inkless, tieredctl: Tieredctl) -> None:
    add(audit, Segment(3, 510, 515, {2: 510}, state=0, is_referenced=False))

    assert explained(audit, tieredctl, 512, 3)["tiered"] is None


UNUSABLE = {
    "another migration": (
        "UPDATE inkless_rlmm.flyway_schema_history_rlmm SET script = 'V2__New.sql', version = '2' WHERE version = '1'",
        "migration V2__New.sql (checksum 1815211617) is not one that tieredctl knows",
    ),
    "another checksum": (
        "UPDATE inkless_rlmm.flyway_schema_history_rlmm SET checksum = 5 WHERE version = '1'",
        "migration V1__Create_rlmm_tables.sql (checksum 5) is not one that tieredctl knows",
    ),
    "no migration": ("DELETE FROM inkless_rlmm.flyway_schema_history_rlmm", "it is of version 0"),
    "no history": ("DROP TABLE inkless_rlmm.flyway_schema_history_rlmm", "flyway_schema_history_rlmm"),
    "no grant": (f"REVOKE SELECT ON inkless_rlmm.rlmm_segments FROM {READER}", "permission denied"),
    "no usage": (f"REVOKE USAGE ON SCHEMA inkless_rlmm FROM {READER}", "permission denied"),
    "a state that serves nothing": ("UPDATE inkless_rlmm.rlmm_segments SET state = 3", "serves reads in state 3"),
    "epochs that are none": ("UPDATE inkless_rlmm.rlmm_segments SET leader_epochs = '[1]'", "leader epochs"),
}


@pytest.mark.parametrize(("statement", "why"), UNUSABLE.values(), ids=list(UNUSABLE))
def test_what_cannot_be_asked_is_unknown_where_the_answer_depends_on_it(
    audit: Inkless, tieredctl: Tieredctl, statement: str, why: str
) -> None:
    audit.run(statement)

    item = explained(audit, tieredctl, 300, 5)

    assert (item["tier"], why in item["tieredUnknown"]) == ("remote", True)
    assert explained(audit, tieredctl, 520)["tier"] == "diskless"


def test_a_partition_of_several_clusters_is_unknown(audit: Inkless, tieredctl: Tieredctl) -> None:
    add(audit, FIRST._replace(cluster="cluster-2"))

    outcome = tieredctl("diskless", "explain", "audit:0@300", *audit.control_plane)

    assert outcome.exit_code == 5
    assert "unreadable" in outcome.err
    assert "its tiered segments are not known" in outcome.err
    assert "for several clusters: cluster-1, cluster-2" in outcome.err


def test_verify_says_which_offsets_it_did_not_look_at(tidy: Inkless, tieredctl: Tieredctl) -> None:
    document = verified(tidy, tieredctl).document()
    table = tieredctl("diskless", "verify", *tidy.places, "--progress", "none")

    elsewhere = document["summary"]["notInDisklessTier"]
    (one,) = elsewhere["ranges"]
    assert (elsewhere["partitions"], elsewhere["offsets"]) == (1, 220)
    assert (one["topic"], one["partition"], one["offsets"]) == ("audit", 0, [300, 519])
    assert (
        "Not looked at: 220 offsets of 1 partition that are not in the diskless tier: audit:0 300 to 519." in table.err
    )


@pytest.mark.parametrize(
    ("change", "offsets"),
    [
        ("remote_log_start_offset = NULL", None),
        ("remote_log_start_offset = NULL, log_start_offset = 120, diskless_start_offset = 520", [120, 519]),
        ("diskless_start_offset = 0", [300, 519]),
        ("remote_log_start_offset = 520", None),
        ("remote_log_start_offset = 0", [0, 519]),
    ],
)
def test_what_is_not_looked_at_begins_where_the_partition_does_in_any_tier(
    tidy: Inkless, tieredctl: Tieredctl, change: str, offsets: list[int] | None
) -> None:
    tidy.run(f"UPDATE logs SET {change} WHERE topic_name = 'audit'")

    elsewhere = verified(tidy, tieredctl, "listing").document()["summary"]["notInDisklessTier"]

    assert [one["offsets"] for one in elsewhere["ranges"]] == ([offsets] if offsets else [])
