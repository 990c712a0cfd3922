"""What coordinators answer by their logs (KIP-1164): DisklessListOffsets, DisklessFindBatches, DisklessDescribeFiles.

Each is asked of the coordinators whose logs are here, or of one of them. A coordinator whose log is not whole answers
nothing, and what only it may know is unknown. The proposal's requests have no isolation level: it leaves transactions
to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl_proposals.model.diskless_records import LOG_APPEND_TIME
from tieredctl_proposals.model.diskless_requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    UNKNOWN,
    BatchesResult,
    BatchQuery,
    DescribeFiles,
    FindBatches,
    FoundBatch,
    KafkaError,
    ListOffsets,
    OffsetQuery,
)
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs
from tieredctl_proposals.ops.diskless.logged_coordinators import LoggedCoordinator, logged_coordinators

_NO_LIMIT = (1 << 31) - 1
_BATCHES_AT_ONCE = 10_000
_UNANSWERED = KafkaError.COORDINATOR_NOT_AVAILABLE.name
_SPECIAL = {
    "earliest": EARLIEST,
    "earliestLocal": EARLIEST_LOCAL,
    "latestTiered": LATEST_TIERED,
    "latest": LATEST,
    "maxTimestampOffset": MAX_TIMESTAMP,
}
"""What is asked for each partition, by its name in a row."""
AT_TIME, AT_TIME_MS = "offsetAtTime", "timestampAtTime"
"""The offset for a time, and the time of the batch that it is of."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of one answer; None does not limit it."""

    max_bytes: int | None = None
    """The first batch is in the answer however large it is."""
    max_batches: int | None = None


class CoordinatorAnswers:
    """What is asked of the coordinators of some logs, once; to be closed."""

    def __init__(self, logs: CoordinatorLogs, folder: Path, only: int | None = None) -> None:
        """`folder` is for their states; `only` is the one coordinator that is asked."""
        self._logs, self._folder, self._only = logs, folder, only
        self._read: list[Document] = []
        self._kept = ExitStack()

    def close(self) -> None:
        """Removes the states that are left."""
        self._kept.close()

    @property
    def findings(self) -> list[Finding]:
        """What the logs lack."""
        return self._logs.findings

    @property
    def is_complete(self) -> bool:
        """Whether they lack nothing, once all were read."""
        return not any(finding.kind.incomplete for finding in self.findings)

    def coordinators(self) -> list[Document]:
        """How far each log was read, and when its last record was appended."""
        return self._read

    def offsets(self, selection: Selection, time_ms: int | None) -> list[Document]:
        """A row for each partition, with its offset for a time where one is given. An offset is null where there is
        none; `errors` has those that are unknown.

        Raises TieredctlError `unknown-topic` for what no coordinator has.
        """
        asked = _SPECIAL if time_ms is None else {**_SPECIAL, AT_TIME: time_ms}
        named: list[TopicIdPartition] = []
        rows: list[Document] = []
        for coordinator in self._each():
            with closing(coordinator):
                partitions = coordinator.partitions()
                named += partitions
                rows += (_offsets_row(coordinator, one, asked) for one in partitions if selection.has(one))
        self._demand_known(selection, named)
        return sorted(rows, key=lambda row: (row["topic"], row["topicId"], row["partition"], row["metadataPartition"]))

    def batches(self, selection: Selection, offset: int | None, limits: BatchLimits) -> FoundPartition | None:
        """The one partition that is selected, ready to be asked for its batches from an offset on, or from its log
        start; None where none of the coordinators whose logs are whole has it.

        Raises TieredctlError `unknown-topic` where no coordinator has it, and `ambiguous-topic` where several topics
        with that name have it, or several coordinators.
        """
        named: list[TopicIdPartition] = []
        matches: list[tuple[LoggedCoordinator, TopicIdPartition]] = []
        for coordinator in self._each():
            with ExitStack() as held:
                held.callback(coordinator.close)
                partitions = coordinator.partitions()
                named += partitions
                here = [one for one in partitions if selection.has(one)] if coordinator.is_whole else []
                matches += ((coordinator, one) for one in here)
                if here:
                    self._kept.push(held.pop_all())
        self._demand_known(selection, named)
        if len({one.topic_id for _, one in matches}) > 1:
            ids = ", ".join(sorted({one.topic_id for _, one in matches}))
            message = f"Several topics are called {matches[0][1].topic}: {ids}."
            raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message)
        if len(matches) > 1:
            numbers = ", ".join(str(coordinator.number) for coordinator, _ in matches)
            message = f"Several coordinators have {matches[0][1].topic}:{matches[0][1].partition}: {numbers}."
            raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message, hint="Choose one with --metadata-partition.")
        return FoundPartition(*matches[0], offset, limits) if matches else None

    def files(self, object_keys: Sequence[str]) -> list[Document]:
        """A row for each file: which coordinators have live batches in it, and which only know it."""
        files = {key: _File(key) for key in object_keys}
        request = DescribeFiles(tuple(files))
        for coordinator in self._each():
            with closing(coordinator):
                for described in coordinator.describe_files(request).files if coordinator.is_whole else ():
                    if described.error is KafkaError.NONE:
                        file = files[described.object_key]
                        (file.live_at if described.has_live_batches else file.known_at).append(coordinator.number)
        return [file.document(is_complete=self.is_complete) for file in files.values()]

    def _each(self) -> Iterator[LoggedCoordinator]:
        for coordinator in logged_coordinators(self._logs, self._folder, self._only):
            newest_ms = self._logs.newest_ms.get(coordinator.number)
            self._read.append(
                {
                    "metadataPartition": coordinator.number,
                    "endOffset": self._logs.source.offset_range(coordinator.number).end,
                    "lastRecordAt": None if newest_ms is None or newest_ms < 0 else iso_8601(newest_ms),
                    "complete": coordinator.is_whole,
                }
            )
            yield coordinator

    def _demand_known(self, selection: Selection, named: Sequence[TopicIdPartition]) -> None:
        """What no log names may be what one of them lacks."""
        if self.is_complete:
            whose = (
                "The coordinators' logs do not" if self._only is None else f"Coordinator {self._only}'s log does not"
            )
            hint = "List all partitions with `tieredctl diskless offsets`."
            selection.demand_known(named, f"{whose} have", hint)


