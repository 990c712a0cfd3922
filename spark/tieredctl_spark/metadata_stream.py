"""`remote_log_metadata` and `tiered_findings` as streams: every row once, in micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.metadata.stretches import METADATA_TOPIC, MetadataSource, OffsetRange, end_offsets, stretches
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_rows import MetadataRows
from tieredctl_spark.metadata_shares import MOST_OFFSETS, Share, demand_same_topic
from tieredctl_spark.stream_offsets import admitted, next_offsets, offset_document
from tieredctl_spark.worker_failures import one_sentence

_TOPIC_ID = "metadataTopicId"


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from the beginning of the topic on. An offset of the stream is the id of the topic, and for each metadata
    partition the offset of the record that comes next.

    Findings are about records that cannot be decoded, and about damage, when reading comes to it; what is wrong with
    a log as a whole, such as records that compaction removed, the batch reader tells.
    """

    def __init__(self, place: MetadataPlace, rows: MetadataRows, most_rows: int | None) -> None:
        self._place = place
        self._rows = rows
        self._most_rows = most_rows
        self._source: MetadataSource | None = None
        self._ends: dict[int, int] = {}
        self._is_bounded = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The first offsets that the logs hold."""
        with one_sentence():
            source = self._opened()
            starts = {number: source.offset_range(number).start for number in self._numbers(source)}
            return _document(source.metadata_topic_id, starts)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The option `max-rows-per-batch`."""
        return ReadAllAvailable() if self._most_rows is None else ReadMaxRows(self._most_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as a batch from `start` on may go."""
        with one_sentence():
            if not self._is_bounded:
                self._look()
            topic_id = self._opened().metadata_topic_id
            demand_same_topic(topic_id, start[_TOPIC_ID])
            begins = self._begins(start)
            self._demand_ends(begins)
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            return _document(start[_TOPIC_ID] or topic_id, admitted(begins, self._ends, most))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the logs ended when they were last looked at."""
        return _document(self._opened().metadata_topic_id, self._ends) if self._ends else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Where the logs end now is where the query will."""
        with one_sentence():
            self._look()
            self._is_bounded = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with one_sentence():
            source = self._opened()
            topic_id = start[_TOPIC_ID]
            demand_same_topic(source.metadata_topic_id, topic_id)
            begins, shares = self._begins(start), []
            for number, last in next_offsets(end).items():
                first = begins.get(number, last)
                for stretch in stretches(source, number, MOST_OFFSETS):
                    within = max(first, stretch.start), min(last, stretch.end)
                    if within[0] < within[1]:
                        planned = OffsetRange(*within)
                        shares.append(
                            Share(number, *planned, is_exact=True, metadata_topic_id=topic_id, planned=planned)
                        )
            return [InputPartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from self._rows.batches(self._place, partition.value)

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()

    def _numbers(self, source: MetadataSource) -> list[int]:
        one = self._rows.wanted.metadata_partition
        return [number for number in source.metadata_partitions() if one in (None, number)]

    def _opened(self) -> MetadataSource:
        if self._source is None:
            self._source = self._place.open_source()
        return self._source

    def _look(self) -> None:
        source = self._opened()
        if source.advance() or not self._ends:
            self._ends = end_offsets(source)

    def _begins(self, start: dict[str, Any]) -> dict[int, int]:
        """Where each metadata partition continues. Raises TieredctlError `unreadable` where what comes next is gone."""
        source, begins = self._opened(), next_offsets(start)
        for number in self._numbers(source):
            log_start = source.offset_range(number).start
            wanted = begins.setdefault(number, log_start)
            if wanted < log_start:
                message = f"{METADATA_TOPIC}-{number} lost its records from offset {wanted} to {log_start - 1} unread."
                raise _lost(message)
        return begins

    def _demand_ends(self, begins: Mapping[int, int]) -> None:
        """Raises TieredctlError `unreadable` where records are gone that were read: others may take their offsets."""
        for number, begin in begins.items():
            if self._ends.get(number, -1) < begin and self._rows.wanted.metadata_partition in (None, number):
                where = f"ends at offset {self._ends[number]}" if number in self._ends else "is gone"
                raise _lost(f"{METADATA_TOPIC}-{number} {where}, but it was read up to offset {begin}.")


def _lost(message: str) -> TieredctlError:
    hint = "Begin again with a new checkpoint: what was lost is unknown from here on."
    return TieredctlError(ErrorCode.UNREADABLE, f"{message} {hint}", hint=hint)


def _document(topic_id: str | None, offsets: Mapping[int, int]) -> dict[str, Any]:
    return offset_document({_TOPIC_ID: topic_id}, offsets)
