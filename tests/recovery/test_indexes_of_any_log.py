"""Rebuilding a log in pieces, or as several segments, comes to what rebuilding it at once does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.index_columns import IndexBuilder
from tieredctl.formats.indexes import encode_offset_index, encode_time_index, encode_transaction_index
from tieredctl.formats.log_scan import LogBlock, scan_log
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.producer_state import ProducerState
from tieredctl.formats.record_batches import ControlType
from tieredctl.ports.layout import Part

PRODUCERS = (7, 8, 9)

plain = st.tuples(st.just("plain"), st.integers(1, 5), st.integers(-2_000, 2_000))
sent = st.tuples(st.just("sent"), st.sampled_from(PRODUCERS), st.integers(1, 4))
ended = st.tuples(st.sampled_from([ControlType.ABORT, ControlType.COMMIT]), st.sampled_from(PRODUCERS), st.just(0))
histories = st.lists(st.one_of(plain, sent, ended), min_size=1, max_size=60)


def written(history: Sequence[tuple[object, int, int]], interval: int) -> WrittenSegment:
    """A segment from offset 0: what a broker writes whose producers do this one after another."""
    writer = SegmentWriter(index_interval_bytes=interval)
    begun: set[int] = set()
    for what, number, detail in history:
        if what == "plain":
            writer.timestamp = max(writer.timestamp + detail, 0)
            writer.append(writer.data(number, 50))
        elif what == "sent":
            writer.append(writer.data(detail, 50, producer=number))
            begun.add(number)
        elif number in begun:
            assert isinstance(what, ControlType)
            writer.append(writer.marker(number, what))
    if not writer.next_offset:
        writer.append(writer.data())
    return writer.close()


def blocks(log: bytes, piece_bytes: int | None = None) -> Iterator[LogBlock[HeaderColumns]]:
    size = piece_bytes or len(log)
    for block in scan_log((log[at : at + size] for at in range(0, len(log), size)), len(log), AsColumns()):
        assert isinstance(block, LogBlock)
        yield block


@given(history=histories, interval=st.integers(0, 2_000), piece_bytes=st.integers(50, 3_000))
def test_indexes_of_a_log_in_pieces_are_what_a_broker_writes(
    history: Sequence[tuple[object, int, int]], interval: int, piece_bytes: int
) -> None:
    segment = written(history, interval)
    builder = IndexBuilder(0, interval)

    for block in blocks(segment.parts[Part.LOG], piece_bytes):
        builder.feed(np.asarray(block.positions) + block.file_position, block.headers)

    assert encode_offset_index(builder.offset_index()) == segment.parts[Part.OFFSET_INDEX]
    assert encode_time_index(builder.time_index()) == segment.parts[Part.TIME_INDEX]


@given(history=histories, cut=st.integers(0, 60))
def test_producers_of_a_log_in_two_segments_are_those_of_the_whole(
    history: Sequence[tuple[object, int, int]], cut: int
) -> None:
    segment = written(history, 4_096)
    log = segment.parts[Part.LOG]
    at = [batch.position for batch in segment.batches][min(cut, len(segment.batches) - 1)]
    first = ProducerState([])

    for block in blocks(log[:at]) if at else ():
        first.feed(block)
    second = ProducerState(first.entries())
    for block in blocks(log[at:]):
        second.feed(block)

    aborted = [*first.aborted, *second.aborted]
    snapshot = read_producer_snapshot(segment.parts[Part.PRODUCER_SNAPSHOT])
    assert encode_transaction_index(aborted) == segment.parts.get(Part.TRANSACTION_INDEX, b"")
    assert [one.producer_id for one in second.entries()] == sorted(one.producer_id for one in snapshot)
    assert [one.current_txn_first_offset for one in second.entries()] == [
        one.current_txn_first_offset for one in sorted(snapshot)
    ]
