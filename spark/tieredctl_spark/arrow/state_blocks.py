"""Segments' states as tasks give them to each other: tens of thousands in one value, which Spark moves as it is.

Row by row, Spark takes several times as long to move them as it takes to replay them. So a block is a table of its own,
in Arrow's stream format, that says once what is true of a partition.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import flag_array, number_array, numbers_in
from tieredctl.formats.uuid_columns import UuidColumns, uuid_columns
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import UUID_BYTES, TopicIdPartition
from tieredctl.ops.orphans.segment_states import SegmentStates
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS, STATE_SCHEMA

BLOCK = "block"
BLOCK_SCHEMA = pa.schema({BLOCK: pa.binary()})
HASH = "hash"
"""The hash of a segment's id: what a block's rows may have besides STATE_SCHEMA."""

_OWNER, _ID = "owner", "segmentId"
_OF_PARTITION = ("topic", "topicId", "partition", "removal", *COPIED_FIELDS)
_SCHEMA = pa.schema(
    [
        (_OWNER, pa.dictionary(pa.int32(), pa.struct([STATE_SCHEMA.field(name) for name in _OF_PARTITION]))),
        (_ID, pa.binary(UUID_BYTES)),
        *(field for field in STATE_SCHEMA if field.name not in (*_OF_PARTITION, _ID)),
    ]
)
_HASH_FIELD = pa.field(HASH, pa.int64())
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_SEGMENTS_IN_BLOCK = 1 << 16


def state_fields(names: Sequence[str]) -> pa.Schema:
    """The columns of `StateBlock.rows`."""
    return pa.schema([_HASH_FIELD if name == HASH else STATE_SCHEMA.field(name) for name in names])


@dataclass(frozen=True, slots=True)
class StateBlock:
    """The states of some segments, those of a partition together."""

    batch: pa.RecordBatch

    @classmethod
    def of(cls, states: SegmentStates) -> StateBlock:
        """All of them, with the partitions that have none."""
        order = np.argsort(states.owners, kind="stable")
        partitions = _partition_rows(states)
        columns = [
            pa.DictionaryArray.from_arrays(number_array(states.owners[order].astype(np.int32)), partitions),
            _id_array(states.segment_ids.at(order)),
            number_array(states.states[order]),
            number_array(states.start_offsets[order]),
            number_array(states.metadata_partitions[order].astype(np.int32)),
            number_array(states.metadata_offsets[order]),
            flag_array(states.superseded[order]),
        ]
        return cls(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))

    @classmethod
    def unpacked(cls, data: pa.BinaryScalar) -> StateBlock:
        """A value of a column by BLOCK_SCHEMA."""
        with pa.ipc.open_stream(data.as_buffer()) as stream:
            return cls(stream.read_next_batch())

    def packed(self) -> pa.Table:
        """By BLOCK_SCHEMA: as many rows as it takes."""
        starts = range(0, len(self), _SEGMENTS_IN_BLOCK)
        return pa.table([[_packed(self.batch.slice(start, _SEGMENTS_IN_BLOCK)) for start in starts]], BLOCK_SCHEMA)

    def __len__(self) -> int:
        return len(self.batch)

    def where(self, wanted: Flags) -> StateBlock:
        """Some of them."""
        return StateBlock(self.batch.filter(flag_array(wanted)))

    @property
    def ids(self) -> UuidColumns:
        """The ids of the segments."""
        column = self.batch.column(_ID)
        data = np.frombuffer(column.buffers()[1] or b"", np.dtype((np.void, UUID_BYTES)))
        return uuid_columns(data[column.offset : column.offset + len(column)])

    @property
    def owners(self) -> NDArray[np.int32]:
        """Which of `partitions` has each segment."""
        owners: NDArray[np.int32] = numbers_in(self.batch.column(_OWNER).indices)
        return owners

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """Those of the segments, and perhaps others."""
        names = (self._of_partition(name).to_pylist() for name in ("topicId", "topic", "partition"))
        return [TopicIdPartition(*one) for one in zip(*names, strict=True)]

    @property
    def are_readable(self) -> Flags:
        """Whether each segment is in COPY_SEGMENT_FINISHED, and its partition not being removed."""
        are_finished: Flags = self.numbers("state") == RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        are_removed: NDArray[Any] = self._of_partition("removal").is_valid().to_numpy(zero_copy_only=False)
        return are_finished & ~are_removed.astype(np.bool_)[self.owners]

    @property
    def hashes(self) -> Ints:
        """The hashes of their ids."""
        return self.ids.hashes().view(np.int64)

    def are_of(self, partitions: Container[TopicIdPartition]) -> Flags:
        """Whether each segment is of one of these partitions."""
        wanted: Flags = np.array([one in partitions for one in self.partitions], np.bool_)[self.owners]
        return wanted

    def numbers(self, name: str) -> Ints:
        """A column of numbers that each segment has its own of."""
        return numbers_in(self.batch.column(name))

    def rows(self, names: Sequence[str] = tuple(STATE_SCHEMA.names)) -> pa.Table:
        """By STATE_SCHEMA, or by `state_fields` of some columns."""
        return pa.table([self._column(name) for name in names], state_fields(names))

    def partition_rows(self, names: Sequence[str]) -> pa.Table:
        """What columns say that are the same for all segments of a partition: once for each that has any."""
        used = number_array(np.unique(self.owners))
        return pa.table([self._of_partition(name).take(used) for name in names], state_fields(names))

    def _of_partition(self, name: str) -> pa.Array:
        return pc.struct_field(self.batch.column(_OWNER).dictionary, name)

    def _column(self, name: str) -> pa.Array:
        if name == HASH:
            return number_array(self.hashes)
        if name == _ID:
            return self.ids.text_array()
        return self._of_partition(name).take(number_array(self.owners)) if name in _OF_PARTITION else self.batch[name]


def _partition_rows(states: SegmentStates) -> pa.StructArray:
    partitions, copied = states.partitions, states.copied
    removals = [states.partition_deletes.get(number) for number in range(len(partitions))]
    columns = [
        [one.topic for one in partitions],
        [one.topic_id for one in partitions],
        [one.partition for one in partitions],
        [None if one is None else int(one) for one in removals],
        *(number_array(column[: len(partitions)]) for column in (copied.firsts, copied.lasts, copied.begun_ms)),
    ]
    fields = [STATE_SCHEMA.field(name) for name in _OF_PARTITION]
    return pa.StructArray.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], fields=fields
    )


def _id_array(ids: UuidColumns) -> pa.FixedSizeBinaryArray:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(UUID_BYTES), len(ids), [None, pa.py_buffer(ids.octets())])


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_COMPRESSED) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
