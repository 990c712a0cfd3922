"""A metadata partition in stretches that are read apart from one another, such as by the tasks of a Spark job."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import NO_VALUE, RecordChunk
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.metadata_source import METADATA_TOPIC, DivisibleSource, MetadataSource, OffsetRange

__all__ = [
    "METADATA_TOPIC",
    "NO_END",
    "MetadataSource",
    "OffsetRange",
    "RecordChunk",
    "cut_to",
    "demand_held",
    "end_offsets",
    "held_offsets",
    "log_findings",
    "stretch_chunks",
    "stretches",
]

NO_END = (1 << 63) - 1
"""Stands for wherever a log ends."""


def stretches(source: MetadataSource, metadata_partition: int, most_offsets: int) -> list[OffsetRange]:
    """Ranges of about so many offsets that together are the whole partition: one where it cannot be divided."""
    edges = source.divisions(metadata_partition, most_offsets) if isinstance(source, DivisibleSource) else []
    return [OffsetRange(*pair) for pair in zip([0, *edges], [*edges, NO_END], strict=True)]


def stretch_chunks(source: MetadataSource, metadata_partition: int, first: int, end: int) -> Iterator[RecordChunk]:
    """The records from `first` up to, not including, `end`, and perhaps others; see `DivisibleSource`."""
    if isinstance(source, DivisibleSource):
        return source.stretch(metadata_partition, OffsetRange(first, end))
    return source.chunks(metadata_partition, first)


def cut_to(chunks: Iterable[RecordChunk], offsets: OffsetRange, damage: list[Finding]) -> Iterator[RecordChunk]:
    """The records with these offsets alone. Adds to `damage` what was wrong where they are or would be."""
    pending: list[Finding] = []
    next_offset: int | None = None
    for chunk in chunks:
        pending += chunk.findings
        if not len(chunk):
            continue
        chunk_offsets = np.asarray(chunk.offsets, np.int64)
        place = int(chunk_offsets[0]) if next_offset is None else next_offset
        if offsets.start <= place < offsets.end:
            damage += pending
        pending, next_offset = [], int(chunk_offsets[-1]) + 1
        yield chunk.at(np.flatnonzero((offsets.start <= chunk_offsets) & (chunk_offsets < offsets.end)))
    if next_offset is None or offsets.start <= next_offset < offsets.end:
        damage += pending


def held_offsets(source: MetadataSource, metadata_partition: int) -> OffsetRange:
    """The offsets that a partition holds. Of a log that does not tell where it ends, the last file is read."""
    offsets = source.offset_range(metadata_partition)
    if offsets.start == offsets.end:
        deque(source.chunks(metadata_partition, NO_END), maxlen=0)
    return source.offset_range(metadata_partition)


def demand_held(source: MetadataSource, metadata_partition: int, planned: OffsetRange, *, was_read: bool) -> None:
    """Raises TieredctlError `unreadable` where a partition holds fewer offsets than the planner saw: it may be another
    replica, or have lost its end. Before it was read, a log need not tell where it ends."""
    start, end = source.offset_range(metadata_partition)
    if was_read and end < planned.end:  # altered offsets show only in the file that has them
        deque(source.chunks(metadata_partition), maxlen=0)
        start, end = source.offset_range(metadata_partition)
    is_end_known = was_read or start < end
    if planned.start < planned.end and (planned.start < start or (is_end_known and end < planned.end)):
        name, hint = f"{METADATA_TOPIC}-{metadata_partition}", "Let every machine read the same log, and run it again."
        message = (
            f"{name} holds offsets from {start} up to {end} where it is read, but offsets from {planned.start} up to "
            f"{planned.end} were there when the work was planned. {hint}"
        )
        raise TieredctlError(ErrorCode.UNREADABLE, message, hint=hint)


def log_findings(stream: EventStream) -> list[Finding]:
    """What is wrong with the logs of a stream, read to their ends; without the records that cannot be decoded, which
    are not decoded here."""
    for metadata_partition, chunk in stream.chunks():
        tombstones = np.flatnonzero(np.asarray(chunk.starts, np.int64) == NO_VALUE).tolist()
        deque(stream.decode(metadata_partition, chunk, tombstones), maxlen=0)
    return [finding for finding in stream.findings if finding.code is not FindingCode.EVENT_UNDECODABLE]


def end_offsets(source: MetadataSource) -> dict[int, int]:
    """Where each metadata partition ends: of logs that do not tell, what was added since is read."""
    ends = {}
    for number in source.metadata_partitions():
        deque(source.chunks(number, source.offset_range(number).end), maxlen=0)
        ends[number] = source.offset_range(number).end
    return ends
