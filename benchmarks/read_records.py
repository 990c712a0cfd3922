"""Reads a topic's records from remote storage on one core, and prints how many: see `--help`."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.records.request import RecordRequest
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records


class _OneAtATime(StoreAround):
    """Another store, as if reads of it never waited."""

    @property
    def parallel_reads(self) -> int:
        return 1


def main() -> None:
    """Makes every column, and drops each batch of records once it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.read_records", description=__doc__)
    parser.add_argument("log_dir", type=Path, metavar="LOG-DIR")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--first", type=int, default=0, help="the offset to begin with")
    parser.add_argument("--end", type=int, help="the offset to end before")
    parser.add_argument("--endpoint", help="of a store that speaks S3")
    parser.add_argument("--one-at-a-time", action="store_true", help="ask for no range of a log ahead")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    options = {"endpoint": asked.endpoint, "addressing-style": "path"} if asked.endpoint else {}
    places = MetadataPlace(log_dirs=(asked.log_dir,)), StorePlace(asked.store, options)
    with topic_records(*places, Selection.of(asked.topic)) as opened:
        request = RecordRequest(asked.first, asked.end)
        topic = replace(opened, store=_OneAtATime(opened.store)) if asked.one_at_a_time else opened
        print(sum(batch.num_rows for one in topic.partitions for batch in topic.read(one, request)))


if __name__ == "__main__":
    main()
