"""The coordinator of one partition of `__diskless_metadata`: takes operations, and answers them once replicated.

KIP-1164, "How operations are performed": checked against what is pending, appended, awaited, applied, answered. Several
operations are under way at once.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, TypeVar

from tieredctl_proposals.coordinator.apply import Applier
from tieredctl_proposals.coordinator.commit_check import check_commit
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord, MetadataLog, NotLeader
from tieredctl_proposals.coordinator.pending import KEPT_IN_MEMORY, PendingState
from tieredctl_proposals.coordinator.queries import describe_file, find_batches, list_offset
from tieredctl_proposals.model.diskless_records import (
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    CommitFile,
    CommittedFile,
    CreatablePartitions,
    CreatedPartitions,
    CreatePartitions,
    DeletableRecords,
    DeletedRecords,
    DeletedTopics,
    DeleteRecords,
    DeleteTopics,
    DescribedFiles,
    DescribeFiles,
    FindBatches,
    FoundBatches,
    KafkaError,
    ListedOffsets,
    ListOffsets,
    RecordsResult,
    Refusal,
    TopicResult,
)

T = TypeVar("T")


class NotCoordinator(Exception):
    """This broker no longer leads the log (NOT_COORDINATOR). What was appended and not answered may have been done, or
    not: whoever asked has to ask the new leader again."""


@dataclass(eq=False)
class Operation(Generic[T]):
    """What was asked, until it is answered."""

    end: int
    """The answer waits until everything before this offset of the log has been applied."""
    _answer: Callable[[], T]
    _answered: T | None = None
    _is_over: bool = False
    _refused: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is an answer, or never will be one."""
        return self._is_over

    @property
    def answer(self) -> T:
        """The answer of an operation that is over. Raises NotCoordinator if the log was lost before it was known."""
        if self._refused:
            raise NotCoordinator
        if not self._is_over:
            raise ValueError("the operation is pending")
        return self._answered  # type: ignore[return-value] # None only where T is

    def finish(self) -> None:
        """What it waited for has been applied."""
        self._answered = self._answer()
        self._is_over = True

    def refuse(self) -> None:
        """What it waits for will not be applied here."""
        self._is_over = self._refused = True


class Loading(Exception):
    """The log has records that were appended before this broker led it, and are not known to be replicated yet
    (COORDINATOR_LOAD_IN_PROGRESS): nothing can be checked until they are."""


class Coordinator:
    """The leader. Used by one thread at a time, and given up after NotCoordinator or DoesNotFit."""

    def __init__(
        self,
        coordinator_id: int,
        log: MetadataLog,
        connection: sqlite3.Connection,
        now_ms: Callable[[], int],
        kept_in_memory: int = KEPT_IN_MEMORY,
    ) -> None:
        """Leads by a state that `recovery.py` opened. `kept_in_memory`: how many partitions and producers, besides
        those of which something is pending."""
        self.coordinator_id = coordinator_id
        self._log = log
        self._connection = connection
        self._now_ms = now_ms
        self._applier = Applier(connection)
        self._pending = PendingState(connection, kept_in_memory)
        self._operations: deque[Operation[Any]] = deque()
        self._appended: deque[LoggedRecord] = deque()
        """What was appended here; the first of it may have been applied."""
        self._found_end = log.end_offset
        self._is_leader = True

    def create_partitions(self, request: CreatePartitions) -> Operation[CreatedPartitions]:
        """DisklessCreatePartitions."""
        return self._perform(lambda _: check_create_partitions(self._pending, request))

    def delete_topics(self, request: DeleteTopics) -> Operation[DeletedTopics]:
        """DisklessDeleteTopics."""
        return self._perform(lambda _: check_delete_topics(self._pending, request))

    def delete_records(self, request: DeleteRecords) -> Operation[DeletedRecords]:
        """DisklessDeleteRecords."""
        return self._perform(lambda _: check_delete_records(self._pending, request))

    def commit_file(self, request: CommitFile, broker_id: int) -> Operation[CommittedFile]:
        """DisklessCommitFile, from the broker that uploaded the file."""
        return self._perform(
            lambda now_ms: check_commit(
                self._pending, request, coordinator_id=self.coordinator_id, broker_id=broker_id, now_ms=now_ms
            )
        )

    def list_offsets(self, request: ListOffsets) -> Operation[ListedOffsets]:
        """DisklessListOffsets, after everything that was asked before."""
        return self._ask(
            lambda: ListedOffsets(tuple(list_offset(self._connection, each) for each in request.partitions))
        )

    def describe_files(self, request: DescribeFiles) -> Operation[DescribedFiles]:
        """DisklessDescribeFiles, after everything that was asked before: a file whose commit is pending is known."""
        return self._ask(
            lambda: DescribedFiles(tuple(describe_file(self._connection, key) for key in request.object_keys))
        )

    def find_batches(self, request: FindBatches) -> FoundBatches:
        """DisklessFindBatches: at once, of what has been applied."""
        self._demand_leadership()
        return find_batches(self._connection, request)

    def poll(self) -> int:
        """Applies what has been replicated, and answers what waited for it. Returns how many operations are pending.

        Raises DoesNotFit where the log is not what was appended, and what SQLite raises; nothing is answered then.
        """
        high_watermark = self._log.high_watermark
        if high_watermark > self._applier.next_offset:
            self._applier.catch_up(self._replicated(high_watermark))
            self._pending.applied(self._applier.next_offset)
        while self._operations and self._operations[0].end <= self._applier.next_offset:
            self._operations[0].finish()
            self._operations.popleft()
        return len(self._operations)

    def resign(self) -> None:
        """Another leads the log: nothing that is pending will be answered here."""
        self._is_leader = False
        while self._operations:
            self._operations.popleft().refuse()

    def _perform(self, check: Callable[[int], tuple[list[DisklessRecord], T]]) -> Operation[T]:
        self._demand_leadership()
        if self._applier.next_offset < self._found_end:
            raise Loading
        now_ms = self._now_ms()
        try:
            records, result = check(now_ms)
            first = self._log.append(records, now_ms) if records else 0
        except NotLeader:
            self.resign()
            raise NotCoordinator from None
        except BaseException:
            self.resign()  # what is pending in memory may differ from what is in the log
            raise
        self._appended.extend(LoggedRecord(first + at, now_ms, record) for at, record in enumerate(records))
        end = self._log.end_offset
        self._pending.appended(end, (record.object_key for record in records if isinstance(record, FileCommitted)))
        return self._await(Operation(end, lambda: result))

    def _replicated(self, high_watermark: int) -> Iterator[LoggedRecord]:
        if self._applier.next_offset < self._found_end:
            return self._log.read(self._applier.next_offset)
        while self._appended and self._appended[0].offset < self._applier.next_offset:
            self._appended.popleft()
        return takewhile(lambda logged: logged.offset < high_watermark, self._appended)

    def _ask(self, question: Callable[[], T]) -> Operation[T]:
        self._demand_leadership()
        return self._await(Operation(self._log.end_offset, question))

    def _await(self, operation: Operation[T]) -> Operation[T]:
        self._operations.append(operation)
        return operation

    def _demand_leadership(self) -> None:
        if not self._is_leader:
            raise NotCoordinator


MOST_PARTITIONS = 10_000
"""The most partitions of a topic in one request: as many as Kafka's controller creates at once."""
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
