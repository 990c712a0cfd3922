"""Decodes every event of a metadata log as columns, CRCs checked: `python -m benchmarks.decode_columns LOG-DIR`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tieredctl.formats.metadata_columns import decode_columns
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_stream import EventStream


def main() -> None:
    """Prints what it found, so that nothing can be left out."""
    events = 0
    for _, chunk in EventStream(LogDirectories([Path(sys.argv[1])])).chunks():
        starts, ends = np.asarray(chunk.starts, np.int64), np.asarray(chunk.ends, np.int64)
        groups, left = decode_columns(np.frombuffer(chunk.buffer, np.uint8), starts, ends)
        events += sum(len(group.rows) for group in groups) + len(left)
    print(events)


main()
