"""Kafka's checkpoint files: text, a version, a count, then one entry per line (CheckpointFile).

Sources: CheckpointFile, LeaderEpochCheckpointFile, OffsetCheckpointFile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import Field, Length, Primitive, Struct
from tieredctl.formats.text_lines import Line, lines_of, whole_number
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values

CHECKPOINT_VERSION = 0

LEADER_EPOCH_ENTRY = Struct("EpochEntry", (Field("epoch", Primitive.INT32), Field("startOffset", Primitive.INT64)))
OFFSET_ENTRY = Struct(
    "OffsetCheckpoint",
    (Field("topic", Length.STRING), Field("partition", Primitive.INT32), Field("offset", Primitive.INT64)),
)

_BETWEEN_COLUMNS = re.compile(r"\s+", re.ASCII)


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written under it."""

    epoch: int
    start_offset: int


class CheckpointedOffset(NamedTuple):
    """A line of a log directory's offset checkpoint; what the offset means depends on the file's name."""

    topic: str
    partition: int
    offset: int


def read_leader_epoch_checkpoint(data: Buffer) -> list[EpochEntry]:
    """The lineage in a `leader-epoch-checkpoint`, in the file's order; an empty file holds none. Raises DecodeError."""
    return [EpochEntry(*values.values()) for values in read_checkpoint(LEADER_EPOCH_ENTRY, data)]


def encode_leader_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """The bytes of a `leader-epoch-checkpoint`, entries in the order given; Kafka writes them ascending."""
    return encode_checkpoint(LEADER_EPOCH_ENTRY, [_named(LEADER_EPOCH_ENTRY, entry) for entry in entries])


def read_offset_checkpoint(data: Buffer) -> list[CheckpointedOffset]:
    """A log directory's recovery-point, log-start, replication or cleaner checkpoint. Raises DecodeError."""
    return [CheckpointedOffset(*values.values()) for values in read_checkpoint(OFFSET_ENTRY, data)]


def encode_offset_checkpoint(entries: Iterable[CheckpointedOffset]) -> bytes:
    """The bytes of an offset checkpoint, entries in the order given."""
    return encode_checkpoint(OFFSET_ENTRY, [_named(OFFSET_ENTRY, entry) for entry in entries])


def read_checkpoint(entry: Struct, data: Buffer) -> list[Values]:
    """The entries of a checkpoint file whose lines have the struct's fields as columns. Raises DecodeError."""
    lines = lines_of(data)
    if not lines:
        return []
    version = whole_number(lines[0].text, Primitive.INT32, lines[0].position)
    if version != CHECKPOINT_VERSION:
        raise DecodeError(f"checkpoint version {version} is not {CHECKPOINT_VERSION}", lines[0].position)
    if len(lines) == 1:
        raise DecodeError("checkpoint ends before its count", len(data))
    count = whole_number(lines[1].text, Primitive.INT32, lines[1].position)
    if count != len(lines) - 2:
        raise DecodeError(f"checkpoint claims {count} entries where {len(lines) - 2} are", lines[1].position)
    return [read_columns(entry, line) for line in lines[2:]]


def encode_checkpoint(entry: Struct, entries: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of a checkpoint file; the opposite of `read_checkpoint`."""
    lines = [str(CHECKPOINT_VERSION), str(len(entries)), *(column_text(entry, values) for values in entries)]
    return "".join(line + "\n" for line in lines).encode("utf-8")


def read_columns(entry: Struct, line: Line) -> Values:
    """A line's columns, separated by white space, as the struct's fields."""
    columns = _BETWEEN_COLUMNS.split(line.text.rstrip(" \t"))
    if len(columns) != len(entry.fields):
        raise DecodeError(f"line has {len(columns)} columns where {entry.name} has {len(entry.fields)}", line.position)
    return {
        field.name: whole_number(column, field.type, line.position) if isinstance(field.type, Primitive) else column
        for field, column in zip(entry.fields, columns, strict=True)
    }


def column_text(entry: Struct, values: Mapping[str, Any]) -> str:
    """A line without its end; the opposite of `read_columns`."""
    return " ".join(str(values[field.name]) for field in entry.fields)


def _named(entry: Struct, values: Iterable[Any]) -> Values:
    return {field.name: value for field, value in zip(entry.fields, values, strict=True)}
