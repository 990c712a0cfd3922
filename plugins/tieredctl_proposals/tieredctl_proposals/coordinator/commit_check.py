"""Which batches of a file a coordinator accepts, and which offsets they get (KIP-1164, DisklessCommitFile).

What a coordinator refuses stays in the file, unreferenced. A file of which nothing was accepted is recorded as well:
its owners have to know it, or nobody but the search for orphans would delete it.
"""

from __future__ import annotations

from tieredctl_proposals.coordinator.apply import NO_TIMESTAMP
from tieredctl_proposals.coordinator.pending import PendingPartition, PendingState
from tieredctl_proposals.coordinator.producers import RememberedBatch
from tieredctl_proposals.model.diskless_records import (
    LOG_APPEND_TIME,
    NO_PRODUCER,
    CommittedBatch,
    DisklessRecord,
    FileCommitted,
    together,
)
from tieredctl_proposals.model.diskless_requests import (
    BatchResult,
    CommitBatch,
    CommitFile,
    CommittedFile,
    KafkaError,
    Refusal,
)

_LAST_OFFSET = (1 << 63) - 2
"""So that the high watermark fits, too."""


def check_commit(
    state: PendingState, request: CommitFile, *, coordinator_id: int, broker_id: int, now_ms: int
) -> tuple[list[DisklessRecord], CommittedFile]:
    """The record to append, none where the file is refused as a whole, and a result for each batch in turn."""
    refusal = request.refusal(coordinator_id)
    if refusal is None and state.has_file(request.object_key):
        # The same answer as the first time would need what was refused then, which is not kept.
        refusal = Refusal(KafkaError.DUPLICATE_RESOURCE, "the file was committed already")
    if refusal is not None:
        return [], CommittedFile((BatchResult(*refusal),) * len(request.batches))
    accepted: list[CommittedBatch] = []
    results = tuple(_check_batch(state, batch, now_ms, accepted) for batch in request.batches)
    record = FileCommitted(
        object_key=request.object_key,
        object_format=request.object_format,
        file_size=request.file_size,
        uploader_broker_id=broker_id,
        owner_ids=request.owner_ids,
        batches=together(accepted),
    )
    return [record], CommittedFile(results)


def _check_batch(state: PendingState, batch: CommitBatch, now_ms: int, accepted: list[CommittedBatch]) -> BatchResult:
    topic = state.topic(batch.topic_id)
    if topic is None:
        return BatchResult(KafkaError.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(batch.partition)
    if partition is None:
        return BatchResult(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    base = partition.high_watermark
    last = base + batch.last_offset - batch.base_offset
    if last > _LAST_OFFSET:
        return BatchResult(KafkaError.INVALID_REQUEST, "the partition has no more offsets")
    appended_ms = now_ms if batch.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
    if batch.producer_id != NO_PRODUCER:
        otherwise = _check_producer(state, partition, batch, base, appended_ms)
        if otherwise is not None:
            return otherwise
    partition.high_watermark = last + 1
    state.changed(batch.topic_id)
    accepted.append(_committed(batch, base, last, now_ms))
    return BatchResult(KafkaError.NONE, None, base, appended_ms, partition.log_start_offset)


def _check_producer(
    state: PendingState, partition: PendingPartition, batch: CommitBatch, base: int, appended_ms: int
) -> BatchResult | None:
    """What stands in the way of a batch; None where nothing does, and it is remembered."""
    epoch, first, last = batch.producer_epoch, batch.base_sequence, batch.last_sequence
    producer = state.producer(partition, batch.producer_id)
    if producer is not None:
        same = producer.duplicate(epoch, first, last)
        if same is not None:
            earlier = same.base_offset, same.log_append_timestamp_ms, partition.log_start_offset
            return BatchResult(KafkaError.NONE, None, *earlier, is_duplicate=True)
        if producer.is_fenced(epoch):
            return BatchResult(KafkaError.INVALID_PRODUCER_EPOCH, f"epoch {epoch} was replaced by {producer.epoch}")
        if not producer.follows(epoch, first):
            return BatchResult(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, f"sequence {first} is not the next one")
    state.remember(partition, batch.producer_id, epoch, RememberedBatch(base, first, last, appended_ms))
    return None


def _committed(batch: CommitBatch, base: int, last: int, now_ms: int) -> CommittedBatch:
    return CommittedBatch(
        batch.topic_id,
        batch.partition,
        batch.magic,
        batch.byte_offset,
        batch.byte_size,
        base,
        last,
        now_ms,
        batch.batch_max_timestamp_ms,
        batch.timestamp_type,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
    )
