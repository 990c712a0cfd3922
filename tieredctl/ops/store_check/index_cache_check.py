"""Do the files in `remote-log-index-cache` belong to segments that the metadata has, and fit them?

Source: RemoteIndexCache. A broker fetches the three indexes of a segment when a consumer first needs it, and at start
deletes leftovers and incomplete entries; it keeps using a damaged entry that is complete.
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentFileName, SegmentPart
from tieredctl.formats.indexes import (
    ABORTED_TRANSACTION,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.documents import partition_document
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ops.store_check.local_stores import LocalStore, MetadataToCheck
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects

_CACHED_PARTS: Mapping[SegmentPart, Part] = {
    SegmentPart.OFFSET_INDEX: Part.OFFSET_INDEX,
    SegmentPart.TIME_INDEX: Part.TIME_INDEX,
    SegmentPart.TRANSACTION_INDEX: Part.TRANSACTION_INDEX,
}
_MAY_BE_ALTERED = (ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE)
_NO_EVIDENCE: Mapping[str, object] = MappingProxyType({})


class RemoteIndexes(NamedTuple):
    """Where what is cached was fetched from."""

    store: ObjectStore
    layout: SegmentObjects


class _Wrong(Exception):
    """Why a cached index cannot be its segment's. `position` is a byte of it."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    """The files of one segment in one cache."""

    segment_id: str
    files: Sequence[tuple[Path, SegmentFileName]]
    leftovers: Sequence[Path]


class IndexCacheCheck:
    """Judges the caches of several brokers, which must hold the same bytes for the same segment."""

    def __init__(self, metadata: MetadataToCheck, remote: RemoteIndexes | None = None) -> None:
        """Prepares a check of index caches; with `remote`, what is cached is compared with the remote store byte by
        byte."""
        self.files = 0
        self._metadata = metadata
        self._remote = remote
        self._digests: dict[tuple[str, SegmentPart], tuple[Path, bytes]] = {}

    def check(self, store: LocalStore) -> Iterator[Finding]:
        """What is wrong in one cache."""
        groups: dict[str, list[tuple[Path, SegmentFileName]]] = defaultdict(list)
        for path, name in store.cached:
            self.files += 1
            if name is None or name.segment_id is None or name.part not in _CACHED_PARTS:
                yield _passed_over(path, "it is not an index cache file")
            else:
                groups[name.segment_id].append((path, name))
        segments = self._metadata.segments(list(groups))
        for segment_id, files in groups.items():
            settled = [(path, name) for path, name in files if name.transition is None]
            leftovers = [path for path, name in files if name.transition]
            yield from self._check_entry(_CacheEntry(segment_id, settled, leftovers), segments.get(segment_id))

    def _check_entry(self, entry: _CacheEntry, metadata: RemoteLogSegmentMetadata | None) -> Iterator[Finding]:
        for path in entry.leftovers:
            yield _passed_over(path, "left by a download or an eviction; Kafka deletes it at its next start")
        if not entry.files:
            return
        if metadata is None:
            yield self._unknown(entry)
            return
        if metadata.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            path, _ = entry.files[0]
            yield _disagrees(path, metadata, "it is cached, but in the metadata its copy never finished")
            return
        if len(entry.files) < len(_CACHED_PARTS):
            yield _incomplete(entry, metadata)
        for path, name in entry.files:
            yield from self._check_file(path, name, metadata)

    def _unknown(self, entry: _CacheEntry) -> Finding:
        path, _ = entry.files[0]
        message = f"the metadata has no event for segment {entry.segment_id}"
        if not self._metadata.is_whole:
            message += " in the partitions that were read"
        severity = None if self._metadata.is_whole else Severity.INFO
        evidence = {"file": str(path), "segmentId": entry.segment_id}
        return Finding(FindingCode.STORE_DISAGREES, str(path), message, evidence, severity)

    def _check_file(self, path: Path, name: SegmentFileName, metadata: RemoteLogSegmentMetadata) -> Iterator[Finding]:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return  # evicted meanwhile
        except OSError as error:
            yield Finding(
                FindingCode.UNREADABLE, str(path), f"it cannot be read: {error.strerror}", {"file": str(path)}
            )
            return
        try:
            _demand_fit(name, data, metadata)
            self._demand_remote_bytes(name.part, data, metadata)
            self._demand_same_elsewhere(path, name.part, data, metadata.segment_id)
        except _Wrong as wrong:
            evidence = {"part": _CACHED_PARTS[name.part].value, "position": wrong.position}
            yield _disagrees(path, metadata, wrong.message, evidence)
        except TieredctlError as error:
            if error.code is ErrorCode.PRIVATE_KEY:
                raise  # more than this segment cannot be read
            is_gone = error.code is ErrorCode.OBJECT_MISSING
            code = FindingCode.OBJECT_MISSING if is_gone else FindingCode.UNREADABLE
            message = f"the remote index to compare it with cannot be read: {error.message}"
            yield Finding(code, str(path), message, _facts(path, metadata) | {"part": _CACHED_PARTS[name.part].value})

    def _demand_remote_bytes(self, part: SegmentPart, data: bytes, metadata: RemoteLogSegmentMetadata) -> None:
        """Raises _Wrong, or TieredctlError where the remote store cannot be read; not before a second reading over new
        connections, since bytes may be altered on the way."""
        if self._remote is None or metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            return
        store, layout = self._remote
        remote = read_again(
            store,
            lambda at: _remote_index(at, layout, metadata, part),
            _MAY_BE_ALTERED,
            is_sound=lambda found: found == data,
        )
        if remote != data:
            position = _first_difference(data, remote)
            message = f"its {len(data)} bytes differ from the remote store's {len(remote)} at byte {position}"
            raise _Wrong(message, position)

    def _demand_same_elsewhere(self, path: Path, part: SegmentPart, data: bytes, segment_id: str) -> None:
        digest = hashlib.sha256(data).digest()
        other, other_digest = self._digests.setdefault((segment_id, part), (path, digest))
        if digest != other_digest:
            raise _Wrong(f"it differs from {other}")


