"""The contract of a source of metadata (`tieredctl.ports.metadata_source`): the same answers for the same events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Protocol

import pytest

from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.metadata.stretches import NO_END, cut_to, stretch_chunks, stretches
from tieredctl.ports.metadata_source import MetadataSource, OffsetRange
from tieredctl.testing.segments import metadata_of

_PARTITION = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "t", 0)


def _copied(number: int) -> tuple[MetadataEvent, MetadataEvent]:
    """A segment's copy that began and ended."""
    segment_id = uuid_text(number.to_bytes(16))
    finished = RemoteLogSegmentMetadataUpdate(
        topic_id_partition=_PARTITION,
        segment_id=segment_id,
        author=1,
        event_timestamp_ms=0,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )
    return metadata_of(_PARTITION, segment_id, number), finished


EVENTS = [encode_event(event) for number in range(1, 9) for event in _copied(number)]
"""The values of records: 8 segments, one after the other."""
FIRST, SECOND = 0, 1
"""The metadata partitions that are written to."""


class WrittenMetadata(Protocol):
    """A metadata topic that can be written to, and a source that reads it."""

    cluster_id: str
    topic_id: str
    partition_count: int | None
    is_followed: bool
    """Whether the source sees what is written later."""

    def write(self, metadata_partition: int, values: Sequence[bytes]) -> None:
        """Adds records without keys, some to a batch."""
        ...

    def open(self) -> MetadataSource:
        """A source that reads it, which its test closes."""
        ...


def records_of(source: MetadataSource, metadata_partition: int, from_offset: int = 0) -> list[MetadataRecord]:
    """All records of a partition from an offset on."""
    return [record for chunk in source.chunks(metadata_partition, from_offset) for record in chunk.records()]


def findings_of(source: MetadataSource) -> list[Finding]:
    """All that is wrong with what a source reads."""
    chunks: Iterator[RecordChunk] = (one for number in source.metadata_partitions() for one in source.chunks(number))
    return [*source.findings(), *(finding for chunk in chunks for finding in chunk.findings)]


class MetadataSourceContract:
    """To be inherited by the tests of a source, which have a fixture `metadata`: nothing written yet."""

    @pytest.fixture
    def written(self, metadata: WrittenMetadata) -> WrittenMetadata:
        metadata.write(FIRST, EVENTS[:6])
        metadata.write(SECOND, EVENTS[6:9])
        return metadata

    def test_it_tells_whose_metadata_it_is(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            assert source.cluster_id == written.cluster_id
            assert source.metadata_topic_id == written.topic_id
            assert source.partition_count == written.partition_count
            assert source.describe()["clusterId"] == written.cluster_id
            assert source.describe()["metadataTopicId"] == written.topic_id
            assert source.describe()["topicPartitions"] == written.partition_count

    def test_it_gives_every_record_of_each_partition(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            first, second = records_of(source, FIRST), records_of(source, SECOND)

            assert {FIRST, SECOND} <= set(source.metadata_partitions())
            assert source.metadata_partitions() == sorted(source.metadata_partitions())
            assert [(one.offset, one.value) for one in first] == list(enumerate(EVENTS[:6]))
            assert [(one.offset, one.value) for one in second] == list(enumerate(EVENTS[6:9]))
            assert findings_of(source) == []

    def test_reading_twice_gives_the_same(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            assert records_of(source, FIRST) == records_of(source, FIRST) != []

    def test_the_range_of_what_was_read_ends_after_the_last_record(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            for number in source.metadata_partitions():
                records_of(source, number)

            assert source.offset_range(FIRST) == OffsetRange(0, 6)
            assert source.offset_range(SECOND) == OffsetRange(0, 3)
            ends = source.describe()["endOffsets"]
            assert isinstance(ends, dict)
            assert (ends[str(FIRST)], ends[str(SECOND)]) == (6, 3)

    @pytest.mark.parametrize("from_offset", range(8))
    def test_what_is_below_an_offset_is_left_out(self, written: WrittenMetadata, from_offset: int) -> None:
        with closing(written.open()) as source:
            read_records = records_of(source, FIRST, from_offset)

            assert [one.offset for one in read_records] == list(range(from_offset, 6))
            assert source.offset_range(FIRST) == OffsetRange(0, 6)

    @pytest.mark.parametrize("most_offsets", [1, 2, 100])
    def test_stretches_together_hold_every_record_once(self, written: WrittenMetadata, most_offsets: int) -> None:
        with closing(written.open()) as source:
            ranges = stretches(source, FIRST, most_offsets)
            chunks_of_stretches = [list(cut_to(stretch_chunks(source, FIRST, *one), one, [])) for one in ranges]

            records = [record for chunks in chunks_of_stretches for chunk in chunks for record in chunk.records()]
            assert records == records_of(source, FIRST)
            assert ranges[0].start == 0
            assert ranges[-1].end == NO_END

    def test_a_partition_that_is_not_there_is_empty(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            assert records_of(source, 9_999) == []
            assert source.offset_range(9_999) == OffsetRange(0, 0)

    def test_a_look_at_what_did_not_change_tells_so(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            before = records_of(source, FIRST)

            assert not source.advance()
            assert records_of(source, FIRST) == before

    def test_what_is_written_later_is_seen_once_it_looks_again(self, written: WrittenMetadata) -> None:
        with closing(written.open()) as source:
            records_of(source, FIRST)
            written.write(FIRST, EVENTS[6:10])

            went_further = source.advance()
            new = [one.value for one in records_of(source, FIRST, 6)]

            assert went_further == written.is_followed
            assert new == (EVENTS[6:10] if written.is_followed else [])
            assert source.offset_range(FIRST) == OffsetRange(0, 10 if written.is_followed else 6)
            assert not source.advance()

    def test_what_is_written_to_a_partition_that_was_empty_is_seen(self, metadata: WrittenMetadata) -> None:
        metadata.write(FIRST, EVENTS[:1])
        with closing(metadata.open()) as source:
            metadata.write(SECOND, EVENTS[:2])

            went_further = source.advance()

            assert went_further == metadata.is_followed
            assert [one.value for one in records_of(source, SECOND)] == (EVENTS[:2] if went_further else [])

    def test_it_may_be_closed_twice(self, written: WrittenMetadata) -> None:
        source = written.open()
        records_of(source, FIRST)

        source.close()
        source.close()
