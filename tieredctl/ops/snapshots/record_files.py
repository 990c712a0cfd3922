"""Files with records of the metadata log: snapshots and segments, each with its records and its damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.control_records import CONTROL_MESSAGES
from tieredctl.formats.file_names import (
    BOOTSTRAP_CHECKPOINT,
    CLUSTER_METADATA_FOLDER,
    SegmentPart,
    parse_kraft_snapshot_name,
    parse_segment_file_name,
)
from tieredctl.formats.kraft_json import RecordLines
from tieredctl.formats.kraft_log import KraftLogRecord, KraftRecordType, batch_records, sound_batches
from tieredctl.formats.kraft_snapshot import FIRST_BATCH_WITHIN, SnapshotOrder, begins_as_snapshot, snapshot_times
from tieredctl.formats.log_scan import Damage, LogBlock, scan_log
from tieredctl.formats.record_batches import HEADER_BYTES, BatchHeader, read_batch_header
from tieredctl.ops.file_reading import LARGEST_BATCH_FILE, demand_size, file_chunks, reading, regular_size
from tieredctl.process.progress import note_more

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A snapshot, or a segment of the log where it is not one."""

    path: Path
    is_snapshot: bool
    base_offset: int | None = None
    """The base offset of a segment, by its name."""

    def records(self) -> Iterator[KraftLogRecord | DecodeError]:
        """The records in order, and what is damaged or out of order. Raises TieredctlError where the file cannot be
        read."""
        with reading(self.path):
            size = self._size()
            order = SnapshotOrder()
            for part in sound_batches(file_chunks(self.path, size), size, self.base_offset):
                if isinstance(part, Damage):
                    order.skip()
                    if not self._is_preallocated(part, size):
                        yield DecodeError(part.reason, part.position)
                    continue
                fault = order.next_batch(*part) if self.is_snapshot else None
                if fault is not None:
                    yield fault
                note_more("batches read", 1)
                for record in batch_records(*part):
                    yield DecodeError(record.reason, record.position) if isinstance(record, Damage) else record
            yield from self._end(order, size)

    def lines(self, lines: RecordLines) -> Iterator[str | DecodeError]:
        """The file's records as text, whole lines at a time."""
        for block in self.blocks():
            if isinstance(block, LogBlock):
                for part in lines.of_block(block):
                    yield DecodeError(part.reason, part.position) if isinstance(part, Damage) else part
            else:
                yield DecodeError(block.reason, block.position)

    def blocks(self) -> Iterator[LogBlock[HeaderColumns] | Damage | DecodeError]:
        """Sound batches, many at a time; damage; and where those of a snapshot are out of order. Raises TieredctlError
        where the file cannot be read."""
        with reading(self.path):
            size = self._size()
            order = SnapshotOrder()
            for block in scan_log(file_chunks(self.path, size), size, AsColumns(), self.base_offset):
                if isinstance(block, Damage):
                    order.skip()
                    if not self._is_preallocated(block, size):
                        yield block
                    continue
                if self.is_snapshot:
                    yield from _faults(order, block)
                note_more("batches read", len(block.positions))
                yield block
            yield from self._end(order, size)

    def last_contained_ms(self) -> int | None:
        """When the last record that a snapshot contains was written, by its header; None where it has no sound one."""
        try:
            with reading(self.path):
                beginning = file_chunks(self.path, min(self._size(), FIRST_BATCH_WITHIN))
                times = snapshot_times(next(beginning, b""))
        except TieredctlError:
            return None
        return None if times is None else times.last_contained_ms

    def _size(self) -> int:
        size = regular_size(self.path)
        demand_size(self.path, size, LARGEST_BATCH_FILE, "Kafka does not read it either.")
        return size

    def _is_preallocated(self, damage: Damage, size: int) -> bool:
        """Whether there is nothing but zeros up to the end."""
        if damage.header is not None or damage.end != size:
            return False
        with self.path.open("rb") as file:
            file.seek(damage.position)
            return not any(any(piece) for piece in iter(lambda: file.read(1 << 20), b""))

    def _end(self, order: SnapshotOrder, size: int) -> Iterator[DecodeError]:
        fault = order.end(size) if self.is_snapshot else None
        if fault is not None:
            yield fault


def _faults(order: SnapshotOrder, block: LogBlock[HeaderColumns]) -> Iterator[DecodeError]:
    view = memoryview(block.buffer)
    for position, row in zip(map(int, block.positions), block.headers, strict=True):
        header = BatchHeader._make(row.item())
        fault = order.next_batch(block.file_position + position, header, view[position : position + header.size])
        if fault is not None:
            yield fault