def _remote_index(
    store: ObjectStore, layout: SegmentObjects, metadata: RemoteLogSegmentMetadata, part: SegmentPart
) -> bytes:
    """A segment's index, as a broker would cache it."""
    try:
        return layout.open_segment(store, metadata).read(_CACHED_PARTS[part])
    except TieredctlError as error:
        if error.code is ErrorCode.OBJECT_MISSING and part is SegmentPart.TRANSACTION_INDEX:
            return b""  # Kafka caches a transaction index that does not exist as an empty one
        raise


def _demand_fit(name: SegmentFileName, data: bytes, metadata: RemoteLogSegmentMetadata) -> None:
    if name.offset != metadata.start_offset:
        raise _Wrong(f"its name has start offset {name.offset}, but the metadata {metadata.start_offset}")
    try:
        _DEMANDS[name.part](data, metadata)
    except DecodeError as error:
        raise _Wrong(f"it is damaged: {error.message}", error.position) from None


def _demand_offset_index(data: bytes, metadata: RemoteLogSegmentMetadata) -> None:
    width = struct.calcsize(OFFSET_INDEX_ENTRY.fixed_format)
    entries = read_offset_index(data)
    _demand_no_padding(data, len(entries) * width)
    for number, entry in enumerate(entries):
        _demand_offset_inside(entry.relative_offset + metadata.start_offset, metadata, number * width)
        size = metadata.known_size
        if size is not None and entry.position >= size:
            raise _Wrong(f"it points at byte {entry.position} of a log of {size} bytes", number * width)


def _demand_time_index(data: bytes, metadata: RemoteLogSegmentMetadata) -> None:
    width = struct.calcsize(TIME_INDEX_ENTRY.fixed_format)
    entries = read_time_index(data)
    _demand_no_padding(data, len(entries) * width)
    for number, entry in enumerate(entries):
        _demand_offset_inside(entry.relative_offset + metadata.start_offset, metadata, number * width)


def _demand_transaction_index(data: bytes, metadata: RemoteLogSegmentMetadata) -> None:
    width = struct.calcsize(ABORTED_TRANSACTION.fixed_format)
    entries = read_transaction_index(data)
    if entries and metadata.txn_idx_empty:
        raise _Wrong(
            f"it has {counted(len(entries), 'entry', 'entries')}, but the metadata says that there are none", 0
        )
    for number, entry in enumerate(entries):
        # A transaction may begin in an earlier segment, but is indexed where its abort marker is.
        _demand_offset_inside(entry.last_offset, metadata, number * width)


_DEMANDS: Mapping[SegmentPart, Callable[[bytes, RemoteLogSegmentMetadata], None]] = {
    SegmentPart.OFFSET_INDEX: _demand_offset_index,
    SegmentPart.TIME_INDEX: _demand_time_index,
    SegmentPart.TRANSACTION_INDEX: _demand_transaction_index,
}


def _demand_no_padding(data: bytes, end: int) -> None:
    if len(data) != end:
        raise _Wrong(f"its last {len(data) - end} bytes are zeros, which only an active segment's index has", end)


def _demand_offset_inside(offset: int, metadata: RemoteLogSegmentMetadata, position: int) -> None:
    if not metadata.start_offset <= offset <= metadata.end_offset:
        claim = f"{metadata.start_offset} to {metadata.end_offset}"
        raise _Wrong(f"it has offset {offset}, but the segment holds {claim}", position)


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((position for position, (a, b) in pairs if a != b), min(len(one), len(other)))


def _incomplete(entry: _CacheEntry, metadata: RemoteLogSegmentMetadata) -> Finding:
    path, _ = entry.files[0]
    present = {name.part for _, name in entry.files}
    lacking = ", ".join(part.value for part in _CACHED_PARTS if part not in present)
    return _disagrees(
        path,
        metadata,
        f"the entry lacks {lacking}: Kafka deletes it at its next start, unless it is being fetched",
        severity=Severity.INFO if entry.leftovers else Severity.WARNING,
    )


def _disagrees(
    path: Path,
    metadata: RemoteLogSegmentMetadata,
    message: str,
    evidence: Mapping[str, object] = _NO_EVIDENCE,
    severity: Severity | None = None,
) -> Finding:
    return Finding(FindingCode.STORE_DISAGREES, str(path), message, _facts(path, metadata) | dict(evidence), severity)


def _facts(path: Path, metadata: RemoteLogSegmentMetadata) -> dict[str, object]:
    return {
        "file": str(path),
        **partition_document(metadata.topic_id_partition),
        "segmentId": metadata.segment_id,
        "state": metadata.state.name,
    }


def _passed_over(path: Path, why: str) -> Finding:
    return Finding(FindingCode.FOLDER_PASSED_OVER, str(path), f"passed over: {why}", {"file": str(path)})
