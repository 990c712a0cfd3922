"""The records of several snapshots and logs, one after the other; damage does not keep the rest from being shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.kraft_json import RecordKind, RecordLines, kind_of, record_document
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.ops.documents import Document
from tieredctl.ops.snapshots.record_files import RecordFile

_MOST_FAULTS = 20
_Part = TypeVar("_Part", str, KraftLogRecord)


@dataclass(slots=True)
class FileFaults:
    """What is wrong with one file."""

    first: list[TieredctlError] = field(default_factory=list)
    """No more than 20."""
    count: int = 0

    def add(self, error: TieredctlError) -> None:
        self.count += 1
        if len(self.first) < _MOST_FAULTS:
            self.first.append(error)


class RecordListing:
    """Records as documents or as lines of JSON, each read once, and then what was wrong with the files."""

    def __init__(self, files: Sequence[RecordFile], wanted: Callable[[str], bool]) -> None:
        self._files = files
        self._wanted = wanted
        self._lines = RecordLines(wanted)
        self._shown: Counter[RecordKind] = Counter()
        self.faults: dict[Path, FileFaults] = {}

    def __iter__(self) -> Iterator[Document]:
        """`type`, `version` and `data` of each record, as dump-log prints them."""
        return (document for _, document in self._documents())

    def rows(self) -> Iterator[Document]:
        """The same, and where each record is: `file`, `offset`, `epoch`, `timestamp`, `position`."""
        return (place | document for place, document in self._documents())

    def json_lines(self) -> Iterator[str]:
        """The documents as text, many at a time."""
        for file in self._files:
            yield from self._sound(file, file.lines(self._lines))

    @property
    def counts(self) -> Counter[RecordKind]:
        """How many records of each kind were shown."""
        return self._shown + self._lines.counts

    def _documents(self) -> Iterator[tuple[Document, Document]]:
        for file in self._files:
            for record in self._sound(file, file.records()):
                kind = kind_of(record.content)
                if not self._wanted(kind.type):
                    continue
                self._shown[kind] += 1
                place = {
                    "file": str(file.path),
                    "offset": record.offset,
                    "epoch": record.epoch,
                    "timestamp": record.timestamp,
                    "position": record.batch_position,
                }
                yield place, record_document(record.content)

    def _sound(self, file: RecordFile, parts: Iterator[_Part | DecodeError]) -> Iterator[_Part]:
        """What could be read; remembers what is wrong with the file."""
        try:
            for part in parts:
                if isinstance(part, DecodeError):
                    named = DecodeError(f"{file.path} is damaged: {part.reason}", part.position)
                    self.faults.setdefault(file.path, FileFaults()).add(named)
                else:
                    yield part
        except TieredctlError as error:
            self.faults.setdefault(file.path, FileFaults()).add(error)
