"""Any number of segments is asked for by one reading of the metadata, each as if it were the only one."""

from __future__ import annotations

from collections.abc import Sequence

from tests.event_histories import TEMPERS, HistoryInMemory, random_histories
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import uuid_text
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments

NAMES_NONE = uuid_text(b"\xff" * 16)


def test_each_is_what_a_selection_of_it_alone_begins_with() -> None:
    claimed = 0
    for history in (one for temper in TEMPERS for one in random_histories("once", temper, 1_000)):
        state = replayed(EventStream(HistoryInMemory(history)))
        once = SegmentsOnce.of(EventStream(HistoryInMemory(history)))
        ids = sorted({one.metadata.segment_id for _, one in state.known(state.order)})
        for segment_id in (*ids, NAMES_NONE, "no id"):
            claims = [one.metadata for _, one in state.known(segments(state, Selection.of(segment_id=segment_id)))]
            claimed += len(claims) > 1
            assert found_in(once, segment_id) == expected_of(claims), segment_id
    assert claimed


def found_in(once: SegmentsOnce, segment_id: str) -> RemoteLogSegmentMetadata | ErrorCode:
    try:
        return once.finished(segment_id).metadata
    except TieredctlError as error:
        return error.code


def expected_of(claims: Sequence[RemoteLogSegmentMetadata]) -> RemoteLogSegmentMetadata | ErrorCode:
    if not claims:
        return ErrorCode.UNKNOWN_SEGMENT
    is_finished = claims[0].state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    return claims[0] if is_finished else ErrorCode.USAGE
