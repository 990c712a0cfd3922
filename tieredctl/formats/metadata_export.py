"""What `tieredctl metadata export` writes: the records of `__remote_log_metadata`, unchanged, and their content.

Two files of the same content, records by metadata partition, then in the order of the topic:

- Parquet. Row groups hold one metadata partition each; the header is the footer's key-value pair `HEADER_KEY`.
- JSON lines. The header is the first line; every other line is a record, its value in base64.

The first columns are needed for reading back. The others are for people and query engines, and null where a value
cannot be decoded; their names are those of `metadata format -o jsonl`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.crc32c import crc32c
from tieredctl.model.findings import Finding

METADATA_PARTITION, METADATA_OFFSET, TIMESTAMP_MS, VALUE = (
    *("metadataPartition", "metadataOffset", "timestampMs", "value"),
)
RECORD_COLUMNS = (METADATA_PARTITION, METADATA_OFFSET, TIMESTAMP_MS, VALUE)
TOMBSTONE_KEY = "tombstoneKey"
"""The key of a record that has no value. Null elsewhere; JSON lines leave it out there, and so do older exports."""
HEADER_KEY = b"tieredctl.MetadataExport"

_KIND, _API_VERSION = "MetadataExport", "tieredctl/v1"
_CHECKSUM = "crc32c"


class LinesExtent(NamedTuple):
    """Where a partition's lines are: bytes counted from the end of the first line, and their CRC-32C."""

    position: int
    length: int
    crc32c: int


class ExportedPartition(NamedTuple):
    """A metadata partition as it was read: from `start_offset`, up to, not including, `end_offset`."""

    metadata_partition: int
    start_offset: int
    end_offset: int
    records: int
    lines: LinesExtent | None = None
    """In JSON lines only."""


class ExportHeader(NamedTuple):
    """An export's header. `findings` are those of reading the source, not of decoding its records."""

    source: Mapping[str, Any]
    """How the source described itself; its `clusterId` is None, or absent, where that was not known."""
    partitions: Sequence[ExportedPartition]
    findings: Sequence[Finding]


class ExportedRecord(NamedTuple):
    """The part of a record in JSON lines that is needed to read it back."""

    metadata_partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    tombstone_key: bytes | None = None


def encode_header(header: ExportHeader) -> bytes:
    """The header as one line of JSON, without its end."""
    document = {
        "kind": _KIND,
        "apiVersion": _API_VERSION,
        "source": dict(header.source),
        "partitions": [_partition_document(partition) for partition in header.partitions],
        "findings": [finding.document() for finding in header.findings],
    }
    return _json(document | {_CHECKSUM: crc32c(_json(document))})


class AnotherFileError(DecodeError):
    """What should be an export does not begin as one: it is another kind of file, not a damaged one."""


def read_header(data: bytes) -> ExportHeader:
    """Raises AnotherFileError for what is not the header of an export, DecodeError for a damaged or later one."""
    try:
        document = _json_object(data)
    except DecodeError as error:
        raise AnotherFileError(error.reason, 0) from None
    if document.get("kind") != _KIND:
        raise AnotherFileError("not the header of a metadata export", 0)
    if document.get("apiVersion") != _API_VERSION:
        raise DecodeError(f"export of version {document.get('apiVersion')}, not {_API_VERSION}", 0)
    if document.pop(_CHECKSUM, None) != crc32c(_json(document)):
        raise DecodeError("the header of the metadata export was altered", 0)
    try:
        partitions = [_partition(entry) for entry in document["partitions"]]
        findings = [Finding.read(entry) for entry in document["findings"]]
        return ExportHeader(dict(document["source"]), partitions, findings)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"the header of the metadata export has a wrong {error}", 0) from None


def encode_record_line(record: ExportedRecord, decoded: Mapping[str, Any]) -> bytes:
    """A record's line with its end; `decoded` is the value's content, empty where it cannot be decoded."""
    place = (record.metadata_partition, record.offset, record.timestamp_ms)
    columns: dict[str, Any] = dict(zip(RECORD_COLUMNS, (*place, _text(record.value)), strict=True))
    if record.tombstone_key is not None:
        columns[TOMBSTONE_KEY] = _text(record.tombstone_key)
    return _json(columns | {"type": None} | dict(decoded)) + b"\n"


def read_record_line(line: bytes) -> ExportedRecord:
    """Raises DecodeError for what is not the line of a record."""
    document = _json_object(line)
    try:
        metadata_partition, offset, timestamp_ms, text = (document[name] for name in RECORD_COLUMNS)
        value, key = _bytes(text), _bytes(document.get(TOMBSTONE_KEY))
    except KeyError as error:
        raise DecodeError(f"record without {error}", 0) from None
    except (TypeError, ValueError):
        raise DecodeError("record with a value that is not base64", 0) from None
    if not all(type(number) is int for number in (metadata_partition, offset, timestamp_ms)):
        raise DecodeError("record with an offset or time that is not a number", 0)
    return ExportedRecord(metadata_partition, offset, timestamp_ms, value, key)


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes | None:
    """Raises TypeError or ValueError for what is not base64."""
    return None if text is None else b64decode(text, validate=True)


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode("ascii")


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise DecodeError("not JSON", 0) from None
    if not isinstance(document, dict):
        raise DecodeError("not a JSON object", 0)
    return document


def _partition_document(partition: ExportedPartition) -> dict[str, Any]:
    document: dict[str, Any] = {
        METADATA_PARTITION: partition.metadata_partition,
        "startOffset": partition.start_offset,
        "endOffset": partition.end_offset,
        "records": partition.records,
    }
    return document if partition.lines is None else document | {"lines": partition.lines._asdict()}


def _partition(document: Mapping[str, Any]) -> ExportedPartition:
    lines = document.get("lines")
    return ExportedPartition(
        int(document[METADATA_PARTITION]),
        int(document["startOffset"]),
        int(document["endOffset"]),
        int(document["records"]),
        None if lines is None else LinesExtent(int(lines["position"]), int(lines["length"]), int(lines["crc32c"])),
    )
