"""Which metadata partitions one task replays.

Replays of some metadata partitions say together what one replay of all says where each user partition has its events in
one of them. That is so as long as the topic has the number of partitions that it was made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_reading import event_chunk
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments
from tieredctl.ops.metadata.stretches import METADATA_TOPIC, OffsetRange, demand_held, held_offsets
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.segment_table import segment_tables
from tieredctl_spark.metadata_shares import demand_same_topic

_FIRST_RECORDS = 1_000
"""How many records count as the first of a metadata partition: what was written before the topic got more partitions
comes first in it."""


@dataclass(frozen=True, slots=True)
class ReplayShare:
    """What one task replays: a metadata partition, or all of them."""

    metadata_partition: int | None
    planned: tuple[tuple[int, OffsetRange], ...]
    """The offsets that each of its metadata partitions held."""
    metadata_topic_id: str | None
    """The topic that was planned for, if it is known."""
    partition_count: int | None = None
    """By which the events of others than this metadata partition are known; None where they may be here too."""


def planned_replays(place: MetadataPlace, number: int | None = None) -> list[ReplayShare]:
    """A share for each metadata partition, or for the one that is asked for; one for all where events of a user
    partition are, or may be, in several. Raises TieredctlError."""
    with place.open(number) as stream:
        source = stream.source
        numbers = source.metadata_partitions() if number is None else [number]
        held = [(one, held_offsets(source, one)) for one in numbers]
        topic_id = source.metadata_topic_id
        if number is not None:
            return [ReplayShare(number, tuple(held), topic_id)]
        count = _count(stream, numbers)
        if count is None:
            return [ReplayShare(None, tuple(held), topic_id)]
        return [ReplayShare(one, ((one, offsets),), topic_id, count) for one, offsets in held]


def replayed_tables(place: MetadataPlace, share: ReplayShare, selection: Selection) -> Iterator[pa.Table]:
    """The segments of a share that are selected, by SEGMENT_TABLE_SCHEMA. Raises TieredctlError as `replayed_share`
    does."""
    metadata = replayed_share(place, share, selection)
    yield from segment_tables(metadata, segments(metadata, selection))


def replayed_share(place: MetadataPlace, share: ReplayShare, selection: Selection = Selection()) -> ReplayedMetadata:
    """The state of the selected partitions of a share. Raises TieredctlError, `world-changed` where the topic was
    deleted and recreated since it was planned, and `unreadable` where less of it is here than was planned, or events
    are here that belong to another share."""
    with place.open(share.metadata_partition) as stream:
        demand_same_topic(stream.source.metadata_topic_id, share.metadata_topic_id)
        for number, planned in share.planned:
            demand_held(stream.source, number, planned, was_read=False)
        metadata = replayed(stream, selection)
        for number, planned in share.planned:
            demand_held(stream.source, number, planned, was_read=True)
        if share.partition_count is not None and (astray := _astray(stream.places, share.partition_count)) is not None:
            raise _divided(*astray, share.partition_count)
        return metadata


def _count(stream: EventStream, numbers: Iterable[int]) -> int | None:
    """How many partitions the topic has, if all events that are looked at are where this number puts them."""
    for number in numbers:
        for chunk in islice(stream.source.chunks(number), 1):
            event_chunk(stream, number, chunk.at(np.arange(min(len(chunk), _FIRST_RECORDS))))
    counts = stream.coverage.counts or ()
    if len(counts) != 1 or _astray(stream.places, counts[0]) is not None:
        return None
    return counts[0]


def _astray(places: Iterable[tuple[TopicIdPartition, int]], count: int) -> tuple[TopicIdPartition, int] | None:
    """A user partition with events in a metadata partition that is not its own."""
    for partition, number in places:
        if metadata_partition(partition.topic_id, partition.partition, count) != number:
            return partition, number
    return None


def _divided(partition: TopicIdPartition, number: int, count: int) -> TieredctlError:
    message = f"{METADATA_TOPIC}-{number} has events of {partition}, which belong elsewhere in {count} partitions."
    hint = "Replay all of it in one process, with `tieredctl metadata segments`."
    return TieredctlError(ErrorCode.UNREADABLE, f"{message} {hint}", hint=hint)
