"""A metadata topic that compacts and deletes: which live segments lose their events, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.doctor.test_cluster_rules import SOUND, metadata_topic
from tests.metadata_logs import DELETED, DELETING, copied, event_records, segment_id, updated, write_records
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import MetadataEvent
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import ReplayFacts
from tieredctl.ops.doctor.diagnosis import diagnose
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.stats import statistics

DAY = 86_400_000
GONE: list[MetadataEvent] = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
EVENTS = len(GONE) + 4


def expiring(log_dir: Path, unkeyed: int, policy: str = "compact,delete", retention: str = str(DAY)) -> list[Finding]:
    """Of a metadata log whose first `unkeyed` records have no keys; segment 1 is gone, 2 and 3 live."""
    write_records(log_dir, *event_records(dict(enumerate([*GONE, *copied(2, 10, 19), *copied(3, 20, 29)]))))
    stores = statistics(EventStream(LogDirectories([log_dir])), is_described=True).stores
    replay = ReplayFacts(EVENTS, 0.0, 1.0, unkeyed, {0: unkeyed - 1} if unkeyed else {})
    topic = metadata_topic(cleanup_policy=policy, retention_ms=retention)
    snapshot = replace(SOUND, metadata_topic=topic, replay=replay, stores=stores, partitions=())
    return [one for one in diagnose(snapshot).findings if one.code == "metadata-events-expire"]


def segments(finding: Finding) -> list[dict[str, Any]]:
    named = finding.evidence["segments"]
    assert isinstance(named, list)
    return named


def test_live_segments_whose_events_have_no_keys_are_named_with_the_time_of_their_loss(tmp_path: Path) -> None:
    (finding,) = expiring(tmp_path, unkeyed=len(GONE) + 2)

    (named,) = segments(finding)
    newest = copied(2, 10, 19)[-1].event_timestamp_ms
    assert (named["segmentId"], named["expiresMs"]) == (segment_id(2), newest + DAY)
    assert finding.evidence["liveSegments"] == 1
    assert finding.remedy.endswith("--entity-name __remote_log_metadata --add-config retention.ms=-1")


def test_without_any_key_every_live_segment_is_named(tmp_path: Path) -> None:
    (finding,) = expiring(tmp_path, unkeyed=EVENTS)

    assert [one["segmentId"] for one in segments(finding)] == [segment_id(2), segment_id(3)]


def test_nothing_is_said_where_no_live_segment_loses_events_by_it(tmp_path: Path) -> None:
    cases: list[tuple[int, str, str]] = [
        (0, "compact,delete", str(DAY)),
        (len(GONE), "compact,delete", str(DAY)),
        (EVENTS, "compact,delete", "-1"),
        (EVENTS, "delete", str(DAY)),
        (EVENTS, "compact", str(DAY)),
    ]
    for unkeyed, policy, retention in cases:
        assert expiring(tmp_path, unkeyed, policy, retention) == [], (unkeyed, policy, retention)


def test_the_order_of_policies_does_not_matter(tmp_path: Path) -> None:
    assert len(expiring(tmp_path, EVENTS, "delete, compact")) == 1
