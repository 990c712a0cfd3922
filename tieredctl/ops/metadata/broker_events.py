"""The events that brokers wrote, among those that tools wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentMetadataSnapshot
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.rlmm.segment_events import EventChunk


class BrokerEvent(NamedTuple):
    """An event that a broker wrote; its time in ms since the epoch."""

    broker_id: int
    metadata_offset: int
    timestamp_ms: int


def by_brokers(group: EventGroup) -> Ints:
    """The rows of a group's columns that brokers wrote."""
    return np.flatnonzero(group.columns["BrokerId"] != NO_BROKER)


def last_broker_events(
    chunk: EventChunk, selects: Callable[[TopicIdPartition], bool]
) -> Mapping[TopicIdPartition, BrokerEvent]:
    """The last event of a broker in a chunk, by selected user partition."""
    last_events: dict[TopicIdPartition, tuple[int, int]] = {}
    """The number of its record, and the broker."""
    for group in chunk.groups:
        rows, last = by_brokers(group), np.full(len(group.partitions), -1)
        np.maximum.at(last, group.partition_index[rows], rows)
        for partition, row in zip(group.partitions, last.tolist(), strict=True):
            if row >= 0 and selects(partition):
                event = int(group.rows[row]), int(group.columns["BrokerId"][row])
                last_events[partition] = max(event, last_events.get(partition, event))
    for number, record in chunk.records:
        one = record.event
        if isinstance(one, RemoteLogSegmentMetadataSnapshot) or one.author == NO_BROKER:
            continue
        if selects(partition := one.topic_id_partition):
            event = number, one.author
            last_events[partition] = max(event, last_events.get(partition, event))
    return {
        partition: BrokerEvent(author, int(chunk.offsets[number]), int(chunk.timestamps[number]))
        for partition, (number, author) in last_events.items()
    }
