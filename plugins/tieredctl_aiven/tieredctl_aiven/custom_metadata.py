"""What the plugin gives to Kafka as a segment's custom metadata (SegmentCustomMetadataSerde): tagged fields, of which
two say where the segment's objects are."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.errors import DecodeError
from tieredctl.formats.varints import read_unsigned_varint, read_varlong, unsigned_varint, varlong

_REMOTE_SIZE, _OBJECT_PREFIX, _OBJECT_KEY = range(3)


@dataclass(frozen=True, slots=True)
class CustomMetadata:
    """The fields; None for those that the plugin is not configured to include (`custom.metadata.fields.include`)."""

    remote_size: int | None = None
    """The total size in bytes of the segment's three objects."""
    object_prefix: str | None = None
    object_key: str | None = None
    """Without prefix and suffix."""


def read_custom_metadata(data: bytes) -> CustomMetadata:
    """The fields of custom metadata; fields of later releases are skipped. Raises DecodeError."""
    fields: dict[int, bytes] = {}
    count, position = read_unsigned_varint(data, 0, len(data)) if data else (0, 0)
    for _ in range(count):
        start = position
        tag, position = read_unsigned_varint(data, position, len(data))
        size, position = read_unsigned_varint(data, position, len(data))
        if fields and tag <= max(fields):
            raise DecodeError(f"custom metadata has field {tag} out of order", start)
        if size > len(data) - position:
            raise DecodeError(f"custom metadata claims {size} bytes for field {tag}", start)
        fields[tag] = data[position : position + size]
        position += size
    if position != len(data):
        raise DecodeError("custom metadata has bytes after its last field", position)
    return CustomMetadata(
        _varlong(fields.get(_REMOTE_SIZE)), _text(fields.get(_OBJECT_PREFIX)), _text(fields.get(_OBJECT_KEY))
    )


def encode_custom_metadata(fields: CustomMetadata) -> bytes | None:
    """The bytes of the fields that are set; None without any, as in the plugin."""
    values = (
        None if fields.remote_size is None else varlong(fields.remote_size),
        None if fields.object_prefix is None else _compact(fields.object_prefix),
        None if fields.object_key is None else _compact(fields.object_key),
    )
    tagged = [
        unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in enumerate(values) if data is not None
    ]
    return unsigned_varint(len(tagged)) + b"".join(tagged) if tagged else None


def _compact(text: str) -> bytes:
    data = text.encode("utf-8")
    return unsigned_varint(len(data) + 1) + data


def _varlong(data: bytes | None) -> int | None:
    if data is None:
        return None
    value, position = read_varlong(data, 0, len(data))
    if position != len(data):
        raise DecodeError("a number in custom metadata has bytes after its end", position)
    return value


def _text(data: bytes | None) -> str | None:
    """A compact string: its length plus one, then UTF-8."""
    if data is None:
        return None
    length, position = read_unsigned_varint(data, 0, len(data))
    if position + length - 1 != len(data):
        raise DecodeError(f"a string in custom metadata claims {length - 1} bytes", 0)
    try:
        return data[position:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("a string in custom metadata is not UTF-8", position + error.start) from None
