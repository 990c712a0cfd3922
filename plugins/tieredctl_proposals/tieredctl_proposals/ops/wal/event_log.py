"""`__remote_wal_log_metadata` as objects of the store that has the combined objects.

Each partition is a folder named as in a broker's log directory, with log files named by their first offset. Files are
only ever added: each has one batch, so that an event is there whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, segment_file_name
from tieredctl.formats.log_blocks import BlockReader, end_offset, log_blocks
from tieredctl.formats.log_scan import Damage, LogBlock
from tieredctl.formats.record_batches import Attributes, BatchHeader, Record, encode_batch
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ports.object_store import Capability, ObjectStore, WritableObjectStore
from tieredctl_proposals.formats.wal_records import encode_wal_event
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.model.wal_events import WAL_METADATA_TOPIC, WalEvent
from tieredctl_proposals.ops.wal.gathered_events import GatheredEvents
from tieredctl_proposals.wal.events import WalEvents
from tieredctl_proposals.wal.steps import Publish

EVENT_FOLDER = WAL_METADATA_TOPIC + "-"
"""What every key of the log begins with."""
_KEY = re.compile(rf"{WAL_METADATA_TOPIC}-(0|[1-9][0-9]{{0,9}})/([0-9]{{20}})\.log", re.ASCII)
_LARGEST_FILE = 1 << 28
_READ_AT_ONCE = 256
_PIECE_BYTES = 1 << 22
"""A file is unfolded so many of its bytes at a time, or a batch where that has more."""
METADATA_PARTITIONS = 1
"""The partitions of a log that tieredctl writes: it has one writer at a time. One with more is read too."""


class _LogFile(NamedTuple):
    partition: int
    base_offset: int
    key: str
    size: int


@dataclass(slots=True)
class EventLogContents:
    """How far a store's event log reaches, and what was wrong with it."""

    end_offsets: dict[int, int] = field(default_factory=dict)
    """The offset after the last, for each partition."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_there(self) -> bool:
        """Whether the store has an event log at all."""
        return bool(self.end_offsets)


def read_event_log(store: ObjectStore, events: WalEvents) -> EventLogContents:
    """Reads all of it into `events`. What cannot be read is a finding, and reading resumes after it.

    Memory follows the largest batch and what is kept of the events, not how far all batches unfold.
    """
    contents, gathered = EventLogContents(), GatheredEvents(events)
    for some in _rounds(sorted(_files(store))):
        for log_file, data in zip(some, in_parallel(store, lambda one: _read(store, one), some), strict=True):
            _take_file(log_file, data, contents, gathered)
    gathered.flush()
    return contents


def _rounds(files: Sequence[_LogFile]) -> Iterator[Sequence[_LogFile]]:
    """Files that are read at the same time: together no larger than the largest that is read at all."""
    some, size = list[_LogFile](), 0
    for one in files:
        bytes_read = one.size if one.size <= _LARGEST_FILE else 0
        if some and (len(some) == _READ_AT_ONCE or size + bytes_read > _LARGEST_FILE):
            yield some
            some, size = [], 0
        some.append(one)
        size += bytes_read
    if some:
        yield some


def _files(store: ObjectStore) -> Iterator[_LogFile]:
    for stored in store.list(EVENT_FOLDER):
        if match := _KEY.fullmatch(stored.key):
            yield _LogFile(int(match[1]), int(match[2]), stored.key, stored.size)


def is_event_key(key: str) -> bool:
    """Whether an object of this key belongs to the event log."""
    return _KEY.fullmatch(key) is not None


def _read(store: ObjectStore, log_file: _LogFile) -> bytes | None:
    """A file's bytes; None where no upload can have written so many."""
    return None if log_file.size > _LARGEST_FILE else store.read(log_file.key)


