"""Do `remote_log_snapshot` and `_rlmm_committed_offsets`, as Kafka 3.1 to 3.5 kept them, agree with the topic?

Source: ConsumerTask.syncCommittedDataAndOffsets. An empty snapshot proves nothing: 3.6 and 3.7 leave it empty, and so
do earlier releases for a partition that is being removed."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.formats.file_names import COMMITTED_OFFSETS, REMOTE_LOG_SNAPSHOT
from tieredctl.formats.remote_log_snapshot import RemoteLogSnapshot
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataSnapshot
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import partition_document
from tieredctl.ops.store_check.local_stores import LocalStore, MetadataToCheck, PartitionFolder
from tieredctl.ports.metadata_source import METADATA_TOPIC

# By Kafka's name for it; what 3.5 does not write is left out.
_COMPARED = {
    "startOffset": "start_offset",
    "endOffset": "end_offset",
    "brokerId": "author",
    "maxTimestampMs": "max_timestamp_ms",
    "eventTimestampMs": "event_timestamp_ms",
    "segmentLeaderEpochs": "segment_leader_epochs",
    "segmentSizeInBytes": "segment_size_in_bytes",
    "state": "state",
}


def check_committed_offsets(store: LocalStore, metadata: MetadataToCheck) -> Iterator[Finding]:
    """No committed offset may be beyond the metadata's end."""
    path = store.path / COMMITTED_OFFSETS
    for metadata_partition, offset in store.committed_offsets.offsets.items() if store.committed_offsets else ():
        evidence = {"file": str(path), "metadataPartition": metadata_partition, "metadataOffset": offset}
        yield from _beyond_end(str(path), evidence, metadata, metadata_partition, offset)


def check_snapshot(store: LocalStore, folder: PartitionFolder, metadata: MetadataToCheck) -> list[Finding]:
    """The segments of a snapshot must be those that the metadata gives up to the snapshot's offset."""
    snapshot = folder.snapshot
    if snapshot is None:
        return []
    path = folder.path / REMOTE_LOG_SNAPSHOT
    where = {
        "file": str(path),
        "topic": folder.topic,
        "partition": folder.partition,
        "metadataPartition": snapshot.metadata_partition,
        "metadataOffset": snapshot.metadata_partition_offset,
    }
    beyond = list(
        _beyond_end(str(path), where, metadata, snapshot.metadata_partition, snapshot.metadata_partition_offset)
    )
    if beyond:
        return beyond
    candidates = _incarnations(folder, metadata)
    if not candidates:
        if not snapshot.segments:
            return []
        segments = counted(len(snapshot.segments), "segment")
        message = f"it has {segments} of a partition without events in the metadata"
        return [Finding(FindingCode.STORE_DISAGREES, str(path), message, where)]
    # Where the folder doesn't say which of a recreated topic's ids it has, the best match is taken.
    return min((_compared(store, partition, snapshot, where, metadata) for partition in candidates), key=len)


def _incarnations(folder: PartitionFolder, metadata: MetadataToCheck) -> list[TopicIdPartition]:
    candidates = metadata.incarnations(folder.topic, folder.partition)
    if folder.topic_id is None:
        return candidates
    return [candidate for candidate in candidates if candidate.topic_id == folder.topic_id]


def _compared(
    store: LocalStore,
    partition: TopicIdPartition,
    snapshot: RemoteLogSnapshot,
    where: dict[str, object],
    metadata: MetadataToCheck,
) -> list[Finding]:
    facts = where | partition_document(partition)
    path = str(where["file"])
    home = metadata.metadata_partition_of[partition]
    if home != snapshot.metadata_partition:
        message = f"it names metadata partition {snapshot.metadata_partition}; the partition's events are in {home}"
        return [Finding(FindingCode.STORE_DISAGREES, path, message, facts)]
    replay = metadata.as_of_store[store.path]
    expected = replay.segments(partition)
    by_segment: dict[str, Finding] = {}
    for segment in snapshot.segments:
        if difference := _difference(segment, expected.get(segment.segment_id)):
            message, fields = difference
            evidence = facts | {"segmentId": segment.segment_id, "fields": fields}
            by_segment.setdefault(segment.segment_id, Finding(FindingCode.STORE_DISAGREES, path, message, evidence))
    for segment_id in sorted(expected.keys() - {segment.segment_id for segment in snapshot.segments}):
        message = f"segment {segment_id}, {expected[segment_id].state.name} in the metadata, is not in it"
        by_segment[segment_id] = Finding(FindingCode.STORE_DISAGREES, path, message, facts | {"segmentId": segment_id})
    findings = list(by_segment.values())
    if unread := replay.unread_events(partition):
        message = f"{counted(unread, 'event')} after it committed as read: a restarted broker would never see them"
        findings.append(Finding(FindingCode.STORE_DISAGREES, path, message, facts | {"unreadEvents": unread}))
    return findings


def _difference(
    segment: RemoteLogSegmentMetadataSnapshot, expected: RemoteLogSegmentMetadata | None
) -> tuple[str, dict[str, list[object]]] | None:
    """How a segment in a snapshot differs: as a sentence, and as field -> [here, in the metadata]."""
    if expected is None:
        message = f"segment {segment.segment_id}, {segment.state.name} here, is not in the metadata at this offset"
        return message, {}
    fields = {
        name: [_plain(getattr(segment, attribute)), _plain(getattr(expected, attribute))]
        for name, attribute in _COMPARED.items()
        if getattr(segment, attribute) != getattr(expected, attribute)
    }
    if not fields:
        return None
    differing = ", ".join(f"{name} {here} instead of {there}" for name, (here, there) in fields.items())
    return f"segment {segment.segment_id} has {differing}", fields


def _plain(value: object) -> object:
    name = getattr(value, "name", None)
    if name is not None:
        return name
    return [list(pair) for pair in value] if isinstance(value, tuple) else value


def _beyond_end(
    subject: str, evidence: dict[str, object], metadata: MetadataToCheck, metadata_partition: int, offset: int
) -> Iterator[Finding]:
    if metadata_partition not in metadata.metadata_partitions:
        message = f"{METADATA_TOPIC}-{metadata_partition} is not here to compare it with"
        yield Finding(FindingCode.UNREADABLE, subject, message, evidence)
    elif offset >= (end := metadata.end_offset(metadata_partition)):
        message = f"{METADATA_TOPIC}-{metadata_partition} was read up to offset {offset}, but ends before {end}"
        yield Finding(FindingCode.STORE_DISAGREES, subject, message, evidence | {"endOffset": end})
