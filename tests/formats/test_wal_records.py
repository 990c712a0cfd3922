"""Events of `__remote_wal_log_metadata` (KIP-1176), whose wire form is tieredctl's choice: docs/wal.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from tieredctl_proposals.formats.wal_records import decode_wal_event, encode_wal_event
from tieredctl_proposals.model.wal_events import FileRange, WalEvent

from tests.formats.wal_event_strategies import WAL_EVENTS
from tests.metadata_logs import COPIED, started
from tests.wal_histories import combined_started, combined_updated, entry, wal_started, wal_updated
from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_records import decode_event, encode_event


@given(WAL_EVENTS)
def test_what_is_written_is_read_again(event: WalEvent) -> None:
    value = encode_wal_event(event)

    assert decode_wal_event(value) == event
    assert encode_wal_event(decode_wal_event(value)) == value


def test_the_form_is_kafkas_flexible_encoding_in_the_frame_of_remote_log_metadata() -> None:
    value = encode_wal_event(combined_started([entry(7)], event_timestamp_ms=1))

    topic = b"\x02t" + bytes.fromhex("00112233445566778899aabbccddeeff") + bytes(4) + b"\0"
    segment = topic + (7).to_bytes(16) + b"\0" + b"\xff" * 16 + b"\0"
    assert value == (
        b"\x01\x66\x00" + (1 << 64).to_bytes(16) + b"\x02" + segment + b"\0" + b"\0" + (1).to_bytes(4)
        + (1).to_bytes(8) + b"\0"
    )  # fmt: skip


def test_segments_have_the_ids_of_remote_log_metadata_byte_for_byte() -> None:
    ours, kip_405s = encode_wal_event(wal_started(7, 0, 9)), encode_event(started(7, 0, 9))

    length = len(b"\x02t") + 16 + 4 + 1 + 16 + 1
    assert ours[3 : 3 + length] == kip_405s[3 : 3 + length]
    assert ours[3 + length :].startswith(bytes(8) + (9).to_bytes(8))


@pytest.mark.parametrize("event", [wal_started(0, 0, 9), wal_updated(0, COPIED), combined_started([entry(0)])])
def test_neither_topic_takes_an_event_of_the_other(event: WalEvent) -> None:
    with pytest.raises(DecodeError, match="apiKey"):
        decode_event(encode_wal_event(event))
    with pytest.raises(DecodeError, match="apiKey"):
        decode_wal_event(encode_event(started(0, 0, 9)))


def test_remote_wal_storage_manager_fetch_log_segment_both_positions_are_inclusive() -> None:
    assert FileRange(start_file_position=10, end_file_position=10).size == 1
    assert FileRange().size == 0


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: wal_started(0, 5, 4), "offsets 5 to 4"),
        (lambda: wal_started(0, -1, 4), "offsets -1 to 4"),
        (lambda: wal_started(0, 0, 4, segment_leader_epochs=()), "no segment leader epochs"),
        (lambda: wal_started(0, 0, 4, segment_leader_epochs=((1, 0), (1, 2))), "do not rise"),
        (lambda: wal_started(0, 2, 4, segment_leader_epochs=((1, 3),)), "from offset 3 of offsets from 2"),
        (lambda: wal_started(0, 2, 4, segment_leader_epochs=((1, 0),)), "from offset 0 of offsets from 2"),
        (lambda: wal_started(0, 2, 4, segment_leader_epochs=((1, 2), (2, 5))), "up to the end offset"),
        (lambda: wal_started(0, 2, 9, segment_leader_epochs=((1, 2), (2, 5), (3, 4))), "do not rise"),
        (lambda: wal_started(0, 2, 9, segment_leader_epochs=((1, 2), (2, 2))), "do not rise"),
        (lambda: wal_started(0, 0, 4, segment_size_in_bytes=0), "size 0"),
        (lambda: wal_started(0, 0, 4, start_file_position=0, end_file_position=98), "99 bytes for 100"),
        (lambda: wal_updated(0, COPIED, start_file_position=5, end_file_position=4), "positions 5 to 4"),
        (lambda: wal_updated(0, COPIED, start_file_position=-1, end_file_position=-1), "without file positions"),
        (lambda: wal_updated(0, COPIED, start_file_position=-1, end_file_position=4), "positions -1 to 4"),
        (lambda: combined_started([]), "without segments"),
        (lambda: combined_updated([entry(0)], COPIED), "without file positions"),
        (lambda: combined_updated([entry(0, 0, 9), entry(1, 9, 12)], COPIED), "overlap"),
        (lambda: combined_updated([entry(0, 10, 19), entry(1, 0, 9)], COPIED), "not in order"),
    ],
)
def test_what_no_log_or_object_can_have_is_refused(make: Callable[[], WalEvent], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make()


def test_an_impossible_event_on_the_wire_is_undecodable() -> None:
    value = bytearray(encode_wal_event(wal_updated(0, COPIED)))
    end_position = len(value) - 9
    value[end_position : end_position + 8] = (-5).to_bytes(8, signed=True)

    with pytest.raises(DecodeError, match="positions 0 to -5"):
        decode_wal_event(bytes(value))
