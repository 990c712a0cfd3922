"""Reads a topic's records from remote storage on one core, and prints how many: see `--help`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pyarrow as pa

from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import RecordRequest
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records


def main() -> None:
    """Makes every column, and drops each batch of records once it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.read_records", description=__doc__)
    parser.add_argument("log_dir", type=Path, metavar="LOG-DIR")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--first", type=int, default=0, help="the offset to begin with")
    parser.add_argument("--end", type=int, help="the offset to end before")
    parser.add_argument("--endpoint", help="of a store that speaks S3")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    options = {"endpoint": asked.endpoint, "addressing-style": "path"} if asked.endpoint else {}
    places = MetadataPlace(log_dirs=(asked.log_dir,)), StorePlace(asked.store, options)
    with topic_records(*places, Selection.of(asked.topic)) as opened:
        request = RecordRequest(asked.first, asked.end)
        print(sum(batch.num_rows for one in opened.partitions for batch in opened.read(one, request)))


if __name__ == "__main__":
    main()
