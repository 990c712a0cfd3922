"""Reads one replica of one metadata partition from its folder in a broker's log directory, even while it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from errno import EINVAL
from functools import partial
from math import inf
from pathlib import Path

from tieredctl.formats.log_blocks import BlockReader, end_offset, log_blocks, odd_offsets
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.formats.record_chunks import RecordChunk, chunk_of
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding

_CHUNK_BYTES = 1 << 22
_SEGMENT_FILE = re.compile(r"^(\d{20})\.log$")
_PASSING_FILE = re.compile(r"^\d{20}\.log\.(deleted|swap|cleaned)$")
_PRODUCER_SNAPSHOT = re.compile(r"^(\d{20})\.snapshot$")


class PartitionLog:
    """A replica's segment files as they are when this is created. Every file is read up to its size then."""

    def __init__(self, folder: Path, metadata_partition: int, log_start_offset: int = 0) -> None:
        """`log_start_offset` is from the broker's checkpoint: consumers no longer get records below it."""
        self.folder = folder
        self.metadata_partition = metadata_partition
        self._log_start_offset = log_start_offset
        self._files: list[tuple[int, Path, int]] = []
        self._modified_ns: list[int] = []
        self._passed_over: list[Path] = []
        self._end_offset = 0
        self.least_end_offset = 0
        """The end offset (exclusive) that the log is known to have reached: producer snapshots are named after it, and
        truncation deletes those beyond it (ProducerStateManager.truncateAndReload)."""
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if match := _SEGMENT_FILE.match(entry.name):
                if not entry.is_file():
                    raise OSError(EINVAL, f"{entry.name} is not a regular file")
                status = entry.stat()
                self._files.append((int(match[1]), Path(entry.path), status.st_size))
                self._modified_ns.append(status.st_mtime_ns)
            elif _PASSING_FILE.match(entry.name):
                self._passed_over.append(Path(entry.path))
            elif match := _PRODUCER_SNAPSHOT.match(entry.name):
                self.least_end_offset = max(self.least_end_offset, int(match[1]))

    @property
    def has_segments(self) -> bool:
        """Whether any segment's file is here. Kafka makes the first with the folder, and never deletes the last."""
        return bool(self._files)

    @property
    def start_offset(self) -> int:
        """The first offset that this replica can still hold."""
        return max(self._log_start_offset, self._files[0][0] if self._files else 0)

    @property
    def end_offset(self) -> int:
        """The offset after the last one read so far, including records that a compaction removed."""
        return max(self._end_offset, self._files[-1][0] if self._files else 0)

    def findings(self) -> list[Finding]:
        return [passed_over(path, "Kafka is deleting or replacing this file") for path in self._passed_over]

    def state(self) -> object:
        """A value that changes whenever the read result would."""
        return self.folder, self._log_start_offset, self._files, self._modified_ns, self._passed_over

    def chunks(self, from_offset: int = 0) -> Iterator[RecordChunk]:
        """Records by rising offset, with damage as findings. Files that end below `from_offset` are left out; others
        are read in full."""
        last_offset = self.start_offset - 1
        following = [base_offset for base_offset, _, _ in self._files[1:]]
        for index, (_, path, size) in enumerate(self._files):
            appended_to = index == len(self._files) - 1
            if not appended_to and following[index] <= from_offset:
                continue
            for chunk in self._file_chunks(path, size, appended_to):
                self._demand_order(chunk, last_offset, path)
                if len(chunk):
                    last_offset = max(last_offset, int(chunk.offsets[-1]))
                yield chunk

    def divisions(self, most_offsets: int) -> list[int]:
        """Where files begin, so far apart that stretches have about so many offsets, or a file more."""
        begins: list[int] = []
        begin = self.start_offset
        for base_offset, _, _ in self._files[1:]:
            if base_offset - begin >= most_offsets:
                begins.append(base_offset)
                begin = base_offset
        return begins

    def stretch(self, first: int, end: int) -> Iterator[RecordChunk]:
        """All records of the files that may hold offsets from `first` up to, not including, `end`, whichever offsets
        their batches claim."""
        following: list[float] = [*(base_offset for base_offset, _, _ in self._files[1:]), inf]
        for index, (base_offset, path, size) in enumerate(self._files):
            if base_offset < end and first < following[index]:
                yield from self._file_chunks(path, size, index == len(self._files) - 1)

    def _file_chunks(self, path: Path, size: int, appended_to: bool) -> Iterator[RecordChunk]:
        reader = BlockReader(self._log_start_offset, partial(self._corrupt, path))
        with path.open("rb") as file:
            for part in log_blocks(_pieces(file.fileno(), size), size):
                if not isinstance(part, Damage):
                    self._end_offset = max(self._end_offset, end_offset(part))
                    yield from reader.chunks(part)
                elif not (part.torn and appended_to):
                    yield chunk_of((), [self._corrupt(path, part.position, part.header, part.reason)])

    def _corrupt(self, path: Path, position: int, header: BatchHeader | None, reason: str) -> Finding:
        evidence: dict[str, object] = {
            "metadataPartition": self.metadata_partition,
            "file": str(path),
            "position": position,
        }
        offsets = (header.base_offset, header.last_offset) if header else None
        if offsets:
            evidence["offsets"] = list(offsets)
        about = MetadataSubject(self.metadata_partition, offsets=offsets)
        message = f"{reason}; reading resumed after it"
        return Finding(FindingCode.BATCH_CORRUPT, f"{path}@{position}", message, evidence, about=about)

    def _demand_order(self, chunk: RecordChunk, last_offset: int, path: Path) -> None:
        offsets = odd_offsets(chunk, last_offset)
        if offsets is None:
            return
        about = MetadataSubject(self.metadata_partition, offsets=offsets)
        evidence = {"metadataPartition": self.metadata_partition, "file": str(path), "offsets": list(offsets)}
        message = f"offsets do not rise after {last_offset}: a batch's base offset was altered"
        chunk.findings.append(Finding(FindingCode.OFFSETS_OUT_OF_ORDER, str(path), message, evidence, about=about))


def passed_over(path: Path, why: str) -> Finding:
    """The finding for a file or folder that is skipped on purpose."""
    return Finding(FindingCode.FOLDER_PASSED_OVER, str(path), f"passed over: {why}", {"file": str(path)})


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    """The file up to its size when it was opened, whatever a broker does to it meanwhile."""
    position = 0
    while position < size:
        piece = os.pread(descriptor, min(_CHUNK_BYTES, size - position), position)
        if not piece:
            return
        position += len(piece)
        yield piece
