"""The state of every segment and partition after the events that were read, by columns.

What Kafka's RemotePartitionMetadataStore would have; but an event that it refuses never hides the rest: it becomes a
finding. Objects are made of those segments alone that are asked for, and a partition's cache when it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

import numpy as np

from tieredctl.formats.uuid_columns import UuidSet, uuids_of_texts
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.size_sum import SizeSum
from tieredctl.rlmm.cache import NOTHING_DELETED, DeletedOffsets, KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.event_columns import EventColumns
from tieredctl.rlmm.failed_copies import FailingCopy, failing_copies, joined_failures
from tieredctl.rlmm.replayed_cache import replayed_cache
from tieredctl.rlmm.segment_events import PartitionDelete, SegmentEvents
from tieredctl.rlmm.segment_rows import (
    NO_STATE,
    SegmentRows,
    authors,
    custom_metadata,
    entered_ms,
    event_timestamps,
    have_custom_metadata,
    joined_refused,
    joined_rows,
    known_segments,
    replayed_buckets,
    state_known,
)
from tieredctl.rlmm.states import Refusal, partition_may_become, refusal_once_deleted, start_refusal, update_refusal

_STATES = tuple(RemoteLogSegmentState)
_Place = tuple[int, int]


class ReplayedMetadata:
    """The state after all events that were taken.

    With `keep_deleted`, segments that reached DELETE_SEGMENT_FINISHED and those of partitions that reached
    DELETE_PARTITION_FINISHED are remembered too.
    """

    def __init__(self, events: SegmentEvents, *, keep_deleted: bool = False) -> None:
        self.events = events
        self.partitions = list(events.partitions)
        """Every user partition that an event named, by the numbers that columns have."""
        self._with_cache = np.zeros(len(self.partitions), np.bool_)
        self._finished = np.full(len(self.partitions), -1)
        rows, refused, failed = [], [], []
        for bucket in replayed_buckets(events):
            self._with_cache[bucket.partitions] = True
            kept = bucket.segments.states != NO_STATE if keep_deleted else bucket.segments.are_known
            rows.append(bucket.segments.at(np.flatnonzero(kept)))
            refused.append(bucket.refused)
            failed.append(bucket.copies.failed)
            np.maximum.at(self._finished, bucket.copies.finished_partitions, bucket.copies.finished_offsets)
        self._refused = joined_refused(refused)
        self._failed = joined_failures(failed)
        self.rows: SegmentRows = joined_rows(rows)
        """The segments, in no order."""

    @cached_property
    def partition_deletes(self) -> dict[TopicIdPartition, RemotePartitionDeleteState]:
        """The state of each partition removal that was begun."""
        return {self.partitions[one.partition]: one.state for one in sorted(self.events.partition_deletes, key=_place)}

    @cached_property
    def caches(self) -> Mapping[TopicIdPartition, RemoteLogMetadataCache]:
        """A broker's cache for each partition that has events and is not removed; built again at each call."""
        return _Caches(self.events, self._with_cache)

    @cached_property
    def findings(self) -> list[Finding]:
        """The events that Kafka would refuse, and the segments whose size is not known, by metadata partition, then
        offset."""
        placed = [*self._refused_events(), *self._refused_deletes(), *self._unknown_sizes()]
        for record in self.events.misplaced:
            place = record.metadata_partition, record.metadata_offset
            placed.append((place, misplaced_event(*place)))
        return [finding for _, finding in sorted(placed, key=lambda one: one[0])]

    def segments(self) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
        """Every segment, by topic, topic id, partition, start offset."""
        return self.known(self.order)

    def segments_of(self, partition: TopicIdPartition) -> list[KnownSegment]:
        """Those of one partition."""
        return [segment for _, segment in self.known(self.rows_of(partition))]

    def rows_of(self, partition: TopicIdPartition) -> Ints:
        """The rows of one partition, by start offset."""
        number = self.events.partitions.get(partition)
        if number is None:
            return self.order[:0]
        first, last = np.searchsorted(self._ordered_ranks, self._ranks[number] + np.arange(2))
        return self.order[first:last]

    def deleted_offsets(self, partition: TopicIdPartition) -> DeletedOffsets:
        """The offsets of a partition's finished copies that are deleted, or being deleted."""
        return self.caches[partition].deleted if partition in self.caches else NOTHING_DELETED

    def known(self, rows: Ints) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
        """Some rows as objects."""
        return known_segments(self.events, self.rows.at(rows))

    def in_states(self, states: Collection[RemoteLogSegmentState]) -> Ints:
        """The rows in one of these states, by topic, topic id, partition, start offset."""
        return self.order[np.isin(self.rows.states[self.order], list(states))]

    def selected(self, rows: Ints, has: Callable[[TopicIdPartition], bool], segment_ids: Collection[str] = ()) -> Ints:
        """Those of some rows whose partitions are selected, and of the segments that are named, if any."""
        wanted = np.array([has(partition) for partition in self.partitions], np.bool_)
        if not wanted.all():
            rows = rows[wanted[self.rows.partitions[rows]]]
        return self.named(segment_ids, rows) if segment_ids else rows

    @cached_property
    def order(self) -> Ints:
        """The rows by topic, topic id, partition, start offset, last event."""
        rows = self.rows
        ranks = self._ranks[rows.partitions]
        start_offsets = self.start_offsets(np.arange(len(rows)))
        return np.lexsort((rows.metadata_partitions, rows.metadata_offsets, start_offsets, ranks))

    def start_offsets(self, rows: Ints) -> Ints:
        """The start offsets of some rows."""
        offsets: Ints = self.events.contents.starts.start_offsets.values[self.rows.starts[rows]]
        return offsets

    def end_offsets(self, rows: Ints) -> Ints:
        """The end offsets of some rows, inclusive."""
        offsets: Ints = self.events.contents.starts.end_offsets.values[self.rows.starts[rows]]
        return offsets

    def sizes(self, rows: Ints) -> Ints:
        """The sizes of the logs of some rows, in bytes, as the metadata has them: negative ones are not known."""
        sizes: Ints = self.events.contents.starts.sizes.values[self.rows.starts[rows]].astype(np.int64)
        return sizes

    def size_sum(self, rows: Ints) -> SizeSum:
        """The size of the logs of some rows together."""
        sizes = self.sizes(rows)
        return SizeSum(int(sizes[sizes >= 0].sum()), not (sizes < 0).any())

    def size(self, rows: Ints) -> int | None:
        """The same in bytes; None where that of one is not known."""
        return self.size_sum(rows).known

    def size_by(self, groups: Ints, rows: Ints, count: int) -> list[SizeSum]:
        """The size of each of so many groups; `groups` has a row's each."""
        sizes = self.sizes(rows)
        sums, are_exact = np.zeros(count, np.int64), np.ones(count, np.bool_)
        np.add.at(sums, groups, np.maximum(sizes, 0))
        are_exact[groups[sizes < 0]] = False
        return [SizeSum(*one) for one in zip(sums.tolist(), are_exact.tolist(), strict=True)]

    def max_timestamps(self, rows: Ints) -> Ints:
        """The latest timestamps of the records of some rows, in milliseconds since the epoch."""
        timestamps: Ints = self.events.contents.starts.max_timestamps.values[self.rows.starts[rows]]
        return timestamps

    @property
    def txn_idx_empty(self) -> Flags:
        """Whether each row's broker reported that it has no transaction index."""
        empty: Flags = self.events.contents.starts.txn_idx_empty.values[self.rows.starts]
        return empty

    def named(self, segment_ids: Iterable[str], rows: Ints | None = None) -> Ints:
        """Which of some rows, or of all in their order, are these segments. A text that is not an id names none."""
        rows = self.order if rows is None else rows
        wanted, _ = uuids_of_texts(list(segment_ids))
        return rows[UuidSet(wanted).has(self.rows.segment_ids.at(rows))]

    def besides(self, segment_ids: Collection[str], rows: Ints) -> Ints:
        """Some rows without those of these segments."""
        return np.setdiff1d(rows, self.named(segment_ids, rows)) if segment_ids else rows

    def states_of(self, segment_ids: Iterable[str]) -> dict[str, RemoteLogSegmentState]:
        """The states of those of some segments that are known, by id."""
        segments = self.known(self.named(segment_ids))
        return {segment.metadata.segment_id: segment.metadata.state for _, segment in segments}

    def earliest_last_events(self) -> Iterator[tuple[TopicIdPartition, int]]:
        """Each partition that has segments, with the time of the earliest of their last events, in milliseconds."""
        count = len(self.partitions)
        none = np.iinfo(np.int64).max
        earliest = np.full(count, none)
        np.minimum.at(earliest, self.rows.partitions, self.event_timestamps(np.arange(len(self.rows))))
        columns = zip(self.partitions, earliest.tolist(), strict=True)
        return ((partition, moment) for partition, moment in columns if moment != none)

    def sizes_of_partitions(self) -> Iterator[tuple[TopicIdPartition, int, int]]:
        """Each partition that has segments, with how many, and how many leader epochs these have."""
        count, partitions = len(self.partitions), self.rows.partitions
        epochs = self.events.contents.starts.epoch_counts.values[self.rows.starts]
        segments = np.bincount(partitions, minlength=count)
        leader_epochs = np.bincount(partitions, weights=epochs, minlength=count).astype(np.int64)
        columns = zip(self.partitions, segments.tolist(), leader_epochs.tolist(), strict=True)
        return (row for row in columns if row[1])

    def started(self, events: EventColumns) -> Iterator[RemoteLogSegmentMetadata]:
        """Events that copies begin with, as objects."""
        return _started(self.events, self.partitions, events)

    def event_timestamps(self, rows: Ints) -> Ints:
        """The timestamps of the last events of some rows, in milliseconds since the epoch."""
        return event_timestamps(self.events, self.rows.at(rows))

    def entered_ms(self, rows: Ints) -> Ints:
        """When some rows entered their states, in milliseconds since the epoch."""
        return entered_ms(self.events, self.rows.at(rows))

    def failing_copies(self, *, at_least: int) -> list[FailingCopy]:
        """The partitions whose copies failed at least so many times at one offset, and of which none finished since."""
        return failing_copies(self._failed, self._finished, self.events.contents.starts, self.partitions, at_least)

    def custom_metadata(self, rows: Ints) -> list[bytes | None]:
        """The custom metadata by the last events of some rows."""
        return custom_metadata(self.events, self.rows.at(rows))

    def have_custom_metadata(self, rows: Ints) -> Flags:
        """Whether the last events of some rows have any."""
        return have_custom_metadata(self.events, self.rows.at(rows))

    def authors(self, rows: Ints) -> Ints:
        """Who wrote the last events of some rows."""
        return authors(self.events, self.rows.at(rows))

    @cached_property
    def _ranks(self) -> Ints:
        names = [(one.topic, one.topic_id, one.partition) for one in self.partitions]
        ranks = np.empty(len(names), np.int64)
        ranks[np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)] = np.arange(len(names))
        return ranks

    @cached_property
    def _ordered_ranks(self) -> Ints:
        ranks: Ints = self._ranks[self.rows.partitions[self.order]]
        return ranks

    def _unknown_sizes(self) -> Iterator[tuple[_Place, Finding]]:
        # Replay for judging has no sizes.
        if not self.events.contents.starts.is_described or not len(self.rows):
            return
        rows = np.flatnonzero(self.sizes(np.arange(len(self.rows))) < 0)
        for _, segment in self.known(rows):
            place = segment.metadata_partition, segment.metadata_offset
            yield place, unknown_size(segment.metadata, *place)

    def _refused_events(self) -> Iterator[tuple[_Place, Finding]]:
        events = self._refused.events
        columns = zip(
            events.metadata_partitions.tolist(),
            events.metadata_offsets.tolist(),
            events.segment_ids.texts(),
            events.starts.tolist(),
            self._refused.before.tolist(),
            events.states.tolist(),
            self._refused.are_of_removed.tolist(),
            strict=True,
        )
        rows = enumerate(columns)
        for row, (metadata_partition, offset, segment_id, starts, number, state, is_of_removed) in rows:
            before, after = state_known(number), _STATES[state]
            refusal: Refusal | None = Refusal.REMOVED_PARTITION
            if not is_of_removed:
                refusal = start_refusal(before, after) if starts else update_refusal(before, after)
                name = int(events.partitions[row]), events.segment_ids.bytes_of(row)
                if number == RemoteLogSegmentState.DELETE_SEGMENT_FINISHED or name in self.events.forgotten:
                    refusal = refusal_once_deleted(after, refusal)
            if refusal is not None:
                place = metadata_partition, offset
                yield place, refused_event(*place, segment_id, (before, after), refusal, segment_id)

    def _refused_deletes(self) -> Iterator[tuple[_Place, Finding]]:
        states: dict[int, RemotePartitionDeleteState] = {}
        for number, metadata_partition, offset, after in sorted(self.events.partition_deletes, key=_place):
            before = states.get(number)
            if not partition_may_become(before, after):
                place, subject = (metadata_partition, offset), str(self.partitions[number])
                yield place, refused_event(*place, subject, (before, after), Refusal.ILLEGAL_TRANSITION)
            states[number] = after  # Kafka stores it without checking the transition


