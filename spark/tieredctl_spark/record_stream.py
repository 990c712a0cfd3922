"""`tiered_log` as a stream: every record once, in micro-batches, as copies to remote storage finish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.stretches import MetadataSource
from tieredctl.records.request import GREATEST_OFFSET
from tieredctl.wiring.records import topic_records
from tieredctl_spark.record_ends import Readable, readable
from tieredctl_spark.record_rows import LogQuery, note_in_log
from tieredctl_spark.record_shares import place_offset, record_shares
from tieredctl_spark.stream_offsets import admitted, next_offsets, offset_document
from tieredctl_spark.worker_failures import one_sentence

_TOPIC_ID = "topicId"


@dataclass(frozen=True, slots=True)
class _Look:
    """What remote storage had of the topic."""

    topic_id: str
    partitions: Mapping[int, Readable]
    findings: Sequence[Finding]

    @property
    def is_in_doubt(self) -> bool:
        """Whether more may be readable."""
        return any(one.doubt is not None for one in self.partitions.values())


class RecordStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from the option `from` on. An offset of the stream is the id of the topic, and for each partition the
    offset of the record that comes next; a partition that appears later is read from its first offset in
    remote storage.

    As in Spark's Kafka source, records that are gone before they were read end the query, unless `fail-on-data-loss` is
    false: then it goes on after them, and the log of the driver, or of the executor that found it, says what is
    missing.
    """

    def __init__(self, query: LogQuery, most_offsets: int | None, *, fails_on_loss: bool) -> None:
        self._query = query
        self._rows = query.rows()
        self._most_offsets = most_offsets
        self._fails_on_loss = fails_on_loss
        self._source: MetadataSource | None = None
        self._seen: _Look | None = None
        self._is_bounded = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the option `from` is in each partition; where nothing is there yet, the end."""
        with one_sentence():
            look = self._look()
            return _document(look.topic_id, {number: self._first(one) for number, one in look.partitions.items()})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The option `max-offsets-per-trigger`."""
        return ReadAllAvailable() if self._most_offsets is None else ReadMaxRows(self._most_offsets)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as a batch from `start` on may go. Offsets of control batches and of what compaction removed count for
        the limit."""
        with one_sentence():
            look, begins = self._continued(start)
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            reached = admitted(begins, {number: one.end for number, one in look.partitions.items()}, most)
            for number, begin in begins.items():
                partition = look.partitions.get(number)
                if partition is None:
                    self._absent(look, number, f"{self._named(number)} is gone, but was read up to offset {begin}.")
                elif (end := partition.remote.end_offset) is not None and end < begin:
                    self._lose(f"{self._named(number)} ends at offset {end}, but was read up to offset {begin}.")
                    reached[number] = end
            return _document(look.topic_id, reached)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the readable part ended when it was last looked at."""
        look = self._seen
        if look is None:
            return None
        return _document(look.topic_id, {number: one.end for number, one in look.partitions.items()})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Where the readable part ends now is where the query will."""
        with one_sentence():
            self._look()
            self._is_bounded = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with one_sentence():
            look, begins = self._continued(start, is_planned=True)
            shares = []
            for number, until in next_offsets(end).items():
                begin = begins.get(number, 0)
                if until <= begin:
                    continue
                if number not in look.partitions:
                    gone = f"{self._named(number)} is gone: offsets {begin} to {until - 1} were not read."
                    self._absent(look, number, gone, is_planned=True)
                    continue
                partition = look.partitions[number]
                self._demand_there(number, partition, begin, until)
                asked = replace(self._query.request, start=begin, end=min(until, partition.end))
                shares += record_shares(partition.remote, *self._rows.remote, asked, look.findings, continues=True)
            goes_on = not self._fails_on_loss
            return [InputPartition(replace(share, passes_over_deleted=goes_on)) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from self._rows.batches(partition.value)

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()

    def _look(self) -> _Look:
        """The metadata is read again where it has news, or where more may be readable than was."""
        if self._source is None:
            self._source = self._query.metadata.open_source()
        if (before := self._seen) is not None and (
            self._is_bounded or not (self._source.advance() or before.is_in_doubt)
        ):
            return before
        query, (store, layout) = self._query, self._rows.remote
        with topic_records(query.metadata, query.store, query.selection) as topic:
            found = {
                one.partition.partition: readable(one, store, layout, query.request.isolation)
                for one in topic.partitions
            }
            self._seen = _Look(topic.partitions[0].partition.topic_id, found, topic.findings)
        for number, one in found.items():
            known = None if before is None else before.partitions.get(number)
            if one.doubt is not None and (known is None or known.doubt != one.doubt):
                note_in_log(f"{self._named(number)} is read up to offset {one.end} for now: {one.doubt.message}")
        return self._seen

    def _continued(self, start: dict[str, Any], *, is_planned: bool = False) -> tuple[_Look, dict[int, int]]:
        """What is there, and where each partition continues. Raises TieredctlError `world-changed` where the topic was
        recreated. What was planned needs no newer look than the one by which it was."""
        look = self._seen if is_planned and self._seen is not None else self._look()
        if look.topic_id != start[_TOPIC_ID]:
            topic = self._query.selection.topics[0]
            message = f"{topic} was deleted and recreated: its id is {look.topic_id} now, and was {start[_TOPIC_ID]}."
            hint = "Begin again with a new checkpoint."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{message} {hint}", hint=hint)
        return look, {number: one.first for number, one in look.partitions.items()} | next_offsets(start)

    def _first(self, partition: Readable) -> int:
        request = self._query.request
        first = place_offset(request.start, partition.remote, *self._rows.remote, request) or 0
        if partition.end < first <= GREATEST_OFFSET:
            number = partition.remote.partition.partition
            self._lose(f"{self._named(number)} ends at offset {partition.end}, before offset {first}.")
        return max(partition.first, min(first, partition.end))

    def _demand_there(self, number: int, partition: Readable, begin: int, until: int) -> None:
        for first, last in partition.gone(begin, until):
            self._lose(f"{self._named(number)} lost its records from offset {first} to {last} unread.")
        if partition.end >= until:
            return
        message = f"{self._named(number)} can be read up to offset {partition.end}, but was up to {until}."
        if (partition.remote.end_offset or 0) >= until:
            hint = "Nothing is gone: run it again once the producer snapshots in remote storage can be read."
            raise TieredctlError(ErrorCode.UNREADABLE, f"{message} {hint}", hint=hint)
        self._lose(message)

    def _named(self, number: int) -> str:
        return f"{self._query.selection.topics[0]}-{number}"

    def _absent(self, look: _Look, number: int, message: str, *, is_planned: bool = False) -> None:
        """A partition of which the metadata has no event: gone, as the message says, unless events may be missing. Then
        it is read once they are there again, and raises TieredctlError `metadata-incomplete` where the query would pass
        over what was planned, or does not go on after a loss."""
        if not look.findings:
            self._lose(message)
            return
        doubt = look.findings[0]
        why = f"{doubt.code}: {doubt.subject}: {doubt.message}"
        message = f"{self._named(number)} is not in the metadata, of which a part may be missing: {why}."
        if not (self._fails_on_loss or is_planned):
            note_in_log(message)
            return
        hint = "Nothing is passed over: run it again once all metadata is there."
        raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, f"{message} {hint}", hint=hint)

    def _lose(self, message: str) -> None:
        """Raises TieredctlError `unreadable`, unless the query is to go on: then the driver's log has the message."""
        if not self._fails_on_loss:
            note_in_log(message)
            return
        hint = "Set failOnDataLoss to false to go on after it, or begin again with a new checkpoint."
        raise TieredctlError(ErrorCode.UNREADABLE, f"{message} {hint}", hint=hint)


def _document(topic_id: str, offsets: Mapping[int, int]) -> dict[str, Any]:
    return offset_document({_TOPIC_ID: topic_id}, offsets)
