"""A node's `__cluster_metadata-0`, made for a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kraft_snapshots import snapshot_bytes
from tieredctl.formats.file_names import SegmentPart, kraft_snapshot_name, segment_file_name
from tieredctl.formats.record_batches import Attributes, Record, encode_batch

NO_OP = bytes([1, 20, 0, 0])
"""The value of a NoOpRecord: frame version, apiKey, version, no tagged fields."""


@dataclass
class MetadataFolder:
    """Writes the log batch by batch; each `roll` begins a segment."""

    path: Path
    end_offset: int = 0
    epoch: int = 1
    _segment: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def roll(self) -> None:
        """The next batch begins a segment."""
        self._segment = self.path / segment_file_name(self.end_offset, SegmentPart.LOG)
        self._segment.touch()

    def append(self, *values: bytes, timestamp: int = 1) -> None:
        """A batch of these records, or of one NoOpRecord."""
        self._write(
            [
                Record(self.end_offset + number, timestamp, None, value)
                for number, value in enumerate(values or (NO_OP,))
            ]
        )

    def append_control(self, record: Record) -> None:
        """A control batch of one record."""
        self._write([record._replace(offset=self.end_offset)], Attributes.CONTROL)

    def _write(self, records: list[Record], attributes: int = 0) -> None:
        if self._segment is None:
            self.roll()
        assert self._segment is not None
        with self._segment.open("ab") as file:
            file.write(encode_batch(records, partition_leader_epoch=self.epoch, attributes=attributes))
        self.end_offset += len(records)

    def snapshot(self, as_of_ms: int = 1, values: Sequence[bytes] = (), *, end_offset: int | None = None) -> Path:
        """A snapshot up to the log's end, or another offset."""
        end = self.end_offset if end_offset is None else end_offset
        file = self.path / kraft_snapshot_name(end, self.epoch)
        file.write_bytes(snapshot_bytes(as_of_ms, *values))
        return file
