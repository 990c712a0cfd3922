"""The logs of `__remote_log_metadata` and `__consumer_offsets` as new nodes begin with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.group_offsets import committed_offset_record, group_partition
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata_recovery.event_rebuilding import as_started
from tieredctl.ops.metadata_recovery.recovery_plan import PartitionRecovery
from tieredctl.ops.metadata_recovery.segment_judgement import finished_event
from tieredctl.ops.restore.restored_logs import RestoredLog
from tieredctl.ports.cluster import CommittedOffset

RESTORED_EPOCH = 0
"""The leader epoch of all batches that are written: before any that a leader will have."""
_RECORDS_A_BATCH = 500


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A log's batches with their base offsets, and where it begins and ends, exclusive."""

    batches: Sequence[tuple[int, bytes]]
    start_offset: int
    end_offset: int


def new_events(partitions: Iterable[PartitionRecovery]) -> Mapping[int, list[MetadataEvent]]:
    """By metadata partition, the events of segments that the set does not know."""
    events: dict[int, list[MetadataEvent]] = defaultdict(list)
    for partition in partitions:
        for segment in partition.to_recover():
            metadata = segment.metadata
            assert metadata is not None
            started: list[MetadataEvent] = [as_started(metadata)] if segment.needs_start else []
            finished = finished_event(metadata, metadata.event_timestamp_ms)
            events[partition.metadata_partition] += [*started, finished]
    return events


def event_logs(
    stream: EventStream, added: Mapping[int, Sequence[MetadataEvent]], *, is_cut: bool
) -> Iterator[tuple[int, WrittenLog]]:
    """Each metadata partition's log: the events at the offsets that they had, and those that are added after them.

    Where the stream has only some topics' events, offsets begin again at 0: a log with holes would look as if events
    were lost. Raises TieredctlError `metadata-partitions` for events of a partition that the stream has not.
    """
    left = [*stream.source.metadata_partitions()]
    homeless = sorted(added.keys() - {*left})
    if homeless:
        message = f"The set has no metadata partition {homeless[0]}, in which events of found segments belong."
        raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message, hint="Restore from another set with --set.")
    for number, chunks in groupby(stream.chunks(), key=itemgetter(0)):
        left.remove(number)
        records = [record for _, chunk in chunks for record in _records(chunk)]
        yield number, _event_log(stream, number, records, added.get(number, ()), is_cut=is_cut)
    for number in left:
        yield number, _event_log(stream, number, [], added.get(number, ()), is_cut=is_cut)


def _event_log(
    stream: EventStream, number: int, records: Sequence[Record], added: Sequence[MetadataEvent], *, is_cut: bool
) -> WrittenLog:
    start, end = stream.source.offset_range(number)
    if is_cut:
        records = [one._replace(offset=place) for place, one in enumerate(records)]
        start, end = 0, len(records)
    new = [
        Record(end + place, event.event_timestamp_ms, None, encode_event(event)) for place, event in enumerate(added)
    ]
    return WrittenLog([*_batches(records), *_batches(new)], start, end + len(new))


def _records(chunk: RecordChunk) -> list[Record]:
    return [Record(one.offset, one.timestamp_ms, one.tombstone_key, one.value) for one in chunk.records()]


def _batches(records: Sequence[Record]) -> Iterator[tuple[int, bytes]]:
    for first in range(0, len(records), _RECORDS_A_BATCH):
        some = records[first : first + _RECORDS_A_BATCH]
        yield some[0].offset, encode_batch(some, partition_leader_epoch=RESTORED_EPOCH)


def cut_offsets(
    committed: Iterable[CommittedOffset], logs: Mapping[tuple[str, int], RestoredLog]
) -> list[CommittedOffset]:
    """The groups' offsets in partitions that are restored, none beyond where its log goes on."""
    return [
        one._replace(offset=min(one.offset, logs[one.topic, one.partition].next_offset))
        for one in committed
        if (one.topic, one.partition) in logs
    ]


def group_logs(committed: Iterable[CommittedOffset], partitions: int, at_ms: int) -> Mapping[int, WrittenLog]:
    """The logs of `__consumer_offsets` by partition, for those that have a group."""
    by_partition: dict[int, list[CommittedOffset]] = defaultdict(list)
    for one in sorted(committed):
        by_partition[group_partition(one.group, partitions)].append(one)
    logs: dict[int, WrittenLog] = {}
    for number, some in by_partition.items():
        records = [committed_offset_record(*one, offset=place, timestamp=at_ms) for place, one in enumerate(some)]
        logs[number] = WrittenLog(list(_batches(records)), 0, len(records))
    return logs
