"""What damage costs: `python -m benchmarks.damaged_log`. Every other batch of a log is damaged, each time otherwise.

Prints CPU seconds of checking the log against its metadata, and how many times those of the sound log that is."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.scale import SEGMENT_KINDS
from tests.rigs.segment_generator import generate_segment
from tieredctl.formats.record_batches import LENGTH_AT, LOG_OVERHEAD, MAGIC_AT
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import ZERO_UUID, TopicIdPartition
from tieredctl.ops.verification.log_check import LogCheck

_PIECE_BYTES = 1 << 23


def _with_body(log: bytearray, start: int, end: int) -> None:
    log[(start + end) // 2 + 20] ^= 1


def _with_length(log: bytearray, start: int, _end: int) -> None:
    log[start + LENGTH_AT + 1] ^= 0x40


def _with_magic(log: bytearray, start: int, _end: int) -> None:
    log[start + MAGIC_AT] = 1


def _with_zeros(log: bytearray, start: int, end: int) -> None:
    log[start:end] = bytes(end - start)


FAULTS: dict[str, Callable[[bytearray, int, int], None]] = {
    "a byte of the records": _with_body,
    "the length, by megabytes": _with_length,
    "the magic": _with_magic,
    "all of it, to zeros": _with_zeros,
}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damaged_log", description=main.__doc__)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    for batch_bytes, compression in SEGMENT_KINDS:
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            size = options.megabytes << 20
            segment = generate_segment(Path(folder), size, batch_bytes=batch_bytes, compression=compression)
            log, end_offset = segment.log.read_bytes(), segment.next_offset - 1
        sound = checked(log, end_offset)
        print(f"batches of {batch_bytes} bytes, compression {compression}: sound {sound:.2f} s")
        for name, fault in FAULTS.items():
            damaged = bytearray(log)
            for number, (start, end) in enumerate(batches(log)):
                if number % 2 == 0:
                    fault(damaged, start, end)
            took = checked(bytes(damaged), end_offset)
            print(f"  {name:<28}{took:8.2f} s {took / sound:6.1f}x")


def batches(log: bytes) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    start = 0
    while start < len(log):
        end = start + LOG_OVERHEAD + int.from_bytes(log[start + LENGTH_AT : start + LENGTH_AT + 4])
        yield start, end
        start = end


def checked(log: bytes, end_offset: int) -> float:
    """CPU seconds."""
    metadata = RemoteLogSegmentMetadata(
        topic_id_partition=TopicIdPartition(ZERO_UUID, "bench", 0),
        segment_id=ZERO_UUID,
        start_offset=0,
        end_offset=end_offset,
        author=1,
        max_timestamp_ms=1 << 62,
        event_timestamp_ms=0,
        segment_leader_epochs=((0, 0),),
        segment_size_in_bytes=len(log),
        txn_idx_empty=True,
    )
    began = time.process_time()
    LogCheck(metadata).run((log[at : at + _PIECE_BYTES] for at in range(0, len(log), _PIECE_BYTES)), len(log))
    return time.process_time() - began


if __name__ == "__main__":
    main()
