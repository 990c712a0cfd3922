"""What metadata says in the end of every segment that it ever named: `rlmm.replay` by columns, of states alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.metadata_text_columns import uuid_texts
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import UUID_BYTES, TopicIdPartition
from tieredctl.ops.orphans.segment_events import SegmentEvents
from tieredctl.rlmm.states import segment_may_become

NO_STATE = 4
"""Of a segment that no event could begin, or one that two partitions claim."""
_STATES = tuple(RemoteLogSegmentState)
_GONE = int(RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)


@dataclass(frozen=True, slots=True)
class SegmentStates:
    """A row for each segment, those deleted too. Offsets are inclusive."""

    ids: pa.StringArray
    states: NDArray[np.int8]
    """RemoteLogSegmentState or NO_STATE."""
    owners: Ints
    """Rows of `partitions`."""
    start_offsets: Ints
    metadata_partitions: Ints
    metadata_offsets: Ints
    """Of the last event that the state machine allowed."""
    superseded: Flags
    """Whether the copy began, never ended, and another of the same partition that overlaps it began later."""
    partitions: Sequence[TopicIdPartition]
    partition_deletes: Mapping[int, RemotePartitionDeleteState]
    last_timestamp_ms: int


def segment_states(found: SegmentEvents) -> SegmentStates:
    """Applies each segment's events in their order; what the state machine forbids changes nothing."""
    events = found.table()
    codes, ids = _coded(events["segmentId"])
    order = np.argsort(codes, kind="stable")
    events, codes = events[order], codes[order]
    first = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    allowed = _allowed(events, codes, first)
    begins = np.flatnonzero(first)
    lasts, starts = (_last_of_each(rows, codes, begins) for rows in (allowed, allowed & events["starts"]))
    states = np.where(allowed[lasts], events["state"][lasts], np.int8(NO_STATE))
    shared = codes[1:][(events["partition"][1:] != events["partition"][:-1]) & ~first[1:]]
    states[shared] = NO_STATE
    owners = events["partition"][lasts].astype(np.int64)
    return SegmentStates(
        ids,
        states,
        owners,
        events["startOffset"][starts],
        events["metadataPartition"][lasts].astype(np.int64),
        events["metadataOffset"][lasts],
        _superseded(events[allowed & events["starts"]], states, owners, events[starts]),
        list(found.partitions),
        found.partition_deletes,
        found.last_timestamp_ms,
    )


def _coded(segment_ids: NDArray[np.void]) -> tuple[Ints, pa.StringArray]:
    """Each id's number, by first appearance, and the ids by number, as text."""
    data = np.ascontiguousarray(segment_ids)
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(UUID_BYTES), len(data), [None, pa.py_buffer(data)])
    coded = array.dictionary_encode()
    values = np.frombuffer(coded.dictionary.buffers()[1], np.dtype((np.void, UUID_BYTES)), len(coded.dictionary))
    return numbers_in(coded.indices).astype(np.int64), uuid_texts(values)


def _transitions() -> Flags:
    """[state before][whether the event is the beginning of a copy][state after], as the cache has it."""
    allowed = np.zeros((NO_STATE + 1, 2, len(_STATES)), np.bool_)
    started = RemoteLogSegmentState.COPY_SEGMENT_STARTED
    for number, before in enumerate([*_STATES, None]):
        # A segment that was deleted is forgotten.
        known = None if before is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED else before
        allowed[number, 1, started] = segment_may_become(known, started)
        for after in _STATES:
            if after is not started and known is not None:
                allowed[number, 0, after] = segment_may_become(known, after)
    return allowed


_ALLOWED = _transitions()


def _allowed(events: NDArray[Any], codes: Ints, first: Flags) -> Flags:
    """Which events may follow those that are allowed before them; they are grouped by segment."""
    before = np.where(first, np.int8(NO_STATE), np.roll(events["state"], 1))
    # Right for every segment all of whose events are allowed, as they nearly always are.
    allowed: Flags = _ALLOWED[before, events["starts"].astype(np.int8), events["state"]]
    for segment in np.unique(codes[~allowed]).tolist():
        state = NO_STATE
        for row in range(*np.searchsorted(codes, [segment, segment + 1]).tolist()):
            after = int(events["state"][row])
            allowed[row] = _ALLOWED[state, int(events["starts"][row]), after]
            state = after if allowed[row] else state
    return allowed


def _last_of_each(chosen: Flags, codes: Ints, begins: Ints) -> Ints:
    """Each segment's last event of those chosen; its first event where none is."""
    rows = begins.copy()
    behind = np.flatnonzero(chosen)
    np.maximum.at(rows, codes[behind], behind)
    return rows


def _superseded(rivals: NDArray[Any], states: NDArray[np.int8], owners: Ints, starts: NDArray[Any]) -> Flags:
    """For each segment, whether its copy, which began with the event in `starts`, is given up; `rivals` are all events
    that began one."""
    superseded = np.zeros(len(states), np.bool_)
    unfinished = np.flatnonzero(states == RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    if not len(unfinished):
        return superseded
    rivals = rivals[np.isin(rivals["partition"], owners[unfinished])]
    rivals = rivals[np.argsort(rivals["partition"], kind="stable")]
    for segment in unfinished.tolist():
        own = starts[segment]
        low, high = np.searchsorted(rivals["partition"], [own["partition"], own["partition"] + 1])
        of_partition = rivals[low:high]
        superseded[segment] = (
            (of_partition["metadataOffset"] > own["metadataOffset"])
            & (of_partition["segmentId"] != own["segmentId"])
            & (of_partition["startOffset"] <= own["endOffset"])
            & (of_partition["endOffset"] >= own["startOffset"])
        ).any()
    return superseded
