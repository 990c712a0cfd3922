"""A small log may unfold a thousandfold: its records are handed on before the next batches are unfolded."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tests.kafka.test_live_partition import TOPIC, ModelLeader
from tests.metadata_logs import write_log
from tests.rigs.unfolding import bytes_at_peak
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import Record, RecordHeader, encode_batch
from tieredctl.kafka.live_log import LiveLog
from tieredctl.kafka.live_topic import LivePartition
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ports.metadata_source import OffsetRange

BATCHES, BATCH_BYTES = 40, 1 << 23
MOST_BYTES = 200 << 20
"""Of the 320 MiB that all of it unfolds to: what is unfolded at once is held in up to five copies."""
HEADER = (RecordHeader("read", b"one by one"),)


def test_memory_follows_the_largest_batch_of_a_metadata_log(tmp_path: Path) -> None:
    for codec, headers in ((Codec.GZIP, ()), (Codec.SNAPPY, HEADER)):
        batch = encode_batch([Record(0, 0, None, bytes(BATCH_BYTES), headers)], codec=codec)
        batches = [number.to_bytes(8) + batch[8:] for number in range(BATCHES)]  # no checksum covers base offsets
        folder = tmp_path / f"{codec.name}-{len(headers)}"
        write_log(folder, 0, batches)
        leader = cast("LiveLog", ModelLeader(batches, BATCHES))
        sources = {
            "disk": LogDirectories([folder]).chunks(0),
            "leader": LivePartition(leader, TOPIC, 0, OffsetRange(0, BATCHES)).chunks(),
        }
        for name, chunks in sources.items():
            with bytes_at_peak() as peak:
                count = sum(len(chunk) for chunk in chunks)

            assert count == BATCHES, (name, codec, headers)
            assert peak() < MOST_BYTES, (name, codec, headers)
