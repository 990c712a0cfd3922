"""Look-ups in the metadata of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import partition_of_today, replayed
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.wiring.places import MetadataPlace


@dataclass(frozen=True, slots=True)
class OpenedPartition:
    """A partition, and the metadata that was read to find it."""

    partition: TopicIdPartition
    stream: EventStream
    cache: RemoteLogMetadataCache
    """What a broker knows of the partition."""


@contextmanager
def opened_partition(metadata: MetadataPlace, selection: Selection) -> Iterator[OpenedPartition]:
    """The partition that is selected by its topic's name or id, and its number.

    The cluster is asked for the topic's present id after the metadata was read, so that the metadata has the id if it
    has segments. Raises TieredctlError as the places and `partition_of_today` do.
    """
    with metadata.open() as stream:
        store = replayed(stream, replace(selection, partition=None))
        partition = partition_of_today(store.caches, selection, stream.coverage, metadata.topic_id_today)
        yield OpenedPartition(partition, stream, store.caches[partition])