class FoundPartition:
    """A partition and the coordinator that has it, as DisklessFindBatches answers."""

    def __init__(
        self, coordinator: LoggedCoordinator, partition: TopicIdPartition, offset: int | None, limits: BatchLimits
    ) -> None:
        """`offset` is where to begin; None for the log start."""
        self.partition = partition
        self._coordinator, self._limits = coordinator, limits
        if offset is None:
            asked = OffsetQuery(partition.topic_id, partition.partition, EARLIEST)
            offset = coordinator.list_offsets(ListOffsets((asked,))).partitions[0].offset
        self.offset = offset
        self._first = self._ask(offset)
        self._batches = self._bytes = 0

    @property
    def error(self) -> KafkaError:
        """Why there are no batches: OFFSET_OUT_OF_RANGE before the log start, and OFFSET_NOT_AVAILABLE after the high
        watermark, where the coordinator may have some by now."""
        return self._first.error

    def documents(self) -> Iterator[Document]:
        """The batches, by offset: as many as one answer has where limits were given, else all."""
        answer = self._first
        while answer.batches:
            for batch in answer.batches:
                self._batches += 1
                self._bytes += batch.byte_size
                yield _batch_document(batch)
            if self._limits != BatchLimits():
                return
            answer = self._ask(answer.batches[-1].last_offset + 1)

    def summary(self) -> Document:
        """Where the partition's log begins and ends, and what of it was shown."""
        return {
            **partition_document(self.partition),
            "metadataPartition": self._coordinator.number,
            "offset": self.offset,
            "error": None if self.error is KafkaError.NONE else self.error.name,
            "logStartOffset": self._first.log_start_offset,
            "highWatermark": self._first.high_watermark,
            "batches": self._batches,
            "bytes": self._bytes,
        }

    def _ask(self, offset: int) -> BatchesResult:
        most_bytes, most_batches = self._limits.max_bytes or _NO_LIMIT, self._limits.max_batches
        if self._limits == BatchLimits():
            most_batches = _BATCHES_AT_ONCE
        asked = BatchQuery(self.partition.topic_id, self.partition.partition, offset, most_bytes)
        (answer,) = self._coordinator.find_batches(FindBatches(most_bytes, most_batches or 0, (asked,))).partitions
        return answer


@dataclass(slots=True)
class _File:
    """What coordinators whose logs are whole say of a file."""

    object_key: str
    live_at: list[int] = field(default_factory=list)
    known_at: list[int] = field(default_factory=list)
    """Where it was committed, and has no live batch."""

    def document(self, *, is_complete: bool) -> Document:
        """Without a live batch it is only known to have none where every log is whole."""
        has_live_batches, error = None, None
        if self.live_at:
            has_live_batches = True
        elif not is_complete:
            error = _UNANSWERED
        elif self.known_at:
            has_live_batches = False
        else:
            error = KafkaError.RESOURCE_NOT_FOUND.name
        return {
            "objectKey": self.object_key,
            "hasLiveBatches": has_live_batches,
            "error": error,
            "liveAt": self.live_at,
            "releasedAt": self.known_at,
        }


def _offsets_row(coordinator: LoggedCoordinator, partition: TopicIdPartition, asked: Mapping[str, int]) -> Document:
    row: Document = {**partition_document(partition), "metadataPartition": coordinator.number}
    if not coordinator.is_whole:
        return row | dict.fromkeys(asked) | {AT_TIME_MS: None, "errors": dict.fromkeys(asked, _UNANSWERED)}
    queries = (OffsetQuery(partition.topic_id, partition.partition, time_ms) for time_ms in asked.values())
    listed = coordinator.list_offsets(ListOffsets(tuple(queries))).partitions
    answers = dict(zip(asked, listed, strict=True))
    for name, answer in answers.items():
        row[name] = None if answer.offset == UNKNOWN else answer.offset
    timed = answers.get(AT_TIME)
    row[AT_TIME_MS] = None if timed is None or timed.offset == UNKNOWN else timed.timestamp_ms
    return row | {"errors": {name: answer.error.name for name, answer in answers.items() if answer.error}}


def _batch_document(batch: FoundBatch) -> Document:
    """By the names of the answer's fields."""
    return {
        "batchId": batch.batch_id,
        "objectKey": batch.object_key,
        "magic": batch.magic,
        "byteOffset": batch.byte_offset,
        "byteSize": batch.byte_size,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "logAppendTimestamp": batch.log_append_timestamp_ms,
        "batchMaxTimestamp": batch.batch_max_timestamp_ms,
        "timestampType": "LogAppendTime" if batch.timestamp_type == LOG_APPEND_TIME else "CreateTime",
    }
