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


def test_nothing_is_dead_while_every_segment_is_known(tmp_path: Path) -> None:
    found = total(tmp_path, *copied(1, 0, 9), started(2, 10, 19), *copied(3, 20, 29), updated(3, DELETING))

    assert (found["events"], found["deadEvents"], found["deadRatio"], found["liveSegments"]) == (6, 0, 0.0, 3)


def test_all_events_of_a_deleted_segment_are_dead(tmp_path: Path) -> None:
    found = total(tmp_path, *copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED), started(2, 10, 19))

    assert (found["deadEvents"], found["deadRatio"], found["liveSegments"]) == (4, 0.8, 1)


def test_all_events_of_a_removed_partition_are_dead_but_those_of_its_removal(tmp_path: Path) -> None:
    removal = [partition_delete(state) for state in RemotePartitionDeleteState]

    found = total(tmp_path, *copied(1, 0, 9), *copied(2, 10, 19), *removal)

    assert (found["events"], found["deadEvents"], found["liveSegments"]) == (7, 4, 0)


def test_an_event_that_kafka_drops_for_an_unknown_segment_is_dead(tmp_path: Path) -> None:
    found = total(tmp_path, updated(1, COPIED), started(2, 0, 9))

    assert (found["deadEvents"], found["liveSegments"]) == (1, 1)


def test_a_segment_that_came_again_is_alive_since_then(tmp_path: Path) -> None:
    found = total(tmp_path, *copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED), *copied(1, 0, 9))

    assert (found["deadEvents"], found["liveSegments"]) == (4, 1)


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


def test_the_replay_estimate_follows_the_given_rate(tmp_path: Path) -> None:
    found = total(tmp_path, *[started(number, 0, 9) for number in range(1, 1001)])

    assert found["assumedEventsPerSecond"] == ASSUMED_EVENTS_PER_SECOND
    assert found["replaySeconds"] == 1000 / ASSUMED_EVENTS_PER_SECOND


def test_bytes_are_those_of_the_values(tmp_path: Path) -> None:
    assert total(tmp_path, b"12345", None, b"123")["bytes"] == 8


def test_metadata_partitions_apart_and_together(captures: Path) -> None:
    found = statistics(EventStream(LogDirectories([captures / "kafka-4.3.1" / "data"])))

    assert [row["events"] for row in found.partitions] == [398, 60, 0, 222]
    assert [row["endOffset"] for row in found.partitions] == [398, 60, 0, 222]
    assert [row["liveSegments"] for row in found.partitions] == [85, 30, 0, 57]
    for name in ("events", "bytes", "deadEvents", "liveSegments"):
        assert found.total[name] == sum(row[name] for row in found.partitions)
    # each deleted segment began, was copied, and took two events to go
    assert found.total["deadEvents"] == 4 * found.total["eventsByState"]["DELETE_SEGMENT_FINISHED"]
