"""`remote read`: a part of a segment from the remote store, as the broker wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.completeness import demand_nothing_lost
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.remote.part_check import PartCheck
from tieredctl.ports.layout import Layout, Part, SegmentIdentity
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.progress import note
from tieredctl.process.replaced_file import replaced_file

_PIECE_BYTES = 1 << 22


class PartRead(NamedTuple):
    """How many bytes were read, and what is wrong with them."""

    size: int
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part of one segment, whose layout and store are known."""

    store: ObjectStore
    layout: Layout
    segment: SegmentIdentity
    part: Part

    def copy_to(self, target: BinaryIO) -> PartRead:
        """Writes the part's bytes, checking them as it goes; no further where whoever reads them has gone. Raises
        TieredctlError, possibly after some were written."""
        reader = self.layout.open_segment(self.store, self.segment)
        expected = self._expected_size()
        size = reader.parts().get(self.part, 0) if expected is None else expected
        keys = {**self.layout.promised_objects(self.segment), **self.layout.optional_objects(self.segment)}
        check, written = PartCheck(self.segment, self.part, keys), _Written(target)
        with suppress(BrokenPipeError):
            check.watch(written.all_of(self._within(reader.stream(self.part, _PIECE_BYTES), expected)), size)
        return PartRead(written.size, check.findings)

    def save_as(self, file: Path, *, force: bool, dry_run: bool = False) -> PartRead:
        """Writes a file of the part's bytes, whole or not at all, even if they are altered. Replaces an existing file
        only with `force`; a dry run only reads. Raises TieredctlError."""
        with replaced_file(file, force=force, dry_run=dry_run, is_last=True) as target:
            return self.copy_to(target)

    def document(self, written: int, file: Path) -> Document:
        """The result, for people and scripts."""
        partition = self.segment.topic_id_partition
        return {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "segmentId": self.segment.segment_id,
            "startOffset": self.segment.start_offset,
            "part": self.part.value,
            "bytes": written,
            "file": str(file),
        }

    def _expected_size(self) -> int | None:
        """In bytes, if the metadata has it."""
        if self.part is not Part.LOG or not isinstance(self.segment, RemoteLogSegmentMetadata):
            return None
        return self.segment.known_size

    def _another_size(self, found: str, expected: int) -> TieredctlError:
        message = f"The log of {self.segment.segment_id} has {found} the {expected} bytes in its metadata."
        return TieredctlError(ErrorCode.UNDECODABLE, message, hint="Check the segment with `tieredctl verify`.")

    def _within(self, pieces: Iterator[bytes], expected: int | None) -> Iterator[bytes]:
        """The pieces; raises where their size is not the metadata's."""
        read = 0
        for piece in pieces:
            read += len(piece)
            if expected is not None and read > expected:
                raise self._another_size("more than", expected)
            note("bytes read", read, expected)
            yield piece
            del piece  # before the next is read: its memory can serve again
        if expected is not None and read < expected:
            raise self._another_size(f"{read}, not", expected)


@dataclass(slots=True)
class _Written:
    """Writes the pieces as they are read."""

    target: BinaryIO
    size: int = 0
    """In bytes."""

    def all_of(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            try:
                self.target.write(piece)
            except BrokenPipeError:
                yield piece  # it is read, and checked
                if next(pieces, None) is not None:
                    raise
                return
            self.size += len(piece)
            yield piece
            del piece  # as above


def segment_in_metadata(stream: EventStream, selection: Selection) -> SegmentIdentity:
    """The segment with the selection's id. Raises TieredctlError `unknown-segment`."""
    metadata = replayed(stream, selection)
    found = next(metadata.known(segments(metadata, selection)), None)
    if found is None:
        why = f"The metadata has no {selection}, or it was deleted."
        demand_nothing_lost(stream, why)
        selection.demand_known(stream.partitions, "The metadata has no event of")
        raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)
    if selection.names_several:
        selection.demand_known(stream.partitions, "The metadata has no event of")
    _, known = found
    return known.metadata


def segment_in_store(store: ObjectStore, layout: Layout, selection: Selection) -> SegmentIdentity:
    """The segment with the selection's id, by the store's keys, all of which may have to be listed. Raises
    TieredctlError `unknown-segment`."""
    inventory = Inventory(store, layout, selection)
    objects = inventory.objects()
    explained = next((one.explained for one in objects if one.explained), None)
    if explained is None or selection.names_several:
        for _ in objects:
            pass
        inventory.demand_known()
    assert explained is not None
    return explained
