"""Several exports of one metadata topic, each with what is new since the one before: a `MetadataSource`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kafka.export_file import ExportFile
from tieredctl.model.findings import Finding
from tieredctl.ports.metadata_source import OffsetRange, truncated


class ExportChain:
    """Exports, the earliest first. Answers as the topic did when the last was made."""

    def __init__(self, exports: Sequence[ExportFile]) -> None:
        """Raises TieredctlError `unreadable` where one does not begin where the one before it ends."""
        self._exports = exports
        self._numbers = sorted({number for one in exports for number in one.metadata_partitions()})
        for number in self._numbers:
            ranges = self._ranges(number)
            for before, after in pairwise(ranges):
                if before.end != after.start:
                    message = f"Events {before.end} to {after.start - 1} of metadata partition {number} are in no set."
                    raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Restore from another set.")

    @property
    def cluster_id(self) -> str | None:
        return self._exports[-1].cluster_id

    @property
    def metadata_topic_id(self) -> str | None:
        return self._exports[-1].metadata_topic_id

    @property
    def partition_count(self) -> int | None:
        return self._exports[-1].partition_count

    def describe(self) -> dict[str, object]:
        return {**self._exports[-1].describe(), "exports": len(self._exports)}

    def metadata_partitions(self) -> list[int]:
        return list(self._numbers)

    def findings(self) -> list[Finding]:
        first_offsets = {number: self.offset_range(number).start for number in self._numbers}
        return [truncated(number, start) for number, start in first_offsets.items() if start]

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        ranges = self._ranges(metadata_partition)
        return OffsetRange(ranges[0].start, ranges[-1].end) if ranges else OffsetRange(0, 0)

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        for one in self._exports:
            if one.offset_range(metadata_partition).end > from_offset:
                yield from one.chunks(metadata_partition, from_offset)

    def advance(self) -> bool:
        """What was exported never changes."""
        return False

    def close(self) -> None:
        for one in self._exports:
            one.close()

    def _ranges(self, number: int) -> list[OffsetRange]:
        return [one.offset_range(number) for one in self._exports if number in one.metadata_partitions()]
