"""Damages a copy of a cluster in the ways that real ones are damaged, so that `demo` can show how each is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import BatchHeader, Record, encode_batch
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.partitioner import metadata_partition

SegmentEvent = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate


def flip_bits(path: Path, position: int, mask: int = 0xFF) -> None:
    """Flips the bits in `mask` of the byte at `position`."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes((byte ^ mask,)))


def cut(path: Path, size: int) -> None:
    """Cuts a file after its first `size` bytes."""
    with path.open("r+b") as file:
        file.truncate(size)


def append_event(log_dir: Path, event: SegmentEvent) -> None:
    """Appends an event to its metadata partition, as its leader would."""
    partition = event.topic_id_partition
    partitions = len(list(log_dir.glob(f"{METADATA_TOPIC}-*")))
    number = metadata_partition(partition.topic_id, partition.partition, partitions)
    log = max((log_dir / f"{METADATA_TOPIC}-{number}").glob("*.log"))
    last = max(_headers(log), key=lambda header: header.last_offset, default=None)
    offset, epoch = (last.last_offset + 1, last.partition_leader_epoch) if last else (int(log.stem), 0)
    record = Record(offset, event.event_timestamp_ms, None, encode_event(event))
    with log.open("ab") as file:
        file.write(encode_batch([record], partition_leader_epoch=epoch))


def _headers(log: Path) -> Iterator[BatchHeader]:
    data = log.read_bytes()
    for part in scan_log([data], len(data), OneByOne()):
        if isinstance(part, LogBlock):
            yield from part.headers
