"""Big data segments with their indexes, written by Kafka's own LogSegment: see `java/SegmentGenerator.java`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from .java_program import run_java_program
from .maven import kafka_jars

GENERATOR_VERSION = "4.3.1"
LARGEST_SEGMENT_BYTES = 2**31 - 1

CompressionName: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True)
class GeneratedSegment:
    """A sound segment in a folder of its own, under the names that a broker gives its files."""

    log: Path
    offset_index: Path
    time_index: Path
    producer_snapshot: Path
    leader_epochs: Path
    base_offset: int
    next_offset: int
    batches: int
    records: int
    bytes_written: int


def generate_segment(
    folder: Path,
    total_bytes: int,
    *,
    batch_bytes: int = 16_384,
    compression: CompressionName = "none",
    base_offset: int = 0,
    leader_epochs: int = 1,
    seed: int = 1,
) -> GeneratedSegment:
    """Write one segment into `folder`, which must be new or empty.

    The log ends with the batch that reaches `total_bytes`. A batch has `batch_bytes` at most, before compression, and
    one record at least. Index entries are at least 4,096 bytes apart, as Kafka's default has it. The same arguments
    give the same log. Raises ValueError for a size that Kafka cannot address or a folder in use, and RigMissing.
    """
    if not 0 < total_bytes <= LARGEST_SEGMENT_BYTES - 2 * batch_bytes:
        raise ValueError(f"a segment of {total_bytes} bytes cannot be addressed")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty")
    told = run_java_program(
        kafka_jars(GENERATOR_VERSION),
        "SegmentGenerator",
        *(str(folder), str(base_offset), str(total_bytes), str(batch_bytes)),
        *(compression, str(leader_epochs), str(seed)),
    )
    return GeneratedSegment(
        log=folder / f"{base_offset:020d}.log",
        offset_index=folder / f"{base_offset:020d}.index",
        time_index=folder / f"{base_offset:020d}.timeindex",
        producer_snapshot=folder / f"{told['next_offset']:020d}.snapshot",
        leader_epochs=folder / "leader-epoch-checkpoint",
        base_offset=base_offset,
        next_offset=told["next_offset"],
        batches=told["batches"],
        records=told["records"],
        bytes_written=told["bytes"],
    )
