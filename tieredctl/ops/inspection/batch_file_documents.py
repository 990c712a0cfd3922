"""Files of record batches, which may be large, as documents: fields, then entries as the file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.control_records import ControlRecord, decode_control_record
from tieredctl.formats.diskless_objects import PRODUCED_BASE_OFFSET
from tieredctl.formats.file_names import parse_kraft_snapshot_name, parse_segment_file_name
from tieredctl.formats.kafka_json import base64_text, json_document
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import (
    BATCH_HEADER,
    MAGIC,
    NO_SEQUENCE,
    Attributes,
    BatchHeader,
    read_records,
)
from tieredctl.ops.documents import Document
from tieredctl.ops.inspection.file_kinds import FileKind

ChunksFromStart = Callable[[], Iterable[bytes]]
"""Each call reads a file in pieces, from its start."""

_SEQUENCES = 1 << 31
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def _log(name: str, chunks: ChunksFromStart, size: int) -> tuple[Document, Iterator[Document]]:
    segment = parse_segment_file_name(name)
    fields = {
        "baseOffset": segment.offset if segment else None,
        "segmentId": segment.segment_id if segment else None,
    }
    return fields, _log_entries(chunks, size, may_be_transformed=segment is not None and segment.segment_id is not None)


def _diskless_object(name: str, chunks: ChunksFromStart, size: int) -> tuple[Document, Iterator[Document]]:  # noqa: ARG001 - it says nothing
    return {}, _log_entries(chunks, size, base_offset=PRODUCED_BASE_OFFSET)


def _log_entries(
    chunks: ChunksFromStart, size: int, *, may_be_transformed: bool = False, base_offset: int | None = None
) -> Iterator[Document]:
    for part in scan_log(chunks(), size, OneByOne(), base_offset):
        if isinstance(part, Damage):
            if may_be_transformed and _is_transformed(part, chunks, size):
                raise TieredctlError(ErrorCode.TRANSFORMED, "no record batch in it")
            yield from _damage(part, chunks, size)
            continue
        for position, header in zip(part.positions, part.headers, strict=True):
            file_position = part.file_position + position
            controls = _control_records(part.buffer, position, header, file_position) if header.is_control else {}
            yield _batch(file_position, header, is_valid=True) | controls


def _damage(damage: Damage, chunks: ChunksFromStart, size: int) -> Iterator[Document]:
    header = damage.header
    if header is None and damage.end == size and _is_zero(chunks(), damage.position):
        return  # preallocated, not damaged
    if _is_of_no_batch(damage, size):
        raise DecodeError(f"no record batch in it, {damage.reason}", 0)
    if header is None:
        size_of_damage = damage.end - damage.position
        yield {"position": damage.position, "size": size_of_damage, "isValid": False, "reason": damage.reason}
    else:
        yield _batch(damage.position, header, is_valid=False) | {"reason": damage.reason}


def _is_transformed(damage: Damage, chunks: ChunksFromStart, size: int) -> bool:
    """Whether a log looks compressed (zstd keeps incompressible data as it is) or encrypted by a storage manager: no
    batch in it, not even a damaged one."""
    if damage.position == 0 and next(iter(chunks()), b"").startswith(_ZSTD_MAGIC):
        return True
    header = damage.header
    has_batch = header is not None and header.magic == MAGIC and 0 < header.batch_length < size
    return damage.position == 0 and damage.end == size and not has_batch


def _is_of_no_batch(damage: Damage, size: int) -> bool:
    """Whether nothing in the file looks like a batch, damaged or not."""
    header = damage.header
    return damage.position == 0 and damage.end == size and (header is None or header.magic != MAGIC)


def _batch(position: int, header: BatchHeader, *, is_valid: bool) -> Document:
    """A batch's header, and what its attributes mean in the words of Kafka's dump-log."""
    has_sequence = header.base_sequence != NO_SEQUENCE
    last_sequence = (header.base_sequence + header.last_offset_delta) % _SEQUENCES if has_sequence else NO_SEQUENCE
    return {
        "position": position,
        "size": header.size,
        "isValid": is_valid,
        **json_document(BATCH_HEADER, dict(zip((field.name for field in BATCH_HEADER.fields), header, strict=True))),
        "lastOffset": header.last_offset,
        "lastSequence": last_sequence,
        "compressionType": _compression_type(header),
        "timestampType": "LogAppendTime" if header.attributes & Attributes.LOG_APPEND_TIME else "CreateTime",
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "controlType": None,
        "deleteHorizonMs": header.base_timestamp if header.attributes & Attributes.DELETE_HORIZON else None,
    }


def _compression_type(header: BatchHeader) -> str | None:
    try:
        return header.codec.name.lower()
    except DecodeError:
        return None


def _control_records(buffer: bytes, position: int, header: BatchHeader, file_position: int) -> Document:
    """A batch's control records, and the type of the first: all have it, except in KRaft's first batches."""
    try:
        records = [
            {"offset": record.offset, **_control_record(decode_control_record(record))}
            for record in read_records(buffer, position, header)
        ]
    except DecodeError as error:
        raise DecodeError(f"{error.reason}, in a control record of the batch", file_position) from None
    return {"controlType": records[0]["controlType"] if records else None, "controlRecords": records}


def _control_record(record: ControlRecord) -> Document:
    document: Document = {"controlType": record.type_name}
    if record.schema is None or record.fields is None:
        return document
    return document | {"fields": json_document(record.schema, record.fields)}


def _is_zero(chunks: Iterable[bytes], position: int) -> bool:
    """Whether a file holds nothing but zeros from a position on."""
    start = 0
    for chunk in chunks:
        if any(memoryview(chunk)[max(position - start, 0) :]):
            return False
        start += len(chunk)
    return True


def _kraft_snapshot(name: str, chunks: ChunksFromStart, size: int) -> tuple[Document, Iterator[Document]]:
    snapshot = parse_kraft_snapshot_name(name)
    records = read_kraft_snapshot(chunks(), size)
    first = list(islice(records, 1))
    fields = {
        "endOffset": snapshot.end_offset if snapshot else None,
        "epoch": snapshot.epoch if snapshot else None,
        "lastContainedLogTimestamp": _last_contained_log_timestamp(first[0]),
    }
    return fields, (_snapshot_record(record) for record in chain(first, records))


def _last_contained_log_timestamp(header: KraftLogRecord) -> Any:
    fields = header.content.fields
    assert fields is not None  # the reader ensures that this is the header
    return fields["LastContainedLogTimestamp"]


def _snapshot_record(record: KraftLogRecord) -> Document:
    document: Document = {"offset": record.offset, "timestamp": record.timestamp, "position": record.batch_position}
    content = record.content
    if isinstance(content, ControlRecord):
        return document | _control_record(content)
    document |= {"apiKey": content.api_key, "version": content.version}
    if content.schema is None or content.fields is None:
        return document | {"payload": base64_text(content.payload)}
    return document | {"type": content.schema.name, "fields": json_document(content.schema, content.fields)}


BATCH_FILES: Mapping[FileKind, Callable[[str, ChunksFromStart, int], tuple[Document, Iterator[Document]]]] = {
    FileKind.LOG: _log,
    FileKind.DISKLESS_OBJECT: _diskless_object,
    FileKind.KRAFT_SNAPSHOT: _kraft_snapshot,
}
"""Each takes a file's name, a reader of its bytes, and its size, and raises DecodeError where it is damaged."""
