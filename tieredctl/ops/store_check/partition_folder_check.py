"""Do a partition's folders agree on the topic's id and its leader epochs, with each other and with the metadata?

An epoch has one leader and so one first offset, wherever it is written down; only the first epoch of a checkpoint may
be cut short, to the log start offset (LeaderEpochFileCache.truncateFromStart).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.documents import partition_document
from tieredctl.ops.store_check.local_stores import LocalStore, MetadataToCheck, PartitionFolder
from tieredctl.ops.verification.lineage_check import EpochRanges, check_lineage
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def check_partition_folder(store: LocalStore, folder: PartitionFolder, metadata: MetadataToCheck) -> Iterator[Finding]:
    """Compares a folder with the metadata."""
    if folder.topic_id is None:
        return
    partition = TopicIdPartition(folder.topic_id, folder.topic, folder.partition)
    state = metadata.state
    if partition not in state.caches:
        yield from _unknown_id(folder, folder.topic_id, metadata)
        return
    rows = state.rows_of(partition)
    finished = rows[state.rows.states[rows] == RemoteLogSegmentState.COPY_SEGMENT_FINISHED]
    if folder.leader_epochs:
        wrong = finished[_contradict(folder.leader_epochs, state, finished)]
        segments = sorted((one.metadata for _, one in state.known(wrong)), key=lambda one: one.segment_id)
        segments.sort(key=lambda one: one.start_offset)
        yield from _check_epochs(folder, partition, folder.leader_epochs, segments)
        yield from _check_seam(store, folder, partition, state, finished)


def check_replicas(stores: Sequence[LocalStore]) -> Iterator[Finding]:
    """Compares the folders of one partition in several log directories."""
    replicas: dict[tuple[str, int], list[PartitionFolder]] = defaultdict(list)
    for store in stores:
        for folder in store.partitions:
            replicas[folder.topic, folder.partition].append(folder)
    for first, *others in replicas.values():
        for other in others:
            yield from _check_replica(first, other)


def _check_replica(one: PartitionFolder, other: PartitionFolder) -> Iterator[Finding]:
    if one.topic_id and other.topic_id and one.topic_id != other.topic_id:
        path = other.path / PARTITION_METADATA_FILE
        message = f"topic id {other.topic_id} is {one.topic_id} in {one.path}: one of them is of a deleted topic"
        evidence = {"file": str(path), "topic": other.topic, "partition": other.partition, "topicId": other.topic_id}
        yield Finding(FindingCode.STORE_DISAGREES, str(path), message, evidence)
        return
    starts = {entry.epoch: entry.start_offset for entry in (one.leader_epochs or ())[1:]}
    for entry in (other.leader_epochs or ())[1:]:
        start = starts.get(entry.epoch, entry.start_offset)
        if start != entry.start_offset:
            message = f"leader epoch {entry.epoch} begins at {entry.start_offset} here and at {start} in {one.path}"
            yield _epochs_finding(other, message, entry)


def _unknown_id(folder: PartitionFolder, topic_id: str, metadata: MetadataToCheck) -> Iterator[Finding]:
    path = folder.path / PARTITION_METADATA_FILE
    evidence = {
        "file": str(path),
        "topic": folder.topic,
        "partition": folder.partition,
        "topicId": topic_id,
    }
    if others := metadata.topics(topic_id) - {folder.topic}:
        message = f"topic id {topic_id} is that of topic {min(others)} in the metadata"
        yield Finding(FindingCode.STORE_DISAGREES, str(path), message, evidence)
    elif incarnations := metadata.incarnations(folder.topic, folder.partition):
        ids = ", ".join(partition.topic_id for partition in incarnations)
        message = f"the metadata has {folder} only with other topic ids: {ids}; the topic was recreated"
        yield Finding(FindingCode.STORE_DISAGREES, str(path), message, evidence, Severity.INFO)


def _contradict(checkpoint: Sequence[EpochEntry], state: ReplayedMetadata, rows: Ints) -> Ints:
    """The rows that `_check_epochs` finds to contradict a checkpoint."""
    first, *later = checkpoint
    starts = {entry.epoch: entry.start_offset for entry in later}
    lineages = state.events.contents.starts.epochs_of(state.rows.starts[rows])
    epochs, offsets = lineages.elements.values()
    epochs_here = np.array(sorted(starts), np.int64)
    begins = np.array([starts[epoch] for epoch in epochs_here.tolist()], np.int64)
    begins_here = np.ones(len(epochs), np.bool_)
    begins_here[lineages.bounds[:-1]] = False
    wrong = (epochs == first.epoch) & begins_here & (offsets > first.start_offset)
    if len(epochs_here):
        places = np.minimum(np.searchsorted(epochs_here, epochs), len(epochs_here) - 1)
        differs = np.where(begins_here, offsets != begins[places], offsets < begins[places])
        wrong = np.where(epochs_here[places] == epochs, differs, wrong)
    return np.unique(np.repeat(np.arange(len(rows)), np.diff(lineages.bounds))[wrong])


def _check_epochs(
    folder: PartitionFolder,
    partition: TopicIdPartition,
    checkpoint: Sequence[EpochEntry],
    finished: Sequence[RemoteLogSegmentMetadata],
) -> Iterator[Finding]:
    """One finding for each epoch that the segments contradict."""
    first, *later = checkpoint
    starts = {entry.epoch: entry for entry in later}
    contradicted: set[int] = set()
    for metadata in finished:
        for number, (epoch, offset) in enumerate(metadata.segment_leader_epochs):
            # A segment's first epoch may have begun before it.
            begins_here = number > 0
            entry = starts.get(epoch)
            if entry is None:
                wrong = epoch == first.epoch and begins_here and offset > first.start_offset
                entry = first
            else:
                wrong = offset != entry.start_offset if begins_here else offset < entry.start_offset
            if wrong and epoch not in contradicted:
                contradicted.add(epoch)
                message = (
                    f"leader epoch {epoch} begins at {entry.start_offset} here, "
                    f"but segment {metadata.segment_id} has it from offset {offset}"
                )
                evidence = partition_document(partition) | {"segmentId": metadata.segment_id}
                yield _epochs_finding(folder, message, entry, **evidence)


def _check_seam(
    store: LocalStore,
    folder: PartitionFolder,
    partition: TopicIdPartition,
    state: ReplayedMetadata,
    finished: Ints,
) -> Iterator[Finding]:
    """Whether the remote log reaches the local one; `finished` are the rows of segments."""
    if folder.local_start_offset is None:
        return
    lineage = tuple((entry.epoch, entry.start_offset) for entry in folder.leader_epochs or ())
    log_start = store.log_start_offsets.get((folder.topic, folder.partition))
    local = LocalLog(lineage, folder.local_start_offset, log_start)

    def copied() -> int | None:
        return state.caches[partition].highest_offset()

    seam = check_lineage(
        partition,
        EpochRanges.of(state, finished),
        lineage,
        local,
        copied=copied,
        deleted=lambda: state.deleted_offsets(partition),
    )
    for finding in seam:
        # `verify` reports gaps between remote segments.
        if finding.code is FindingCode.LOCAL_REMOTE_GAP:
            yield finding


def _epochs_finding(folder: PartitionFolder, message: str, entry: EpochEntry, **evidence: object) -> Finding:
    path = folder.path / LEADER_EPOCH_CHECKPOINT
    facts: dict[str, object] = {
        "file": str(path),
        "topic": folder.topic,
        "partition": folder.partition,
        "leaderEpoch": entry.epoch,
        "startOffset": entry.start_offset,
    }
    return Finding(FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED, str(path), message, facts | evidence)
