"""Look-ups in the metadata of one partition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemotePartitionDeleteMetadata
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.metadata.event_reading import decoded_chunks, selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.offset_owner import Lineage, LineageSource
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import partition_of_today, replayed
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.wiring.places import ClusterPlace, MetadataPlace


class OpenedPartition(NamedTuple):
    """A partition, and the metadata that was read to find it."""

    partition: TopicIdPartition
    stream: EventStream
    cache: RemoteLogMetadataCache
    """What a broker knows of the partition."""


METADATA, METADATA_AND_STORE = "The metadata has no event of", "Neither the metadata nor the store knows"
"""Begin the sentence about a name that nothing knows."""


class Known(NamedTuple):
    """What is known besides what the metadata has."""

    partitions: Collection[TopicIdPartition] = ()
    segment_ids: Collection[str] = ()


def demand_known(
    place: MetadataPlace,
    stream: EventStream,
    selection: Selection,
    sentence: str = METADATA,
    besides: Collection[TopicIdPartition] = (),
) -> None:
    """Raises TieredctlError `unknown-topic` where a stream that was read, and is whole, has no event of something that
    was selected, and its live cluster has no such topic."""
    if exit_code_of(stream.findings):
        return
    partitions = {*stream.partitions, *besides}
    try:
        selection.demand_known(partitions, sentence)
    except TieredctlError as unknown:
        if place.cluster is None or not selection.topics:
            raise
        _demand_live(place.cluster, selection, partitions, sentence, unknown.hint)


def demand_known_by_all(
    place: MetadataPlace, selection: Selection, sentence: str = METADATA, elsewhere: Callable[[], Known] = Known
) -> None:
    """`demand_known` where only a part of the metadata was read: reads all of it. Raises `unknown-segment` where it has
    no event of a segment that is selected. `elsewhere` is asked only where the metadata lacks one of several names."""
    if selection == Selection():
        return
    with place.open() as stream:
        segment_ids = _segment_ids(stream, selection)
        if segment_ids is None:
            return
        try:
            _demand_all(place, stream, selection, sentence, Known((), segment_ids))
        except TieredctlError as unknown:
            if not selection.names_several or unknown.code not in (ErrorCode.UNKNOWN_TOPIC, ErrorCode.UNKNOWN_SEGMENT):
                raise
            partitions, others = elsewhere()
            _demand_all(place, stream, selection, sentence, Known(partitions, {*segment_ids, *others}))


def _segment_ids(stream: EventStream, selection: Selection) -> set[str] | None:
    """The ids of the segments that are selected by ids; None where the one thing that is selected has an event."""
    if not selection.names_several:
        return None if next(selected_records(stream, selection), None) is not None else set()
    if not selection.segment_ids:
        for _ in decoded_chunks(stream):
            pass
        return set()
    events = (record.event for record in selected_records(stream, selection))
    return {one.segment_id for one in events if not isinstance(one, RemotePartitionDeleteMetadata)}


def _demand_all(
    place: MetadataPlace, stream: EventStream, selection: Selection, sentence: str, elsewhere: Known
) -> None:
    demand_known(place, stream, selection, sentence, elsewhere.partitions)
    unknown = tuple(one for one in selection.segment_ids if one not in elsewhere.segment_ids)
    if unknown and not exit_code_of(stream.findings):
        raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, f"{sentence} {replace(selection, segment_ids=unknown)}.")


def _demand_live(
    place: ClusterPlace, selection: Selection, partitions: Collection[TopicIdPartition], sentence: str, hint: str | None
) -> None:
    """Raises an error, with the nearest name that the cluster has, unless it has what is selected and is not known."""
    here = set(partitions)
    with place.open() as cluster:
        for name in selection.topics:
            try:
                topic = cluster.topic(name)
            except TieredctlError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC:
                    raise
                continue
            here.update(TopicIdPartition(topic.topic_id, topic.topic, one.partition) for one in topic.partitions)
        try:
            selection.demand_known(here, sentence)
        except TieredctlError as unknown:
            names = cluster.topic_names()
            alike = (nearest_hint(one, names) for one in selection.topics if one not in names)
            alike_or_not = next((one for one in alike if one is not None), hint)
            raise TieredctlError(unknown.code, unknown.message, hint=alike_or_not) from None


@contextmanager
def opened_partition(metadata: MetadataPlace, selection: Selection) -> Iterator[OpenedPartition]:
    """The partition that is selected by its topic's name or id, and its number.

    The cluster is asked for the topic's present id after the metadata was read, so that the metadata has the id if it
    has segments. Raises TieredctlError as the places and `partition_of_today` do.
    """
    with metadata.open() as stream:
        store = replayed(stream, replace(selection, numbers=()))
        partition = partition_of_today(store.caches, selection, stream, metadata.topic_id_today)
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
