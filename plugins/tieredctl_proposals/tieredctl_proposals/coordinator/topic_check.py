"""What creating partitions, deleting topics and deleting records come to: the records to append, and the answers."""

from __future__ import annotations

from tieredctl_proposals.coordinator.pending import PendingState
from tieredctl_proposals.model.diskless_records import DisklessRecord, PartitionCreated, RecordsDeleted, TopicDeleted
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    CreatablePartitions,
    CreatedPartitions,
    CreatePartitions,
    DeletableRecords,
    DeletedRecords,
    DeletedTopics,
    DeleteRecords,
    DeleteTopics,
    KafkaError,
    RecordsResult,
    Refusal,
    TopicResult,
)

MOST_PARTITIONS = 10_000
"""Of a topic in one request: as many as Kafka's controller creates at once."""
Records = list[DisklessRecord]


def check_create_partitions(state: PendingState, request: CreatePartitions) -> tuple[Records, CreatedPartitions]:
    """Creates those of a topic's partitions 0, 1, … that are not there: a request that is repeated creates no more."""
    records: Records = []
    results = []
    for wanted in request.topics:
        refusal = _cannot_create(state, wanted)
        if refusal is None:
            topic = state.topic(wanted.topic_id)
            missing = sorted(set(range(wanted.partitions)).difference(topic.partitions if topic else ()))
            topic_id, name, _ = wanted
            records += [PartitionCreated(topic_id=topic_id, topic=name, partition=number) for number in missing]
            state.create(topic_id, name, missing)
        results.append(TopicResult(wanted.topic_id, *refusal or ()))
    return records, CreatedPartitions(tuple(results))


def check_delete_topics(state: PendingState, request: DeleteTopics) -> tuple[Records, DeletedTopics]:
    """Deletes topics with all their partitions and batches."""
    records: Records = []
    results = []
    for topic_id in request.topic_ids:
        if state.topic(topic_id) is None:
            results.append(TopicResult(topic_id, KafkaError.UNKNOWN_TOPIC_ID))
            continue
        state.delete(topic_id)
        records.append(TopicDeleted(topic_id=topic_id))
        results.append(TopicResult(topic_id))
    return records, DeletedTopics(tuple(results))


def check_delete_records(state: PendingState, request: DeleteRecords) -> tuple[Records, DeletedRecords]:
    """Moves log start offsets forward, never back; LATEST deletes what pending commits added, too."""
    records: Records = []
    results = tuple(_delete_records(state, each, records) for each in request.partitions)
    return records, DeletedRecords(results)


def _cannot_create(state: PendingState, wanted: CreatablePartitions) -> Refusal | None:
    refusal = wanted.refusal()
    if refusal is not None:
        return refusal
    if wanted.partitions > MOST_PARTITIONS:
        return Refusal(KafkaError.INVALID_PARTITIONS, f"{wanted.partitions} partitions are too many at once")
    topic = state.topic(wanted.topic_id)
    if topic is not None and topic.name != wanted.topic:
        return Refusal(KafkaError.INCONSISTENT_TOPIC_ID, f"the topic's name is {topic.name}")
    return None


def _delete_records(state: PendingState, asked: DeletableRecords, records: Records) -> RecordsResult:
    topic_id, number, offset = asked
    topic = state.topic(topic_id)
    if topic is None:
        return RecordsResult(topic_id, number, error=KafkaError.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(number)
    if partition is None:
        return RecordsResult(topic_id, number, error=KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    start = partition.high_watermark if offset == LATEST else offset
    if not 0 <= start <= partition.high_watermark:
        message = f"the partition's offsets end at {partition.high_watermark}"
        return RecordsResult(topic_id, number, error=KafkaError.OFFSET_OUT_OF_RANGE, message=message)
    if start > partition.log_start_offset:
        partition.log_start_offset = start
        state.changed(topic_id)
        records.append(RecordsDeleted(topic_id=topic_id, partition=number, log_start_offset=start))
    return RecordsResult(topic_id, number, partition.log_start_offset)
