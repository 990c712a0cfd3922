"""Writes a list of keys, three for each segment that a metadata log names: `python -m benchmarks.keys_of_segments
LOG-DIR FILE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import segment_states
from tieredctl.rlmm.segment_events import SegmentEvents

_SUFFIXES = (".index", ".log", ".timeindex")


def main() -> None:
    """The keys are in a listing's order, and older than every event."""
    events = SegmentEvents()
    read_events(EventStream(LogDirectories([Path(sys.argv[1])])), events)
    states = segment_states(events)
    folders = [f"{one.topic}-{one.partition}-{one.topic_id}" for one in states.partitions]
    rows = zip(states.owners.tolist(), states.start_offsets.tolist(), states.ids.to_pylist(), strict=True)
    names = sorted(f"{folders[owner]}/{offset:020}-{segment_id}" for owner, offset, segment_id in rows)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.writelines(f"{name}{suffix}\n" for name in names for suffix in _SUFFIXES)
    os.utime(sys.argv[2], (0, 0))


main()
