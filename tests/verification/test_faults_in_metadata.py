"""What the metadata of a real cluster says that its store, its segments or its local logs do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.cluster import HOUR_MS, Cluster, exit_code, key_of, started, update
from tests.faults.expectations import only_finding, part_finding
from tests.faults.segment_writer import WrittenSegment
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
each_level = pytest.mark.parametrize("level", list(Level))


def neighbours(cluster: Cluster, segment: WrittenSegment) -> list[RemoteLogSegmentMetadata]:
    """The segments of its partition."""
    partition = segment.metadata.topic_id_partition
    return [metadata for metadata in cluster.finished() if metadata.topic_id_partition == partition]


def without(cluster: Cluster, metadata: RemoteLogSegmentMetadata) -> Cluster:
    """As if a segment had never been copied."""
    for part in Part:
        if part not in (Part.INDEXES, Part.MANIFEST):
            cluster = cluster.without_part(metadata, part)
    return cluster.without_events_of(metadata)


def with_copy(cluster: Cluster, metadata: RemoteLogSegmentMetadata) -> Cluster:
    """With another finished copy of a segment, under its own id."""
    copy = replace(metadata, segment_id=UNKNOWN_ID)
    for part in Part:
        if part not in (Part.INDEXES, Part.MANIFEST) and cluster.has(metadata, part):
            cluster = cluster.with_part(copy, part, cluster.data(metadata, part))
    return cluster.with_events(started(copy), update(copy, RemoteLogSegmentState.COPY_SEGMENT_FINISHED))


@each_level
def test_an_object_that_no_layout_explains(two_partitions: Cluster, level: Level) -> None:
    evidence = only_finding(
        two_partitions.with_object("lost+found/notes.txt", b"hello"), "object-unreferenced", ExitCode.FINDINGS, level
    )

    assert evidence["key"] == "lost+found/notes.txt"
    assert evidence["size"] == 5
    assert "segmentId" not in evidence


@each_level
def test_an_object_of_a_segment_that_no_event_names(
    two_partitions: Cluster, small: WrittenSegment, level: Level
) -> None:
    stray = replace(small.metadata, segment_id=UNKNOWN_ID)
    damaged = two_partitions.with_part(stray, Part.LOG, b"")

    evidence = only_finding(damaged, "object-unreferenced", ExitCode.FINDINGS, level)

    assert evidence["key"] == key_of(stray, Part.LOG)
    assert evidence["segmentId"] == UNKNOWN_ID


@each_level
def test_an_object_of_a_topic_that_no_event_names(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    partition = replace(small.metadata.topic_id_partition, topic_id=UNKNOWN_ID)
    stray = replace(small.metadata, topic_id_partition=partition)
    damaged = two_partitions.with_part(stray, Part.LOG, b"")

    evidence = only_finding(damaged, "object-unreferenced", ExitCode.FINDINGS, level)

    assert evidence["topicId"] == UNKNOWN_ID


@each_level
def test_a_copy_that_never_ended(two_partitions: Cluster, large: WrittenSegment, level: Level) -> None:
    last = large.metadata
    stuck = started(last, segment_id=UNKNOWN_ID, start_offset=last.end_offset + 1, end_offset=last.end_offset + 9)
    damaged = two_partitions.with_events(stuck)

    evidence = only_finding(damaged, "copy-stuck", ExitCode.FINDINGS, level)

    assert evidence["segmentId"] == UNKNOWN_ID
    assert evidence["state"] == "COPY_SEGMENT_STARTED"
    assert damaged.verify(level).skipped == 1


@each_level
def test_the_objects_of_a_copy_that_never_ended_are_not_strangers(
    two_partitions: Cluster, large: WrittenSegment, level: Level
) -> None:
    last = large.metadata
    stuck = started(last, segment_id=UNKNOWN_ID, start_offset=last.end_offset + 1, end_offset=last.end_offset + 9)
    damaged = two_partitions.with_events(stuck).with_part(stuck, Part.LOG, b"half of it")

    only_finding(damaged, "copy-stuck", ExitCode.FINDINGS, level)


@each_level
def test_a_deletion_that_never_ended(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    first = neighbours(two_partitions, small)[0]
    damaged = two_partitions.with_events(update(first, RemoteLogSegmentState.DELETE_SEGMENT_STARTED))

    evidence = only_finding(damaged, "delete-stuck", ExitCode.FINDINGS, level)

    assert evidence["segmentId"] == first.segment_id


def test_a_deletion_that_fails_and_is_tried_again_is_as_old_as_its_first_try(
    two_partitions: Cluster, small: WrittenSegment
) -> None:
    first = neighbours(two_partitions, small)[0]
    begins = update(first, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
    again = replace(begins, event_timestamp_ms=begins.event_timestamp_ms + 2 * HOUR_MS)
    now = Clock(again.event_timestamp_ms + 1_000, HOUR_MS)

    findings = two_partitions.with_events(begins, again).verify(Level.LISTING, clock=now).findings

    assert [(one.code, one.evidence["ageMs"], one.evidence["tries"]) for one in findings] == [
        ("delete-stuck", 2 * HOUR_MS + 1_000, 2)
    ]


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_timestamps_beyond_what_was_claimed(
    two_partitions: Cluster, real_segment: WrittenSegment, level: Level
) -> None:
    metadata = real_segment.metadata
    damaged = two_partitions.with_start_changed(metadata, max_timestamp_ms=metadata.max_timestamp_ms - 1)

    evidence = part_finding(damaged, "timestamp-beyond-claim", metadata, Part.LOG, ExitCode.FINDINGS, level)

    latest = [batch for batch in real_segment.batches if batch.header.max_timestamp == metadata.max_timestamp_ms]
    assert evidence["position"] == latest[0].position


@each_level
def test_offsets_that_no_segment_holds(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    before, lost, behind = neighbours(two_partitions, small)[5:8]

    evidence = only_finding(without(two_partitions, lost), "offset-gap", level=level)

    assert evidence["offsets"] == [lost.start_offset, lost.end_offset]
    assert evidence["segmentId"] == behind.segment_id
    assert evidence["previousSegmentId"] == before.segment_id


@each_level
def test_offsets_that_two_segments_hold(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    evidence = only_finding(with_copy(two_partitions, small.metadata), "offset-overlap", ExitCode.CLEAN, level)

    assert evidence["offsets"] == [small.metadata.start_offset, small.metadata.end_offset]
    assert {evidence["segmentId"], evidence["previousSegmentId"]} == {UNKNOWN_ID, small.metadata.segment_id}


@each_level
def test_offsets_between_the_remote_and_the_local_log(
    two_partitions: Cluster, large: WrittenSegment, level: Level
) -> None:
    partition, end = large.metadata.topic_id_partition, large.metadata.end_offset
    trimmed = replace(two_partitions.local_logs[partition], local_start_offset=end + 11)
    damaged = replace(two_partitions, local_logs={**two_partitions.local_logs, partition: trimmed})

    evidence = only_finding(damaged, "local-remote-gap", level=level)

    assert evidence["offsets"] == [end + 1, end + 10]
    assert evidence["segmentId"] == large.metadata.segment_id


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_records_after_the_claimed_end(two_partitions: Cluster, large: WrittenSegment, level: Level) -> None:
    last = large.batches[-1]
    damaged = replace(two_partitions, local_logs={}).with_start_changed(
        large.metadata, end_offset=large.metadata.end_offset - 2
    )

    evidence = part_finding(damaged, "records-outside-segment", large.metadata, Part.LOG, level=level)

    assert evidence["position"] == last.position
    assert evidence["offsets"] == [last.header.base_offset, large.metadata.end_offset - 2]


def test_one_offset_at_the_claimed_end_that_no_batch_holds(two_partitions: Cluster, large: WrittenSegment) -> None:
    end = large.metadata.end_offset + 1
    damaged = replace(two_partitions, local_logs={}).with_start_changed(large.metadata, end_offset=end)

    found = [one.evidence["offsets"] for one in damaged.findings(Level.FULL) if one.code == "offset-shortfall"]

    assert found == [[end, end]]


def test_leader_epochs_that_are_not_those_of_the_batches(two_partitions: Cluster, large: WrittenSegment) -> None:
    """The checkpoint that was copied contradicts them too."""
    (first, start), (_, second_start) = large.metadata.segment_leader_epochs
    damaged = two_partitions.with_start_changed(
        large.metadata, segment_leader_epochs=((first, start), (7, second_start))
    )

    findings = [one for one in damaged.findings() if one.evidence.get("segmentId") == large.metadata.segment_id]

    assert {finding.code for finding in findings} >= {"epoch-mismatch", "leader-epoch-checkpoint-damaged"}
    assert exit_code(findings) is ExitCode.CORRUPTION


def test_two_faults_in_two_segments(two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment) -> None:
    log = bytearray(large.parts[Part.LOG])
    log[large.batches[4].position + 80] ^= 1
    damaged = two_partitions.with_part(large.metadata, Part.LOG, bytes(log)).without_part(
        small.metadata, Part.TIME_INDEX
    )

    findings = damaged.findings()

    assert [(finding.code, finding.evidence["segmentId"]) for finding in findings] == [
        ("object-missing", small.metadata.segment_id),
        ("batch-corrupt", large.metadata.segment_id),
    ]


def test_two_faults_in_one_segment(two_partitions: Cluster, large: WrittenSegment) -> None:
    log, index = bytearray(large.parts[Part.LOG]), bytearray(large.parts[Part.OFFSET_INDEX])
    log[large.batches[4].position + 80] ^= 1
    index[8 * 9 + 7] ^= 1
    damaged = two_partitions.with_part(large.metadata, Part.LOG, bytes(log)).with_part(
        large.metadata, Part.OFFSET_INDEX, bytes(index)
    )

    findings = damaged.findings()

    assert {(finding.code, finding.evidence["position"]) for finding in findings} == {
        ("batch-corrupt", large.batches[4].position),
        ("index-damaged", 8 * 9),
    }
