"""Objects to read as a table: what the control plane says of each, and what reading it costs, to cut work by.

The table is made by columns, at any size; what reads takes it in batches, wherever it runs. A row becomes an
`ObjectTask` only where the object is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import overload

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import flag_array, number_array, numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes
from tieredctl.ops.verification.report import Level
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, ProducerRows
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket
from tieredctl_inkless.ops.diskless.object_reading import HEADERS_READ, ObjectTask
from tieredctl_inkless.ops.diskless.producer_check import rows_of_producers

_ROW_NUMBERS = [field.name for field in fields(BatchRows) if field.name != "partitions"]
_STATE_NUMBERS = [field.name for field in fields(ProducerRows) if field.name != "partitions"]
_ROW = pa.struct(
    [
        *((name, pa.int64()) for name in _ROW_NUMBERS),
        ("topicId", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("isReported", pa.bool_()),
    ]
)
_STATE = pa.struct([*((name, pa.int64()) for name in _STATE_NUMBERS), ("row", pa.int64())])
OBJECT_TASK_SCHEMA = pa.schema(
    {
        "file": pa.int64(),
        "key": pa.binary(),
        "size": pa.int64(),
        "committedSize": pa.int64(),
        "rows": pa.list_(_ROW),
        "states": pa.list_(_STATE),
        "bytesToRead": pa.int64(),
        "requests": pa.int32(),
    }
)
"""A row for each object that is to be read; none is null. `file` is the file's number among `FileRows`, sizes are in
bytes: as listed, and as committed. `rows` are the control plane's batches by byte offset, in the names of `BatchRows`;
`states` are producer states, in those of `ProducerRows`, each with the number of its row among `rows`. The last two are
estimates."""
_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class ObjectTasks:
    """The objects of some files, to be read as deep as a level says."""

    bucket: DisklessBucket
    numbers: Ints
    """The numbers of files with batches, ascending."""
    level: Level
    reported: Flags
    """Which rows of `batches` are reported already."""

    def __len__(self) -> int:
        return len(self.numbers)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """By OBJECT_TASK_SCHEMA, made when they are asked for."""
        states = _StatesByFile(self.bucket) if self.level is Level.FULL else None
        names = self.bucket.partitions.names
        partitions = (
            pa.array([name.topic_id for name in names], pa.string()),
            pa.array([name.topic for name in names], pa.string()),
            pa.array([name.partition for name in names], pa.int32()),
        )
        for first in range(0, len(self.numbers), _AT_ONCE):
            yield self._batch(self.numbers[first : first + _AT_ONCE], partitions, states)

    def _batch(
        self, numbers: Ints, partitions: tuple[pa.Array, pa.Array, pa.Array], states: _StatesByFile | None
    ) -> pa.RecordBatch:
        files, sizes = self.bucket.files, self.bucket.sizes[numbers]
        counts = files.batch_counts[numbers]
        own = files.order[_ranges(files.bounds[numbers], counts)]
        rows = self.bucket.rows.at(own)
        whose = number_array(rows.partitions)
        values = [
            *(number_array(getattr(rows, name)) for name in _ROW_NUMBERS),
            *(names.take(whose) for names in partitions),
            flag_array(self.reported[own]),
        ]
        states_of_files, places, of_each = states.of(numbers) if states else _no_states(len(numbers))
        state_values = [
            *(number_array(getattr(states_of_files, name)) for name in _STATE_NUMBERS),
            number_array(places),
        ]
        is_full = self.level is Level.FULL
        headers = np.minimum(counts, HEADERS_READ)
        requests = 1 + sizes // STREAM_CHUNK_BYTES if is_full else headers
        return pa.RecordBatch.from_arrays(
            [
                number_array(numbers),
                pa.array([key_bytes(files.keys[number]) for number in numbers.tolist()], pa.binary()),
                number_array(sizes),
                number_array(files.sizes[numbers]),
                _lists(counts, values, _ROW),
                _lists(of_each, state_values, _STATE),
                number_array(sizes if is_full else np.zeros(len(numbers), np.int64)),
                number_array(requests.astype(np.int32)),
            ],
            schema=OBJECT_TASK_SCHEMA,
        )


def tasks_in(batch: pa.RecordBatch) -> Iterator[ObjectTask]:
    """The tasks of a batch by OBJECT_TASK_SCHEMA, or by one that has its columns among others."""
    rows, states = batch.column("rows"), batch.column("states")
    values = dict(zip(_ROW.names, rows.values.flatten(), strict=True))
    names = _NamesOfRows(values["topicId"], values["topic"], values["partition"])
    reported = values["isReported"].to_numpy(zero_copy_only=False)
    numbers = {name: numbers_in(values[name]) for name in _ROW_NUMBERS}
    all_rows = BatchRows(partitions=np.arange(len(names)), **numbers)
    values = dict(zip(_STATE.names, states.values.flatten(), strict=True))
    numbers = {name: numbers_in(values[name]) for name in _STATE_NUMBERS}
    all_states, places = ProducerRows(partitions=numbers_in(values["row"]), **numbers), numbers_in(values["row"])
    row_edges, state_edges = numbers_in(rows.offsets).tolist(), numbers_in(states.offsets).tolist()
    plain = zip(*(batch.column(name).to_pylist() for name in ("file", "key", "size", "committedSize")), strict=True)
    for place, (file, key, size, committed) in enumerate(plain):
        own = slice(row_edges[place], row_edges[place + 1])
        of_states = slice(state_edges[place], state_edges[place + 1])
        producers = all_states.at(of_states)
        producers = ProducerRows(
            producers.partitions + own.start, *(getattr(producers, name) for name in _STATE_NUMBERS)
        )
        yield ObjectTask(
            file, key.decode(), size, committed, all_rows.at(own), (producers, places[of_states]), names, reported[own]
        )


class _NamesOfRows(Sequence[TopicIdPartition]):
    """The partition of each row of a batch's tasks; few of them are ever asked for."""

    def __init__(self, topic_ids: pa.Array, topics: pa.Array, partitions: pa.Array) -> None:
        self._columns = (topic_ids, topics, partitions)

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, row: int) -> TopicIdPartition: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[TopicIdPartition]: ...

    def __getitem__(self, row: int | slice) -> TopicIdPartition | Sequence[TopicIdPartition]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        return TopicIdPartition(*(column[row].as_py() for column in self._columns))


