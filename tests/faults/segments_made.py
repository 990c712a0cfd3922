"""The segments that faults are put into, by what is particular about them."""

from __future__ import annotations

from tests.faults.segment_writer import Indexing, SegmentWriter, WrittenSegment
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import ControlType


def indexed_by_batch(start_offset: int = 1_000) -> WrittenSegment:
    """40 batches of 3 records and some 1,900 bytes: Kafka 4 indexes every third."""
    writer = SegmentWriter(start_offset)
    for _ in range(40):
        writer.append(writer.data(3, 600))
    return writer.close()


def large_batches(start_offset: int = 1_000) -> WrittenSegment:
    """12 batches of 5 records and some 10,000 bytes: every one is indexed but the first."""
    writer = SegmentWriter(start_offset)
    for _ in range(12):
        writer.append(writer.data(5, 2_000))
    return writer.close()


def follower_before_4_0(start_offset: int = 1_000) -> WrittenSegment:
    """What a follower of 3.9 wrote: appends of 1 to 9 batches, so that an entry names the end of its append."""
    writer = SegmentWriter(start_offset, indexing=Indexing.BY_APPEND)
    for number in range(24):
        writer.append(*(writer.data(3, 600) for _ in range(1 + number * 7 % 9)))
    return writer.close()


def several_epochs(start_offset: int = 1_000) -> WrittenSegment:
    """30 batches of three leaders, the first of whom began before the segment."""
    writer = SegmentWriter(start_offset, leader_epoch=4, epochs_before=((0, 0), (2, 700)))
    for number in range(30):
        if number in (10, 20):
            writer.begin_epoch(writer.leader_epoch + 2)
        writer.append(writer.data(2, 700, codec=Codec.ZSTD if number % 2 else Codec.NONE))
    return writer.close()


def transactions(start_offset: int = 1_000) -> WrittenSegment:
    """Two producers whose transactions interleave, with three aborts and one that is still open at the end."""
    writer = SegmentWriter(start_offset)
    for outcome in (ControlType.ABORT, ControlType.COMMIT, ControlType.ABORT):
        writer.append(writer.data(2, 900, producer=71))
        writer.append(writer.data(1, 900, producer=72))
        writer.append(writer.data(4, 900))
        writer.append(writer.data(2, 900, producer=71))
        writer.append(writer.marker(71, outcome))
        writer.append(writer.data(1, 900, producer=72))
        writer.append(writer.marker(72, ControlType.ABORT if outcome is ControlType.COMMIT else ControlType.COMMIT))
    writer.append(writer.data(1, 900, producer=72))
    return writer.close()


def single_batch(start_offset: int = 39) -> WrittenSegment:
    """The smallest there is: one batch, an empty offset index, a time index of one entry."""
    writer = SegmentWriter(start_offset)
    writer.append(writer.data(4, 50))
    return writer.close()


def all_shapes() -> dict[str, WrittenSegment]:
    """Each shape by its name."""
    makers = (indexed_by_batch, large_batches, follower_before_4_0, several_epochs, transactions, single_batch)
    return {maker.__name__: maker() for maker in makers}
