"""What brokers ask a diskless coordinator, and what it answers (KIP-1164, Diskless coordinator API).

Values say what a request says, possible or not. `refusal` tells what is wrong with one whatever the coordinator's state
is. Offsets are inclusive where nothing else is said, sizes and positions are bytes, times are milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from tieredctl_proposals.model.diskless_records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_PRODUCER,
    WRITE_AHEAD_MULTI_SEGMENT,
)

DEFAULT_TIMEOUT_MS = 60_000
MAGIC = 2
"""The magic of record batches, the only format that has producers and headers; older ones are not taken."""
UNKNOWN = -1
"""An offset or time of an answer that has none."""
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""What may be asked for instead of a timestamp."""
_LARGEST_OFFSET_DELTA = 2**31 - 1
_SEQUENCES = 2**31
_TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z", re.ASCII)


class KafkaError(IntEnum):
    """The error codes of a coordinator's answers, by the names of Kafka's `Errors`."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    OFFSET_NOT_AVAILABLE = 78
    INVALID_RECORD = 87
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103


class Refusal(NamedTuple):
    """Why a request, or one thing in it, is refused."""

    error: KafkaError
    message: str


class CreatablePartitions(NamedTuple):
    """A topic, and how many partitions it is to have: those that it has already are left as they are."""

    topic_id: str
    topic: str
    partitions: int

    def refusal(self) -> Refusal | None:
        if not _TOPIC_NAME.match(self.topic):
            return Refusal(KafkaError.INVALID_TOPIC_EXCEPTION, f"{self.topic!r} cannot be a topic's name")
        if self.partitions < 1:
            return Refusal(KafkaError.INVALID_PARTITIONS, f"{self.partitions} partitions cannot be created")
        return None


class CreatePartitions(NamedTuple):
    """DisklessCreatePartitions."""

    topics: tuple[CreatablePartitions, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class TopicResult(NamedTuple):
    """What became of a topic's creation or deletion."""

    topic_id: str
    error: KafkaError = KafkaError.NONE
    message: str | None = None


class CreatedPartitions(NamedTuple):
    """The answer to CreatePartitions."""

    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


