"""Records straight from remote storage: opens and reads what says which segments serve them, in the one safe order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.local_segments import LayoutWithDisk, LocalTail, local_tails
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import doubts
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection, one_partition
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.timeline.partition_timeline import KnownLog
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.leaders_tail import LayoutWithLeaders, leaders_segment
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition, never_deleted
from tieredctl.records.request import ALL_RECORDS, KnownLine, RecordRequest
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.timelines import known_logs


@dataclass(frozen=True)
class TopicRecords:
    """A topic's partitions in an open store, by number."""

    partitions: Sequence[RemotePartition]
    store: ObjectStore
    layout: SegmentObjects
    stream: EventStream
    """The metadata that was read."""
    is_deleted: Callable[[TopicIdPartition, str], bool] = never_deleted
    """By the metadata of now: whether a segment was deleted meanwhile."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Why events may be missing from the metadata, which then may not name all segments."""
        return [*doubts(self.stream.findings)]

    def read(self, partition: RemotePartition, request: RecordRequest = ALL_RECORDS) -> PartitionRecords:
        """The records of one of the partitions that a request asks for."""
        return PartitionRecords(partition, self.store, self.layout, request, self.is_deleted)


@dataclass(frozen=True, slots=True)
class _DeletedMeanwhile:
    """Reads the metadata again each time it is asked."""

    metadata: KnownMetadata

    def __call__(self, partition: TopicIdPartition, segment_id: str) -> bool:
        """Not so where the metadata cannot be read again: nothing then says that what is missing was deleted."""
        try:
            self.metadata.refresh()
        except TieredctlError:
            return False
        return bool(self.metadata.deleted_in(partition, [segment_id]))


@contextmanager
def deleted_meanwhile(metadata: MetadataPlace) -> Iterator[Callable[[TopicIdPartition, str], bool]]:
    """What says by the metadata of now whether a segment was deleted. The metadata is not opened before it is asked."""
    if metadata.export and metadata.as_of is None:
        yield never_deleted
        return
    with closing(FollowedMetadata(metadata.open_source)) as again:
        yield _DeletedMeanwhile(KnownMetadata(again))


@contextmanager
def topic_records(
    metadata: MetadataPlace, store: StorePlace, selection: Selection, *, with_local: bool = False
) -> Iterator[TopicRecords]:
    """The selected partitions of one topic, named by `selection.topics`. The line of leaders comes from the metadata's
    own place, as far as it can say: a live cluster, or brokers' log directories; else from the store. `with_local`:
    where remote storage ends, go on in those log directories.

    Raises TieredctlError as the places do, `unknown-topic` where the metadata has no such partition, and
    `ambiguous-topic` where a name has several ids, unless the live cluster says which of them it has today.
    """
    if with_local and (not (metadata.log_dirs or metadata.cluster) or metadata.as_of is not None):
        message = "--with-local continues in a broker's log directory, or on a live cluster, as they are now."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --log-dir or --bootstrap-server, without --as-of.")
    remote = store.open()
    tails = local_tails(metadata.log_dirs, selection.topics) if with_local else {}
    # A leader is asked before the metadata is read, so that nothing it moved to remote storage is missing there.
    logs = known_logs(metadata, selection, most_leaders=sys.maxsize)
    with ExitStack() as stack:
        stream = stack.enter_context(metadata.open())
        whole = replace(selection, numbers=())
        caches = replayed(stream, whole).caches
        is_deleted = stack.enter_context(deleted_meanwhile(metadata))
        chosen = _chosen(list(caches), _of_today(metadata, list(caches), selection), stream)
        partitions = [
            RemotePartition.of(
                *(one, caches[one], remote.store, remote.layout),
                *(_line(logs, one, caches[one], metadata), is_deleted),
            )
            for one in chosen
        ]
        if metadata.cluster is not None and metadata.as_of is None:
            stream.findings += [_without_leader(one) for one in chosen if one not in logs]
        layout: SegmentObjects = remote.layout
        if with_local and metadata.cluster is not None:
            layout = LayoutWithLeaders(layout, stack.enter_context(metadata.cluster.open_tail()).fetch)
            partitions = [_with_leader(one, logs.get(one.partition)) for one in partitions]
        elif with_local:
            layout = LayoutWithDisk(remote.layout, {partition: tail.folder for partition, tail in tails.items()})
            partitions = [_with_tail(one, tails) for one in partitions]
            stream.findings += [_without_replica(one) for one in chosen if one not in tails]
        yield TopicRecords(partitions, remote.store, layout, stream, is_deleted)


def _of_today(metadata: MetadataPlace, present: Sequence[TopicIdPartition], selection: Selection) -> Selection:
    """The selection with the id that the cluster's topic has today, where the name alone means several."""
    if len({one.topic_id for one in present if selection.has(one)}) > 1:
        today = metadata.topic_id_today(selection.topics[0])
        if today is not None:
            return replace(selection, topic_ids=(today,))
    return selection


def _chosen(present: Sequence[TopicIdPartition], selection: Selection, stream: EventStream) -> list[TopicIdPartition]:
    """By number."""
    selected = sorted((one for one in present if selection.has(one)), key=lambda one: one.partition)
    ids = sorted({one.topic_id for one in selected})
    if len(ids) > 1:
        message = f"Topic {selection.topics[0]} was recreated: it has the topic ids {', '.join(ids)}."
        raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message)
    if not selected:
        one_partition(present, selection, stream)
    selection.demand_known(present, "The metadata has no event of")
    return selected


def _with_tail(remote: RemotePartition, tails: Mapping[TopicIdPartition, LocalTail]) -> RemotePartition:
    tail = tails.get(remote.partition)
    return remote if tail is None else remote.with_disk(tail.segments, tail.end_offset)


def _without_replica(partition: TopicIdPartition) -> Finding:
    subject = f"{partition.topic}-{partition.partition}"
    message = "no log directory has a segment of it: what is on brokers' disks alone is not read"
    return Finding(FindingCode.CHECK_NOT_MADE, subject, message, about=PartitionSubject(partition, None))


def _with_leader(remote: RemotePartition, log: KnownLog | None) -> RemotePartition:
    if log is None or log.end_offset is None:
        return remote
    first = max(remote.end_offset or 0, remote.log_start_offset or 0)
    return remote.with_disk([leaders_segment(remote.partition, first, log.leader_epochs)], log.end_offset)


def _without_leader(partition: TopicIdPartition) -> Finding:
    subject = f"{partition.topic}-{partition.partition}"
    message = "no leader told where its log begins: which offsets consumers may read is not certain"
    return Finding(FindingCode.CHECK_NOT_MADE, subject, message, about=PartitionSubject(partition, None))


def _line(
    logs: Mapping[TopicIdPartition, KnownLog],
    partition: TopicIdPartition,
    remote: RemoteLogMetadataCache,
    metadata: MetadataPlace,
) -> KnownLine | None:
    log = logs.get(partition)
    if log is None:
        return None
    is_left_behind = bool(metadata.log_dirs) and max(remote.epochs(), default=-1) > log.leader_epochs[-1][0]
    return KnownLine(() if is_left_behind else log.leader_epochs, log.log_start_offset)
