"""Any event of `__remote_wal_log_metadata`."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hypothesis import strategies as st
from tieredctl_proposals.model.wal_events import (
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    RemoteWalLogSegmentMetadata,
    RemoteWalLogSegmentMetadataUpdate,
    WalEvent,
)

from tests.formats.test_event_and_batch_round_trips import INT32, INT64, PARTITIONS, UUID_TEXTS, tagged_fields
from tieredctl.model.events import RemoteLogSegmentState, TaggedField

_SIZES = st.integers(1, 2**31 - 1)
_CUSTOM = st.none() | st.binary(max_size=20)
_SEGMENT_PATHS = ["", "RemoteLogSegmentId", "RemoteLogSegmentId.TopicIdPartition"]


@st.composite
def _common(draw: st.DrawFn, tags: st.SearchStrategy[tuple[TaggedField, ...]]) -> dict[str, Any]:
    return {
        "broker_id": draw(INT32),
        "event_timestamp_ms": draw(INT64),
        "combined_segment_id": draw(UUID_TEXTS),
        "custom_metadata": draw(_CUSTOM),
        "tagged_fields": draw(tags),
    }


@st.composite
def _positions(draw: st.DrawFn, size: int, *, is_placed: bool) -> dict[str, int]:
    if not is_placed:
        return {}
    start = draw(st.integers(0, 2**61))
    return {"start_file_position": start, "end_file_position": start + size - 1}


@st.composite
def _of_segment(draw: st.DrawFn, size: int, state: RemoteLogSegmentState) -> dict[str, Any]:
    is_placed = state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED or draw(st.booleans())
    return draw(_common(st.just(()) | tagged_fields(_SEGMENT_PATHS))) | {
        "topic_id_partition": draw(PARTITIONS),
        "segment_id": draw(UUID_TEXTS),
        "leader_epoch": draw(INT32),
        "combined_coordinator_partition": draw(INT32),
        "state": state,
        **draw(_positions(size, is_placed=is_placed)),
    }


@st.composite
def wal_segments(draw: st.DrawFn) -> WalEvent:
    size, state = draw(_SIZES), draw(st.sampled_from(RemoteLogSegmentState))
    start = draw(st.integers(0, 2**61))
    end = start + draw(st.integers(0, 2**61))
    offsets = sorted({start, *draw(st.sets(st.integers(start, end), max_size=20))})
    epochs = sorted(draw(st.sets(INT32, min_size=len(offsets), max_size=len(offsets))))
    return RemoteWalLogSegmentMetadata(
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=draw(INT64),
        segment_leader_epochs=tuple(zip(epochs, offsets, strict=True)),
        segment_size_in_bytes=size,
        **draw(_of_segment(size, state)),
    )


@st.composite
def wal_updates(draw: st.DrawFn) -> WalEvent:
    state = draw(st.sampled_from(RemoteLogSegmentState))
    return RemoteWalLogSegmentMetadataUpdate(**draw(_of_segment(draw(_SIZES), state)))


@st.composite
def wal_combined(draw: st.DrawFn) -> WalEvent:
    state = draw(st.sampled_from(RemoteLogSegmentState))
    sizes = draw(st.lists(_SIZES, min_size=1, max_size=12))
    is_placed = state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED or draw(st.booleans())
    entries = tuple(
        RemoteLogSegmentMetadataEntry(
            topic_id_partition=draw(PARTITIONS),
            segment_id=draw(UUID_TEXTS),
            start_file_position=end - size if is_placed else -1,
            end_file_position=end - 1 if is_placed else -1,
        )
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    )
    paths = ["", *(f"RemoteLogSegmentMetadataEntries[{number}]" for number in range(min(len(entries), 2)))]
    fields = draw(_common(st.just(()) | tagged_fields(paths))) | {"entries": entries, "state": state}
    if draw(st.booleans()):
        return RemoteWalCombinedLogSegmentMetadata(**fields)
    return RemoteWalCombinedLogSegmentMetadataUpdate(**fields)


WAL_EVENTS = st.one_of(wal_segments(), wal_updates(), wal_combined())
