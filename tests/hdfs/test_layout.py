"""The layout of Uber's HDFSRemoteStorageManager."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

import pytest
from tieredctl_hdfs.header import HEADER_BYTES, decode_header, encode_header
from tieredctl_hdfs.layout import HdfsLayout

from tests.hdfs.segment_files import segment_file
from tieredctl.errors import DecodeError
from tieredctl.ports.layout import UNNAMED_OFFSET, ExplainedKey, Part, SegmentIdentity
from tieredctl.storage.memory import MemoryStore
from tieredctl.testing.layouts import SEGMENT, CopySegment, LayoutContract

TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
POSITIONS = (25, 33, 45, 60, 60, 94)
"""Of an offset index of 8 bytes, a time index of 12, leader epochs of 15, no snapshot, a transaction index of 34."""
HEADER = pack(">b6i", 0, *POSITIONS)


class TestLayout(LayoutContract):
    @pytest.fixture
    def layout(self) -> HdfsLayout:
        return HdfsLayout()

    @pytest.fixture
    def copy_segment(self, layout: HdfsLayout) -> CopySegment:
        def copied(store: MemoryStore, segment: SegmentIdentity, parts: Mapping[Part, bytes]) -> None:
            store.put(layout.promised_objects(segment)[Part.LOG], segment_file(parts))

        return copied


def test_a_segment_is_one_file_under_its_id() -> None:
    key = f"a-1-7-{TOPIC_ID}/{SEGMENT_ID}"

    explained = HdfsLayout().explain(key)

    assert explained == ExplainedKey("a-1", TOPIC_ID, 7, UNNAMED_OFFSET, SEGMENT_ID, Part.LOG)
    assert HdfsLayout().promised_objects(explained) == {Part.LOG: key}


def test_the_header_is_a_byte_of_version_and_six_positions() -> None:
    sizes = {Part.OFFSET_INDEX: 8, Part.TIME_INDEX: 12, Part.LEADER_EPOCH: 15, Part.TRANSACTION_INDEX: 34, Part.LOG: 99}

    assert encode_header(sizes) == HEADER
    assert decode_header(HEADER, 193) == {
        Part.OFFSET_INDEX: (25, 33),
        Part.TIME_INDEX: (33, 45),
        Part.LEADER_EPOCH: (45, 60),
        Part.PRODUCER_SNAPSHOT: (60, 60),
        Part.TRANSACTION_INDEX: (60, 94),
        Part.LOG: (94, 193),
    }


def test_what_is_wrong_is_named_with_its_byte() -> None:
    def with_position(number: int, value: int) -> bytes:
        return pack(">b6i", 0, *(value if place == number else at for place, at in enumerate(POSITIONS)))

    wrong = {
        "an empty file": (b"", 0, 0),
        "a cut header": (HEADER[:24], 24, 24),
        "another version": (b"\x01" + HEADER[1:], 193, 0),
        "a gap behind the header": (with_position(0, 26), 193, 1),
        "a position that goes back": (with_position(2, 32), 193, 9),
        "a negative one": (with_position(5, -1), 193, 21),
        "an index beyond the end": (HEADER, 50, 13),
        "a log beyond the end": (HEADER, 93, 21),
    }
    for name, (data, size, position) in wrong.items():
        with pytest.raises(DecodeError) as raised:
            decode_header(data, size)
        assert (name, raised.value.position) == (name, position)


def test_of_a_file_that_is_cut_in_its_log_the_rest_is_read() -> None:
    store, layout = MemoryStore(), HdfsLayout()
    whole = segment_file({Part.OFFSET_INDEX: b"12345678", Part.LOG: b"0123456789"})
    store.put(layout.promised_objects(SEGMENT)[Part.LOG], whole[:-4])

    reader = layout.open_segment(store, SEGMENT)

    assert (reader.parts()[Part.LOG], reader.read(Part.LOG, 2)) == (6, b"2345")
    assert len(whole) == HEADER_BYTES + 18