class _Caches(Mapping[TopicIdPartition, RemoteLogMetadataCache]):
    def __init__(self, events: SegmentEvents, known: Flags) -> None:
        self._events = events
        self._known = known

    def __getitem__(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        if partition not in self:
            raise KeyError(partition)
        return replayed_cache(self._events, self._events.partitions[partition])

    def __contains__(self, partition: object) -> bool:
        number = self._events.partitions.get(partition) if isinstance(partition, TopicIdPartition) else None
        return number is not None and bool(self._known[number])

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return iter(partition for partition, number in self._events.partitions.items() if self._known[number])

    def __len__(self) -> int:
        return int(self._known.sum())


def _started(
    described: SegmentEvents, partitions: Sequence[TopicIdPartition], events: EventColumns
) -> Iterator[RemoteLogSegmentMetadata]:
    """Events that copies begin with, as objects."""
    numbers, states = events.partitions.tolist(), events.states.tolist()
    begun = zip(events.segment_ids.texts(), described.contents.starts.begun(events.contents), strict=True)
    for number, state, (segment_id, fields) in zip(numbers, states, begun, strict=True):
        partition = partitions[number]
        yield RemoteLogSegmentMetadata(
            topic_id_partition=partition, segment_id=segment_id, state=_STATES[state], **fields
        )


def _place(one: PartitionDelete) -> _Place:
    return one.metadata_partition, one.metadata_offset


def refused_event(
    metadata_partition: int,
    metadata_offset: int,
    subject: str,
    states: tuple[IntEnum | None, IntEnum],
    refusal: Refusal,
    segment_id: str | None = None,
) -> Finding:
    """An event that is not taken: `states` are the state before it, and the one that it claims. Only informational for
    what is late where the deletion has finished."""
    before, after = states
    evidence: dict[str, object] = {
        "metadataPartition": metadata_partition,
        "metadataOffset": metadata_offset,
        "before": before.name if before is not None else None,
        "after": after.name,
    }
    if segment_id is not None:
        evidence["segmentId"] = segment_id
    about = MetadataSubject(metadata_partition, metadata_offset, segment_id=segment_id)
    transition = f"{before.name if before is not None else 'nothing'} to {after.name}"
    severity = Severity.INFO if refusal is Refusal.DELETED_ALREADY else None
    return Finding(FindingCode.EVENT_ILLEGAL, subject, f"{transition}: {refusal.value}", evidence, severity, about)


def unknown_size(metadata: RemoteLogSegmentMetadata, metadata_partition: int, metadata_offset: int) -> Finding:
    """A segment with a negative size, which Kafka takes: its last event is there."""
    evidence: dict[str, object] = {
        "segmentId": metadata.segment_id,
        "segmentSizeInBytes": metadata.segment_size_in_bytes,
        "metadataPartition": metadata_partition,
        "metadataOffset": metadata_offset,
    }
    about = MetadataSubject(metadata_partition, metadata_offset, segment_id=metadata.segment_id)
    message = f"the metadata gives it {metadata.segment_size_in_bytes} bytes: its size is unknown, and left out of sums"
    subject = f"segment {metadata.segment_id}"
    return Finding(FindingCode.SEGMENT_SIZE_UNKNOWN, subject, message, evidence, about=about)


def misplaced_event(metadata_partition: int, metadata_offset: int) -> Finding:
    """A record of a kind that brokers keep elsewhere."""
    return Finding(
        FindingCode.EVENT_UNDECODABLE,
        f"__remote_log_metadata-{metadata_partition}@{metadata_offset}",
        "a snapshot record does not belong in the topic: Kafka's reader of this topic stops here",
        {"metadataPartition": metadata_partition, "metadataOffset": metadata_offset},
        about=MetadataSubject(metadata_partition, metadata_offset),
    )
