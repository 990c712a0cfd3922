"""What a coordinator should do, as plainly as it can be said: the oracle of its property tests.

It holds everything in dictionaries, applies requests at once, and shares no code with what it tries.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from tieredctl_proposals.model.diskless_requests import (
    BatchesResult,
    BatchQuery,
    BatchResult,
    CommitBatch,
    CommitFile,
    CreatePartitions,
    DeleteRecords,
    DeleteTopics,
    FileResult,
    FindBatches,
    FoundBatch,
    KafkaError,
    OffsetQuery,
    OffsetResult,
    RecordsResult,
    TopicResult,
)

Error = KafkaError


@dataclass
class ModelBatch:
    batch_id: int
    key: str
    asked: CommitBatch
    base: int
    last: int
    appended_ms: int

    @property
    def time_ms(self) -> int:
        return self.appended_ms if self.asked.timestamp_type else self.asked.batch_max_timestamp_ms

    def found(self) -> FoundBatch:
        asked = self.asked
        where = (self.batch_id, self.key, 2, asked.byte_offset, asked.byte_size, self.base, self.last)
        return FoundBatch(*where, self.appended_ms, asked.batch_max_timestamp_ms, asked.timestamp_type)


@dataclass
class ModelPartition:
    start: int = 0
    end: int = 0
    batches: list[ModelBatch] = field(default_factory=list)
    produced: dict[int, list[ModelBatch]] = field(default_factory=dict)
    """All that each producer ever sent."""

    def remembered(self, producer_id: int) -> list[ModelBatch]:
        """The last five of its latest epoch."""
        sent = self.produced.get(producer_id, [])
        latest = max((batch.asked.producer_epoch for batch in sent), default=-1)
        return [batch for batch in sent if batch.asked.producer_epoch == latest][-5:]


@dataclass
class ModelFile:
    request: CommitFile
    broker_id: int
    committed_ms: int
    released_ms: int | None


@dataclass
class ModelCoordinator:
    names: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], ModelPartition] = field(default_factory=dict)
    files: dict[str, ModelFile] = field(default_factory=dict)
    batches_so_far: int = 0

    def copy(self) -> ModelCoordinator:
        copied: ModelCoordinator = pickle.loads(pickle.dumps(self))
        return copied

    def create_partitions(self, request: CreatePartitions, now_ms: int) -> list[Error]:
        return [self._create(*topic) for topic in request.topics]

    def _create(self, topic_id: str, name: str, number: int) -> Error:
        if number < 1:
            return Error.INVALID_PARTITIONS
        if self.names.setdefault(topic_id, name) != name:
            return Error.INCONSISTENT_TOPIC_ID
        for partition in range(number):
            self.partitions.setdefault((topic_id, partition), ModelPartition())
        return Error.NONE

    def delete_topics(self, request: DeleteTopics, now_ms: int) -> list[TopicResult]:
        results = []
        for topic_id in request.topic_ids:
            known = self.names.pop(topic_id, None) is not None
            results.append(TopicResult(topic_id, Error.NONE if known else Error.UNKNOWN_TOPIC_ID))
            self.partitions = {key: value for key, value in self.partitions.items() if key[0] != topic_id}
        self._release(now_ms)
        return results

    def delete_records(self, request: DeleteRecords, now_ms: int) -> list[tuple[Error, int]]:
        results = []
        for topic_id, number, offset in request.partitions:
            partition = self.partitions.get((topic_id, number))
            if partition is None:
                results.append((self._unknown(topic_id), -1))
                continue
            start = partition.end if offset == -1 else offset
            if not 0 <= start <= partition.end:
                results.append((Error.OFFSET_OUT_OF_RANGE, -1))
                continue
            partition.start = max(partition.start, start)
            partition.batches = [batch for batch in partition.batches if batch.last >= partition.start]
            results.append((Error.NONE, partition.start))
        self._release(now_ms)
        return results

    def commit_file(self, request: CommitFile, broker_id: int, now_ms: int) -> list[tuple[Any, ...]]:
        """Error, assigned offset, append time, log start offset and whether it is a duplicate, of each batch."""
        if not request.owner_ids or request.batches[0].byte_size == 0:
            return [(Error.INVALID_REQUEST, -1, -1, -1, False)] * len(request.batches)
        if request.object_key in self.files:
            return [(Error.DUPLICATE_RESOURCE, -1, -1, -1, False)] * len(request.batches)
        taken: list[ModelBatch] = []
        results = [self._commit(request.object_key, batch, now_ms, taken) for batch in request.batches]
        places = list(dict.fromkeys((batch.asked.topic_id, batch.asked.partition) for batch in taken))
        topics = list(dict.fromkeys(topic for topic, _ in places))
        places.sort(key=lambda place: topics.index(place[0]))
        for topic_id, number in places:
            for batch in taken:
                if (batch.asked.topic_id, batch.asked.partition) == (topic_id, number):
                    batch.batch_id = self.batches_so_far
                    self.batches_so_far += 1
        self.files[request.object_key] = ModelFile(request, broker_id, now_ms, None if taken else now_ms)
        return results

    def _commit(self, key: str, asked: CommitBatch, now_ms: int, taken: list[ModelBatch]) -> tuple[Any, ...]:
        partition = self.partitions.get((asked.topic_id, asked.partition))
        if partition is None:
            return (self._unknown(asked.topic_id), -1, -1, -1, False)
        if asked.producer_id >= 0:
            remembered = partition.remembered(asked.producer_id)
            latest = remembered[-1].asked.producer_epoch if remembered else -1
            for one in remembered:
                same = one.asked.base_sequence, one.asked.last_sequence, one.asked.producer_epoch
                if same == (asked.base_sequence, asked.last_sequence, asked.producer_epoch):
                    time_ms = one.appended_ms if one.asked.timestamp_type else -1
                    return (Error.NONE, one.base, time_ms, partition.start, True)
            if asked.producer_epoch < latest:
                return (Error.INVALID_PRODUCER_EPOCH, -1, -1, -1, False)
            if remembered:
                expected = 0
                if asked.producer_epoch == latest:
                    before = remembered[-1].asked.last_sequence
                    expected = 0 if before == 2**31 - 1 else before + 1
                if asked.base_sequence != expected:
                    return (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, -1, -1, False)
        base = partition.end
        partition.end = base + asked.last_offset - asked.base_offset + 1
        batch = ModelBatch(-1, key, asked, base, partition.end - 1, now_ms)
        taken.append(batch)
        partition.batches.append(batch)
        if asked.producer_id >= 0:
            partition.produced.setdefault(asked.producer_id, []).append(batch)
        return (Error.NONE, base, now_ms if asked.timestamp_type else -1, partition.start, False)

    def list_offset(self, query: OffsetQuery) -> OffsetResult:
        topic_id, number, timestamp_ms = query
        partition = self.partitions.get((topic_id, number))
        if partition is None:
            return OffsetResult(topic_id, number, self._unknown(topic_id))
        match timestamp_ms:
            case -1:
                return OffsetResult(topic_id, number, offset=partition.end)
            case -2 | -4:
                return OffsetResult(topic_id, number, offset=partition.start)
            case -5:
                return OffsetResult(topic_id, number)
        if timestamp_ms == -3:
            newest = max(partition.batches, key=lambda batch: batch.time_ms, default=None)
            answer = (newest.time_ms, newest.last) if newest else (-1, -1)
        else:
            late = next((batch for batch in partition.batches if batch.time_ms >= timestamp_ms), None)
            answer = (late.time_ms, max(late.base, partition.start)) if late else (-1, -1)
        return OffsetResult(topic_id, number, timestamp_ms=answer[0], offset=answer[1])

    def find_batches(self, request: FindBatches) -> list[BatchesResult]:
        results: list[BatchesResult] = []
        spent = 0
        for query in request.partitions:
            results.append(self._find(query, request, spent))
            spent += sum(batch.byte_size for batch in results[-1].batches)
        return results

    def _find(self, query: BatchQuery, request: FindBatches, spent: int) -> BatchesResult:
        partition = self.partitions.get((query.topic_id, query.partition))
        if partition is None:
            return BatchesResult(query.topic_id, query.partition, self._unknown(query.topic_id))
        if query.offset < partition.start or query.offset > partition.end:
            return BatchesResult(
                query.topic_id, query.partition, Error.OFFSET_OUT_OF_RANGE, partition.start, partition.end
            )
        chosen: list[FoundBatch] = []
        here = 0
        for batch in partition.batches:
            if batch.last < query.offset:
                continue
            size = batch.asked.byte_size
            fits = here + size <= query.max_partition_fetch_bytes and spent + here + size <= request.fetch_max_bytes
            if not fits and spent + here > 0:
                break
            chosen.append(batch.found())
            here += size
            if not fits or len(chosen) == request.max_batches_per_partition:
                break
        return BatchesResult(query.topic_id, query.partition, Error.NONE, partition.start, partition.end, tuple(chosen))

    def describe_file(self, key: str) -> FileResult:
        file = self.files.get(key)
        if file is None:
            return FileResult(key, Error.RESOURCE_NOT_FOUND)
        return FileResult(key, has_live_batches=file.released_ms is None)

    def live(self, key: str) -> int:
        """How many live batches a file has."""
        return sum(batch.key == key for partition in self.partitions.values() for batch in partition.batches)

    def contents(self) -> dict[str, Any]:
        """Everything, in the form of `state_contents`."""
        partitions = {}
        for (topic_id, number), partition in self.partitions.items():
            producers = {}
            for producer_id in partition.produced:
                producers[producer_id] = [
                    (one.asked.producer_epoch, one.base, one.asked.base_sequence, one.asked.last_sequence)
                    for one in partition.remembered(producer_id)
                ]
            batches = [batch.found() for batch in partition.batches]
            name = self.names[topic_id]
            partitions[topic_id, number] = (name, partition.start, partition.end, batches, producers)
        files = {
            key: (
                file.request.file_size,
                file.broker_id,
                file.request.owner_ids,
                file.committed_ms,
                self.live(key),
                file.released_ms,
            )
            for key, file in self.files.items()
        }
        return {"partitions": partitions, "files": files, "next batch": self.batches_so_far}

    def _release(self, now_ms: int) -> None:
        for key, file in self.files.items():
            if file.released_ms is None and not self.live(key):
                file.released_ms = now_ms

    def _unknown(self, topic_id: str) -> Error:
        return Error.UNKNOWN_TOPIC_OR_PARTITION if topic_id in self.names else Error.UNKNOWN_TOPIC_ID


def batch_answers(results: tuple[BatchResult, ...]) -> list[tuple[Any, ...]]:
    """Results in the form of the model's."""
    return [(one.error, *one[2:]) for one in results]


def records_answers(results: tuple[RecordsResult, ...]) -> list[tuple[Error, int]]:
    """Results in the form of the model's."""
    return [(one.error, one.low_watermark) for one in results]