def _take_file(log_file: _LogFile, data: bytes | None, contents: EventLogContents, gathered: GatheredEvents) -> None:
    expected = contents.end_offsets.get(log_file.partition, 0)
    if log_file.base_offset != expected:
        reason = f"events from offset {expected} to {log_file.base_offset - 1} are missing before it"
        if log_file.base_offset < expected:
            reason = f"it begins at offset {log_file.base_offset}, but offset {expected} comes next"
        contents.findings.append(_damaged(log_file, reason))
    end = contents.end_offsets[log_file.partition] = max(expected, log_file.base_offset)
    if data is None:
        contents.findings.append(_damaged(log_file, f"{size_text(log_file.size)} is too much for one upload's events"))
        return
    if len(data) != log_file.size:
        contents.findings.append(_damaged(log_file, f"{len(data)} of {log_file.size} bytes were read"))
    if not data:
        contents.findings.append(_damaged(log_file, "it is empty"))
    reader = BlockReader(0, partial(_unreadable, log_file))
    for block in log_blocks(_pieces(data), len(data)):
        if isinstance(block, Damage):
            contents.findings.append(_damaged(log_file, f"byte {block.position}: {block.reason}"))
            continue
        if _has_control_batch(block):
            contents.findings.append(_damaged(log_file, "a control batch is not of events"))
        for chunk in reader.chunks(block):
            contents.findings += chunk.findings
            end, odd = gathered.add(log_file.partition, chunk, end)
            if odd is not None:
                reason = f"a record has offset {odd.offset}, where {odd.expected} comes next"
                contents.findings.append(_damaged(log_file, reason))
        end = max(end, end_offset(block))
    contents.end_offsets[log_file.partition] = end


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[first : first + _PIECE_BYTES] for first in range(0, len(data), _PIECE_BYTES))


def _has_control_batch(block: LogBlock[Any]) -> bool:
    if isinstance(block.headers, list):
        return any(header.is_control for header in block.headers)
    return bool((block.headers["attributes"] & Attributes.CONTROL).any())


def _unreadable(log_file: _LogFile, position: int, _: BatchHeader, reason: str) -> Finding:
    return _damaged(log_file, f"byte {position}: {reason}")


def _damaged(log_file: _LogFile, reason: str) -> Finding:
    evidence = {"key": log_file.key, "metadataPartition": log_file.partition, "metadataOffset": log_file.base_offset}
    return Finding(ProposalCode.WAL_METADATA_DAMAGED, log_file.key, reason, evidence)


class EventLog:
    """The log, to be written to. One run at a time may write; another one is noticed where the store can tell."""

    def __init__(self, store: WritableObjectStore, end_offsets: Mapping[int, int], clock_ms: Callable[[], int]) -> None:
        """`end_offsets` are those of the contents that were read under the same lease."""
        self._store = store
        self._ends = dict(end_offsets)
        self._clock_ms = clock_ms

    def append(self, published: Iterable[Publish]) -> None:
        """Writes events, each to its partition, in their order; all are in the store when it returns.

        Raises TieredctlError `lease-lost` if another run wrote meanwhile.
        """
        by_partition: dict[int, list[WalEvent]] = {}
        for one in published:
            by_partition.setdefault(one.metadata_partition, []).append(one.event)
        for partition, events in sorted(by_partition.items()):
            self._append_to(partition, events)

    def _append_to(self, partition: int, events: Sequence[WalEvent]) -> None:
        base, now_ms = self._ends.get(partition, 0), self._clock_ms()
        records = [Record(base + number, now_ms, None, encode_wal_event(event)) for number, event in enumerate(events)]
        key = f"{EVENT_FOLDER}{partition}/{segment_file_name(base, SegmentPart.LOG)}"
        data = encode_batch(records)
        if Capability.CONDITIONAL_WRITE in self._store.capabilities:
            self._store.put_if_absent(key, data)
        elif self._store.head(key) is None:
            self._store.write(key, data)
        if self._store.read(key) != data:
            message = f"Another run wrote {key} of {self._store.url} meanwhile."
            raise TieredctlError(ErrorCode.LEASE_LOST, message)
        self._ends[partition] = base + len(records)