class DeleteTopics(NamedTuple):
    """DisklessDeleteTopics."""

    topic_ids: tuple[str, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class DeletedTopics(NamedTuple):
    """The answer to DeleteTopics."""

    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


class CommitBatch(NamedTuple):
    """A record batch to be committed, with the offsets that it has in the file. The four fields of the producer are
    NO_PRODUCER where it has none."""

    topic_id: str
    partition: int
    byte_offset: int
    byte_size: int
    base_offset: int
    last_offset: int
    batch_max_timestamp_ms: int
    timestamp_type: int = CREATE_TIME
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_PRODUCER
    last_sequence: int = NO_PRODUCER
    magic: int = MAGIC
    request_id: int = 0
    """The id of the Produce request that it came in."""

    def refusal(self, file_size: int) -> Refusal | None:
        """What no batch of a file of that size can be."""
        wrong = self._wrong(file_size)
        return None if wrong is None else Refusal(KafkaError.INVALID_REQUEST, wrong)

    def _wrong(self, file_size: int) -> str | None:
        start, end = self.byte_offset, self.byte_offset + self.byte_size
        if self.partition < 0:
            return f"has partition {self.partition}"
        if not 0 <= start < end <= file_size:
            return f"has bytes {start} to {end} of a file of {file_size}"
        delta = self.last_offset - self.base_offset
        if self.base_offset < 0 or not 0 <= delta <= _LARGEST_OFFSET_DELTA:
            return f"has offsets {self.base_offset} to {self.last_offset}"
        if self.magic != MAGIC or self.timestamp_type not in (CREATE_TIME, LOG_APPEND_TIME):
            return f"has magic {self.magic} and timestamp type {self.timestamp_type}"
        producer = (self.producer_id, self.producer_epoch, self.base_sequence, self.last_sequence)
        if set(producer) == {NO_PRODUCER}:
            return None
        if min(producer) < 0 or self.last_sequence != (self.base_sequence + delta) % _SEQUENCES:
            return "has producer {}, epoch {}, sequences {} to {}".format(*producer)
        return None


class CommitFile(NamedTuple):
    """DisklessCommitFile. Which broker uploaded it, the request does not say: the connection does."""

    object_key: str
    file_size: int
    owner_ids: tuple[int, ...]
    """The coordinators that are sent commits of this file, in the order in which they are to own it."""
    batches: tuple[CommitBatch, ...]
    object_format: int = WRITE_AHEAD_MULTI_SEGMENT
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def refusal(self, coordinator_id: int) -> Refusal | None:
        """What makes this coordinator refuse the file as a whole. One impossible batch does: then nothing that the
        broker says of the file can be relied on."""
        wrong = self._wrong(coordinator_id)
        return None if wrong is None else Refusal(KafkaError.INVALID_REQUEST, wrong)

    def _wrong(self, coordinator_id: int) -> str | None:
        owners = self.owner_ids
        if not self.object_key or self.file_size < 0:
            return "a file has a key and a size"
        if self.object_format != WRITE_AHEAD_MULTI_SEGMENT:
            return f"format {self.object_format} is not known"
        if len({*owners}) < len(owners) or min(owners, default=-1) < 0:
            return f"{list(owners)} are not owners, each named once"
        if coordinator_id not in owners:
            return f"coordinator {coordinator_id} is not one of the owners {list(owners)}"
        for number, batch in enumerate(self.batches):
            refusal = batch.refusal(self.file_size)
            if refusal is not None:
                return f"batch {number} {refusal.message}"
        return "batches overlap in the file" if _overlap(self.batches) else None


class BatchResult(NamedTuple):
    """What became of a batch."""

    error: KafkaError = KafkaError.NONE
    message: str | None = None
    assigned_base_offset: int = UNKNOWN
    log_append_time_ms: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    is_duplicate: bool = False
    """Whether it was committed before; the offset is the one that it got then."""


class CommittedFile(NamedTuple):
    """The answer to CommitFile: a result for each batch, in its order."""

    batches: tuple[BatchResult, ...]
    throttle_time_ms: int = 0


class DeletableRecords(NamedTuple):
    """A partition, and the offset below which its records are to go."""

    topic_id: str
    partition: int
    offset: int
    """Exclusive; LATEST for the high watermark, as Kafka's DeleteRecords has it."""


class DeleteRecords(NamedTuple):
    """DisklessDeleteRecords."""

    partitions: tuple[DeletableRecords, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class RecordsResult(NamedTuple):
    """What became of a partition's records."""

    topic_id: str
    partition: int
    low_watermark: int = UNKNOWN
    """The log start offset that it has now."""
    error: KafkaError = KafkaError.NONE
    message: str | None = None


class DeletedRecords(NamedTuple):
    """The answer to DeleteRecords."""

    partitions: tuple[RecordsResult, ...]
    throttle_time_ms: int = 0


class OffsetQuery(NamedTuple):
    """Asks for the first offset of a partition whose record is at least as late."""

    topic_id: str
    partition: int
    timestamp_ms: int
    """Or one of LATEST … LATEST_TIERED."""

    def refusal(self) -> Refusal | None:
        if self.timestamp_ms < LATEST_TIERED:
            return Refusal(KafkaError.UNSUPPORTED_VERSION, f"timestamp {self.timestamp_ms} has no meaning")
        return None


class ListOffsets(NamedTuple):
    """DisklessListOffsets."""

    partitions: tuple[OffsetQuery, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class OffsetResult(NamedTuple):
    """The offset that was asked for; UNKNOWN where there is none."""

    topic_id: str
    partition: int
    error: KafkaError = KafkaError.NONE
    message: str | None = None
    timestamp_ms: int = UNKNOWN
    offset: int = UNKNOWN


class ListedOffsets(NamedTuple):
    """The answer to ListOffsets."""

    partitions: tuple[OffsetResult, ...]
    throttle_time_ms: int = 0


class BatchQuery(NamedTuple):
    """Asks for the batches of a partition from the one that holds an offset."""

    topic_id: str
    partition: int
    offset: int
    max_partition_fetch_bytes: int


class FindBatches(NamedTuple):
    """DisklessFindBatches."""

    fetch_max_bytes: int
    """The most bytes of all partitions together."""
    max_batches_per_partition: int
    partitions: tuple[BatchQuery, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class FoundBatch(NamedTuple):
    """Where a batch is."""

    batch_id: int
    object_key: str
    magic: int
    byte_offset: int
    byte_size: int
    base_offset: int
    last_offset: int
    log_append_timestamp_ms: int
    batch_max_timestamp_ms: int
    timestamp_type: int


class BatchesResult(NamedTuple):
    """A partition's batches."""

    topic_id: str
    partition: int
    error: KafkaError = KafkaError.NONE
    log_start_offset: int = UNKNOWN
    high_watermark: int = UNKNOWN
    batches: tuple[FoundBatch, ...] = ()


class FoundBatches(NamedTuple):
    """The answer to FindBatches."""

    partitions: tuple[BatchesResult, ...]
    throttle_time_ms: int = 0


class DescribeFiles(NamedTuple):
    """DisklessDescribeFiles."""

    object_keys: tuple[str, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class FileResult(NamedTuple):
    """Whether a file still has live batches at this coordinator."""

    object_key: str
    error: KafkaError = KafkaError.NONE
    message: str | None = None
    has_live_batches: bool = False


class DescribedFiles(NamedTuple):
    """The answer to DescribeFiles."""

    files: tuple[FileResult, ...]
    throttle_time_ms: int = 0


DisklessRequest = (
    CreatePartitions | DeleteTopics | CommitFile | DeleteRecords | ListOffsets | FindBatches | DescribeFiles
)
DisklessResponse = (
    CreatedPartitions | DeletedTopics | CommittedFile | DeletedRecords | ListedOffsets | FoundBatches | DescribedFiles
)


def _overlap(batches: Sequence[CommitBatch]) -> bool:
    spans = sorted((batch.byte_offset, batch.byte_offset + batch.byte_size) for batch in batches)
    return any(end > start for (_, end), (start, _) in pairwise(spans))
