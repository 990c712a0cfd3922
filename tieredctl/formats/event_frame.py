"""The frame around the value of an event, or of a record of the metadata log (Kafka's AbstractApiMessageSerde): frame
version, apiKey and version, as unsigned varints."""

from __future__ import annotations

from collections.abc import Container

from tieredctl.errors import DecodeError
from tieredctl.formats.varints import Buffer, read_unsigned_varint, unsigned_varint

FRAME_VERSION = 1
MESSAGE_VERSION = 0
FRAME_BYTES = 3
"""The size of a frame whose apiKey and version take one byte each, as all have."""


def frame(api_key: int, version: int = MESSAGE_VERSION) -> bytes:
    """What stands before the record of an apiKey."""
    return unsigned_varint(FRAME_VERSION) + unsigned_varint(api_key) + unsigned_varint(version)


def read_frame(value: Buffer, api_keys: Container[int]) -> tuple[int, int]:
    """A value's apiKey and the position of its record. Raises DecodeError for another frame or an unknown apiKey."""
    frame_version, position = read_unsigned_varint(value, 0, len(value))
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"frame version {frame_version} is not {FRAME_VERSION}", 0)
    api_key, position = read_unsigned_varint(value, position, len(value))
    if api_key not in api_keys:
        raise DecodeError(f"unknown apiKey {api_key}", 1)
    version, position = read_unsigned_varint(value, position, len(value))
    if version != MESSAGE_VERSION:
        raise DecodeError(f"unknown version {version} of apiKey {api_key}", 2)
    return api_key, position


def demand_end(value: Buffer, position: int) -> None:
    """Raises DecodeError where a record ends before its value does."""
    if position != len(value):
        raise DecodeError(f"{len(value) - position} bytes left over", position)