class _StatesByFile:
    """Producer states by the file and the batch that has their offset; those whose batch is gone are left out."""

    def __init__(self, bucket: DisklessBucket) -> None:
        files = bucket.files
        place_of = np.full(len(bucket.rows), -1, np.int64)
        place_of[files.order] = np.arange(len(files.order))
        owners = rows_of_producers(bucket.rows, bucket.producers)
        places = np.where(owners >= 0, place_of[owners], -1) if len(place_of) else owners
        order = np.argsort(places, kind="stable")
        order = order[places[order] >= 0]
        self._producers, self._places, self._bounds = bucket.producers.at(order), places[order], files.bounds

    def of(self, numbers: Ints) -> tuple[ProducerRows, Ints, Ints]:
        """The producer states of some files; of each state the number of its batch in its file, and how many each file
        has."""
        begins, ends = self._bounds[numbers], self._bounds[numbers + 1]
        firsts = np.searchsorted(self._places, begins)
        counts = np.searchsorted(self._places, ends) - firsts
        own = _ranges(firsts, counts)
        return self._producers.at(own), self._places[own] - np.repeat(begins, counts), counts


def _no_states(files: int) -> tuple[ProducerRows, Ints, Ints]:
    nothing = np.zeros(0, np.int64)
    return ProducerRows(*(nothing for _ in fields(ProducerRows))), nothing, np.zeros(files, np.int64)


def _ranges(firsts: Ints, counts: Ints) -> Ints:
    """The numbers of several ranges, one after the other."""
    before = np.cumsum(counts) - counts
    numbers: Ints = np.repeat(firsts - before, counts) + np.arange(int(counts.sum()))
    return numbers


def _lists(counts: Ints, values: list[pa.Array], kind: pa.StructType) -> pa.ListArray:
    edges = np.append(0, np.cumsum(counts)).astype(np.int32)
    structs = pa.StructArray.from_arrays(values, fields=list(kind))
    return pa.ListArray.from_arrays(number_array(edges), structs)
