"""The topic that a partition folder belongs to: `partition.metadata` (PartitionMetadataFile)."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import Primitive
from tieredctl.formats.text_lines import Line, lines_of, whole_number
from tieredctl.formats.varints import Buffer
from tieredctl.model.ids import ZERO_UUID, uuid_bytes

PARTITION_METADATA_FILE = "partition.metadata"

_KEYS = ("version", "topic_id")


class PartitionMetadata(NamedTuple):
    """The file's version, 0 so far, and the id of the topic."""

    version: int
    topic_id: str


def read_partition_metadata(data: Buffer) -> PartitionMetadata:
    """Raises DecodeError where a broker would refuse the file. A version above 0 is read like 0, as a broker does."""
    lines = lines_of(data)
    if len(lines) < len(_KEYS):
        raise DecodeError("partition.metadata ends before its topic_id", len(data))
    version_text, topic_id = (_value(key, line) for key, line in zip(_KEYS, lines, strict=False))
    version = whole_number(version_text, Primitive.INT32, lines[0].position)
    if version < 0:
        raise DecodeError(f"partition.metadata has version {version}", lines[0].position)
    try:
        uuid_bytes(topic_id)
    except ValueError:
        raise DecodeError("topic_id is not a Kafka Uuid", lines[1].position) from None
    if topic_id == ZERO_UUID:
        raise DecodeError("topic_id is the zero id", lines[1].position)
    return PartitionMetadata(version, topic_id)


def encode_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Two lines, the second without an end, as Kafka writes them."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode("ascii")


def _value(key: str, line: Line) -> str:
    name, separator, value = line.text.partition(":")
    if name != key or not separator:
        raise DecodeError(f"partition.metadata has no {key} where it belongs", line.position)
    return value.strip()
