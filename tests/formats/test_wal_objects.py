"""Combined objects: plain record batches, of which the first says where each segment is."""

from __future__ import annotations

import pytest
from tieredctl_proposals.formats.wal_objects import INDEX_HEADER_BYTES, combined_object, index_length, read_index
from tieredctl_proposals.formats.wal_records import encode_wal_event

from tests.metadata_logs import COPIED
from tests.wal_histories import OTHER, combined_started, combined_updated, entry
from tieredctl.errors import DecodeError
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import Record, encode_batch


def batches(first: int, count: int) -> bytes:
    return b"".join(encode_batch([Record(first + n, 1, None, b"value")]) for n in range(count))


SEGMENTS = [batches(0, 3), batches(70, 1)]
UPLOADED, DATA = combined_object(combined_started([entry(0), entry(1, partition=OTHER)]), SEGMENTS, 5)


def test_each_segment_is_where_its_entry_says_both_ends_inclusive() -> None:
    parts = [DATA[one.start_file_position : one.end_file_position + 1] for one in UPLOADED.entries]

    assert parts == SEGMENTS
    assert UPLOADED.entries[-1].end_file_position == len(DATA) - 1
    assert UPLOADED.state is COPIED


def test_the_object_alone_tells_what_its_metadata_tells() -> None:
    length = index_length(DATA[:INDEX_HEADER_BYTES])

    assert length == UPLOADED.entries[0].start_file_position
    assert read_index(DATA[:length]) == UPLOADED


def test_the_whole_object_is_record_batches() -> None:
    blocks = list(scan_log([DATA], len(DATA), OneByOne()))

    assert not any(isinstance(block, Damage) for block in blocks)
    headers = [header for block in blocks if not isinstance(block, Damage) for header in block.headers]
    assert [header.is_control for header in headers] == [True, False, False, False, False]


def test_an_object_of_the_proposals_own_form_has_data_alone() -> None:
    assert index_length(b"".join(SEGMENTS)) is None


@pytest.mark.parametrize("position", range(0, UPLOADED.entries[0].start_file_position, 7))
def test_no_damaged_index_is_believed(position: int) -> None:
    damaged = bytearray(DATA[: UPLOADED.entries[0].start_file_position])
    damaged[position] ^= 0xFF
    outside_the_crc = range(8), range(12, 16)  # base offset and leader epoch, which decide nothing here

    if any(position in fields for fields in outside_the_crc):
        assert read_index(bytes(damaged)) == UPLOADED
    else:
        with pytest.raises(DecodeError):
            read_index(bytes(damaged))


def test_an_index_cut_short_is_not_believed() -> None:
    with pytest.raises(DecodeError, match="the index ends after 100 of"):
        read_index(DATA[:100])


def test_another_control_batch_is_not_an_index() -> None:
    abort = encode_batch([Record(0, 0, b"\0\0\0\0", b"")], attributes=1 << 5)
    started = encode_wal_event(combined_started([entry(0)]))
    begun = encode_batch([Record(0, 0, b"\0\0\x04\x98", started)], attributes=1 << 5)
    elsewhere = encode_wal_event(combined_updated([entry(0, 0, 99)], COPIED))
    misplaced = encode_batch([Record(0, 0, b"\0\0\x04\x98", elsewhere)], attributes=1 << 5)

    for batch, reason in ((abort, "not an index"), (begun, "not about an uploaded"), (misplaced, "begins at 0")):
        with pytest.raises(DecodeError, match=reason):
            read_index(batch)
