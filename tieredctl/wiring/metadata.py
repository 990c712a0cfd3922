"""Look-ups in the metadata of one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.metadata.epoch_of_offset import Lineage, LineageSource
from tieredctl.ops.metadata.event_reading import selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import partition_of_today, replayed
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.wiring.places import ClusterPlace, MetadataPlace


@dataclass(frozen=True, slots=True)
class OpenedPartition:
    """A partition, and the metadata that was read to find it."""

    partition: TopicIdPartition
    stream: EventStream
    cache: RemoteLogMetadataCache
    """What a broker knows of the partition."""


METADATA, METADATA_AND_STORE = "The metadata has no event of", "Neither the metadata nor the store knows"
"""Begin the sentence about a name that nothing knows."""


def demand_known(place: MetadataPlace, stream: EventStream, selection: Selection, said: str = METADATA) -> None:
    """Raises TieredctlError `unknown-topic` where a stream that was read, and is whole, has no event of what was
    selected, and its live cluster has no such topic."""
    if exit_code_of(stream.findings):
        return
    try:
        selection.demand_known(stream.partitions, said)
    except TieredctlError as unknown:
        if place.cluster is None or selection.topic is None:
            raise
        _demand_live(place.cluster, selection, unknown)


def demand_known_by_all(place: MetadataPlace, selection: Selection, said: str = METADATA) -> None:
    """The same where only a part of the metadata was read: reads all of it. Raises `unknown-segment` where it has no
    event of a segment that is selected."""
    with place.open() as stream:
        if selection == Selection() or next(selected_records(stream, selection), None) is not None:
            return
        demand_known(place, stream, selection, said)
        if selection.segment_id is not None and not exit_code_of(stream.findings):
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, f"{said} {selection}.")


def _demand_live(place: ClusterPlace, selection: Selection, unknown: TieredctlError) -> None:
    """Raises an error, with the nearest name that the cluster has, unless it has what is selected."""
    assert selection.topic is not None
    with place.open() as cluster:
        try:
            topic = cluster.topic(selection.topic)
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            hint = nearest_hint(selection.topic, cluster.topic_names()) or unknown.hint
            raise TieredctlError(unknown.code, unknown.message, hint=hint) from None
    here = (TopicIdPartition(topic.topic_id, topic.topic, one.partition) for one in topic.partitions)
    if not any(map(selection.has, here)):
        raise unknown


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


def lineages(metadata: MetadataPlace, partition: TopicIdPartition) -> Sequence[Lineage]:
    """What the partition's leader knows of its leader epochs, or log directories do, the latest first. None of a point
    in the past, of a topic that was deleted or made again, and where no leader answers.

    Raises TieredctlError as the cluster does, and for files that may not be read.
    """
    if metadata.as_of is not None:
        return ()
    if metadata.cluster is not None:
        return _of_leader(metadata.cluster, partition)
    from tieredctl.kafka.local_logs import read_local_logs

    logs = [log for log_dir in metadata.log_dirs if (log := read_local_logs([log_dir]).get(partition))]
    logs.sort(key=lambda log: -log.leader_epochs[-1][0])
    return [Lineage(log.leader_epochs, LineageSource.CHECKPOINT) for log in logs]


def _of_leader(place: ClusterPlace, partition: TopicIdPartition) -> Sequence[Lineage]:
    from tieredctl.ops.cluster.leader import only_partition, read_leader_log

    with place.open() as cluster:
        try:
            topic = only_partition(cluster.topic(partition.topic), partition.partition)
            if topic.topic_id != partition.topic_id:
                return ()
            return [Lineage(read_leader_log(cluster, topic).log.leader_epochs, LineageSource.LEADER)]
        except TieredctlError as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC, ErrorCode.BROKER_UNREACHABLE):
                raise
            return ()