def record_files(paths: Iterable[Path]) -> list[RecordFile]:
    """The files as given, and of each folder its finished snapshots and its log, in the order of their names.

    A folder is `__cluster_metadata-0`, a copy of it, or the log directory that it lies in. Raises TieredctlError for a
    path that does not exist, and for a folder without any such file.
    """
    files: list[RecordFile] = []
    for path in paths:
        with reading(path):
            regular_size(path)  # raises where there is nothing, and where reading might never end
            files += _of_folder(path) if path.is_dir() else [_record_file(path)]
    return files


def metadata_log_folder(path: Path) -> Path:
    """The folder of the metadata log: the one given, or the one of its name in it."""
    inner = path / CLUSTER_METADATA_FOLDER
    return inner if inner.is_dir() else path


def left_over_files(folder: Path) -> list[Path]:
    """Snapshots and parts of the log in a folder that are being written, fetched or deleted, or were when a node
    stopped."""
    names = (path.name for path in folder.iterdir())
    return [folder / name for name in sorted(names) if _is_left_over(name)]


def _is_left_over(name: str) -> bool:
    parsed = parse_kraft_snapshot_name(name) or parse_segment_file_name(name)
    return parsed is not None and parsed.transition is not None


def _of_folder(path: Path) -> Sequence[RecordFile]:
    folder = metadata_log_folder(path)
    files = [_record_file(file) for file in sorted(folder.iterdir()) if _is_finished(file.name)]
    if not files:
        hint = f"Give a node's {CLUSTER_METADATA_FOLDER}, or a file in it."
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{path} has no KRaft snapshot and no log.", hint=hint)
    return files


def _is_finished(name: str) -> bool:
    snapshot, segment = parse_kraft_snapshot_name(name), parse_segment_file_name(name)
    if snapshot is not None:
        return snapshot.transition is None
    return segment is not None and segment.part is SegmentPart.LOG and segment.transition is None


def _record_file(path: Path) -> RecordFile:
    segment = parse_segment_file_name(path.name)
    if segment is not None and segment.part is SegmentPart.LOG:
        return RecordFile(path, is_snapshot=False, base_offset=segment.offset)
    if not path.name.endswith(SegmentPart.LOG.value):
        demand_metadata_log_file(path)
    if path.name.endswith(SegmentPart.LOG.value) or not (is_named_snapshot(path.name) or _begins_as_snapshot(path)):
        return RecordFile(path, is_snapshot=False)
    return RecordFile(path, is_snapshot=True)


def demand_metadata_log_file(path: Path) -> None:
    """Raises TieredctlError `usage` for a file that has neither a name of the metadata log's files nor begins with a
    record batch: it is another kind of file, not a damaged one."""
    if is_named_snapshot(path.name):
        return
    head = next(file_chunks(path, min(regular_size(path), HEADER_BYTES)), b"")
    try:
        read_batch_header(head, 0, len(head))
    except DecodeError:
        message = f"{path} is neither a KRaft snapshot nor a part of the metadata log."
        hint = f"Give `<offset>-<epoch>.checkpoint`, a log file of {CLUSTER_METADATA_FOLDER}, or that folder."
        raise TieredctlError(ErrorCode.USAGE, message, hint=hint) from None


def is_named_snapshot(name: str) -> bool:
    """Whether a file has the name of a snapshot, finished or not, or of the one that a node was formatted with."""
    return name == BOOTSTRAP_CHECKPOINT or parse_kraft_snapshot_name(name) is not None


def _begins_as_snapshot(path: Path) -> bool:
    return begins_as_snapshot(next(file_chunks(path, min(regular_size(path), _HEAD_BYTES)), b""))


def wanted_types(names: Sequence[str]) -> Callable[[str], bool]:
    """Whether a type is one of those named, as dump-log prints it or without `_RECORD`, in any case; all without names.
    A type that is not known here is named by its number.

    Raises TieredctlError for a name that no type has.
    """
    if not names:
        return lambda _: True
    wanted = {_type_of(name) for name in names}
    return lambda name: name in wanted


def _type_of(name: str) -> str:
    types = {kind.kafka_name: kind.kafka_name for kind in KraftRecordType}
    types |= {kind.name: kind.kafka_name for kind in KraftRecordType}
    types |= {message.upper(): message for message in CONTROL_MESSAGES.values()}
    record_type = types.get(name.upper())
    if record_type is None and name.isdecimal() and name.isascii():
        kinds = {str(int(kind)): kind.kafka_name for kind in KraftRecordType}
        record_type = kinds.get(name, name)
    if record_type is None:
        hint = f"Types are {', '.join(sorted(set(types.values())))}, or a number."
        raise TieredctlError(ErrorCode.USAGE, f"{name!r} is not a type of records.", hint=hint)
    return record_type
