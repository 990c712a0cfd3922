"""`metadata stats`: events, what is dead of them, and what a broker's replay takes."""

from __future__ import annotations

from pathlib import Path

from tests.metadata_logs import COPIED, DELETED, DELETING, copied, partition_delete, started, updated, write_events
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import MetadataEvent, RemotePartitionDeleteState
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.stats import ASSUMED_EVENTS_PER_SECOND, statistics


def total(folder: Path, *events: MetadataEvent | bytes | None) -> Document:
    write_events(folder, *events)
    return statistics(EventStream(LogDirectories([folder]))).total


REMOVAL = [partition_delete(state) for state in RemotePartitionDeleteState]
GONE = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
DEAD: dict[str, tuple[list[MetadataEvent], int, int, int]] = {
    # The events, how many there are, how many of them are dead, and the segments alive.
    "none while every segment is known": (
        [*copied(1, 0, 9), started(2, 10, 19), *copied(3, 20, 29), updated(3, DELETING)],
        *(6, 0, 3),
    ),
    "all of a deleted segment": ([*GONE, started(2, 10, 19)], 5, 4, 1),
    "all of a removed partition but its removal": ([*copied(1, 0, 9), *copied(2, 10, 19), *REMOVAL], 7, 4, 0),
    "what Kafka drops for an unknown segment": ([updated(1, COPIED), started(2, 0, 9)], 2, 1, 1),
    "what was before a segment came again": ([*GONE, *copied(1, 0, 9)], 6, 4, 1),
}


def test_dead_events_and_live_segments(tmp_path: Path) -> None:
    for name, (events, count, dead, live) in DEAD.items():
        found = total(tmp_path / name, *events)

        assert (found["events"], found["deadEvents"], found["liveSegments"]) == (count, dead, live), name
        assert found["deadRatio"] == round(dead / count, 4), name


def test_counts_by_type_and_state_and_what_cannot_be_decoded(tmp_path: Path) -> None:
    found = total(tmp_path, *copied(1, 0, 9), b"no event", None)

    assert found["events"] == 4
    assert found["undecodable"] == 2
    assert found["eventsByType"] == {"RemoteLogSegmentMetadata": 1, "RemoteLogSegmentMetadataUpdate": 1}
    assert found["eventsByState"] == {"COPY_SEGMENT_FINISHED": 1, "COPY_SEGMENT_STARTED": 1}


def test_first_and_last_event_by_their_own_times(tmp_path: Path) -> None:
    events = [started(number, 0, 9, event_timestamp_ms=time) for number, time in ((1, 500), (2, 100), (3, 900))]

    found = total(tmp_path, *events)

    assert (found["firstEventTimestampMs"], found["lastEventTimestampMs"]) == (100, 900)


def test_an_empty_topic_has_no_times_and_no_ratio(tmp_path: Path) -> None:
    found = total(tmp_path)

    assert found["events"] == found["bytes"] == 0
    assert found["deadRatio"] == found["replaySeconds"] == 0.0
    assert found["firstEventTimestampMs"] is None


def test_the_replay_estimate_follows_the_given_rate_and_bytes_are_those_of_the_values(tmp_path: Path) -> None:
    found = total(tmp_path / "rate", *[started(number, 0, 9) for number in range(1, 1001)])

    assert found["assumedEventsPerSecond"] == ASSUMED_EVENTS_PER_SECOND
    assert found["replaySeconds"] == 1000 / ASSUMED_EVENTS_PER_SECOND
    assert total(tmp_path / "bytes", b"12345", None, b"123")["bytes"] == 8


def test_metadata_partitions_apart_and_together(captures: Path) -> None:
    found = statistics(EventStream(LogDirectories([captures / "kafka-4.3.1" / "data"])))

    assert [row["events"] for row in found.partitions] == [398, 60, 0, 222]
    assert [row["endOffset"] for row in found.partitions] == [398, 60, 0, 222]
    assert [row["liveSegments"] for row in found.partitions] == [85, 30, 0, 57]
    for name in ("events", "bytes", "deadEvents", "liveSegments"):
        assert found.total[name] == sum(row[name] for row in found.partitions)
    # each deleted segment began, was copied, and took two events to go
    assert found.total["deadEvents"] == 4 * found.total["eventsByState"]["DELETE_SEGMENT_FINISHED"]
