"""The control plane's batches as columns of numbers, and the partitions they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables

_UUID_HALVES = np.dtype([("high", ">u8"), ("low", ">u8")])


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of one length."""

    def at(self, rows: Any) -> Self:
        """Some of the rows: by their numbers, a slice or flags."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class BatchRows(Rows):
    """Rows of the table `batches`. Offsets are inclusive, `starts` and `sizes` are bytes of the file."""

    ids: Ints
    partitions: Ints
    """Numbers of `Partitions`."""
    files: Ints
    bases: Ints
    lasts: Ints
    starts: Ints
    sizes: Ints
    magics: Ints
    timestamp_types: Ints
    max_timestamps: Ints

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ends(self) -> Ints:
        """Bytes after each."""
        return self.starts + self.sizes


@dataclass(frozen=True, slots=True)
class ProducerRows(Rows):
    """Rows of the table `producer_state`."""

    partitions: Ints
    producer_ids: Ints
    epochs: Ints
    base_sequences: Ints
    last_sequences: Ints
    offsets: Ints
    max_timestamps: Ints

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Every partition that a table names, by number."""

    names: Sequence[TopicIdPartition]
    """Without a topic's name where no log has the partition."""
    logs: Ints
    """The row of `logs` of each; -1 where it has none."""


def numbered(tables: ControlPlaneTables) -> tuple[Partitions, BatchRows, ProducerRows]:
    """Batches and producers by the numbers of their partitions, in the order of the tables."""
    parts = [_partition_columns(table) for table in (tables.logs, tables.batches, tables.producers)]
    distinct, (logs, batches, producers) = _distinct(parts)
    log_of = np.full(len(distinct), -1, np.int64)
    log_of[logs] = np.arange(len(logs))
    topics = tables.logs["topic"].to_pylist()
    names = [
        TopicIdPartition(uuid_text(row.tobytes()[:16]), topics[log] if log >= 0 else "", int(row["partition"]))
        for row, log in zip(distinct, log_of.tolist(), strict=True)
    ]
    return Partitions(names, log_of), batch_rows(tables.batches, batches), _producer_rows(tables.producers, producers)


def column(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers without nulls."""
    return whole_numbers(table[name])


def whole_numbers(values: pa.ChunkedArray) -> Ints:
    """A column of whole numbers as an array; none may be null."""
    if not len(values):
        return np.zeros(0, np.int64)
    numbers: Ints = numbers_in(values.combine_chunks()).astype(np.int64)
    return numbers


def number_of_each(wanted: Ints, among: Ints) -> tuple[Ints, Flags]:
    """Where each number is among distinct ascending ones, and whether it is there."""
    at = np.minimum(np.searchsorted(among, wanted), max(len(among) - 1, 0))
    return at, among[at] == wanted if len(among) else np.zeros(len(wanted), np.bool_)


def _distinct(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], list[Ints]]:
    """The distinct values of all parts, and of each part the numbers of its values.

    Equal ones mostly lie side by side: only the first of them is compared with all others.
    """
    begins = [np.flatnonzero(_changes(part)) for part in parts]
    heads = [part[begin] for part, begin in zip(parts, begins, strict=True)]
    distinct, numbers = np.unique(np.concatenate(heads), return_inverse=True)
    of_heads = np.split(numbers, np.cumsum([len(head) for head in heads])[:-1])
    lengths = [np.diff(np.append(begin, len(part))) for part, begin in zip(parts, begins, strict=True)]
    return distinct, [np.repeat(number, length) for number, length in zip(of_heads, lengths, strict=True)]


def _changes(part: NDArray[Any]) -> Flags:
    changes = np.ones(len(part), np.bool_)
    if len(part):
        changes[1:] = False
        for name in part.dtype.names or ():
            changes[1:] |= part[name][1:] != part[name][:-1]
    return changes


def _partition_columns(table: pa.Table) -> NDArray[Any]:
    partitions = np.zeros(table.num_rows, np.dtype([*_UUID_HALVES.descr, ("partition", ">i4")]))
    if table.num_rows:
        ids = table["topicId"].combine_chunks()
        halves = np.frombuffer(ids.buffers()[1], _UUID_HALVES)[ids.offset : ids.offset + len(ids)]
        partitions["high"], partitions["low"] = halves["high"], halves["low"]
        partitions["partition"] = column(table, "partition")
    return partitions


def batch_rows(table: pa.Table, partitions: Ints) -> BatchRows:
    """Rows of a table with the columns of BATCHES, and the number of each one's partition."""
    names = ("fileId", "baseOffset", "lastOffset", "byteOffset", "byteSize", "magic", "timestampType")
    return BatchRows(
        column(table, "batchId"), partitions, *(column(table, name) for name in (*names, "batchMaxTimestamp"))
    )


def _producer_rows(table: pa.Table, partitions: Ints) -> ProducerRows:
    names = ("producerId", "producerEpoch", "baseSequence", "lastSequence", "assignedOffset", "batchMaxTimestamp")
    return ProducerRows(partitions, *(column(table, name) for name in names))
