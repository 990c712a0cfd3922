"""Reads many values of one schema at once, as columns (the bulk counterpart of `wire.py`).

Flexible structs only, nested to any depth, with arrays of structs: what Kafka's metadata records are made of. A value
with something rarer (an unknown tagged field, a wrong length) is left to `wire.py`: its row is marked as not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tieredctl.formats.batch_columns import fixed_dtype
from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct
from tieredctl.formats.windows import Bytes, Flags, Ints, rows_at, structs_at, unsigned_varints_at

NULL = -1
_LENGTH_BYTES = 5
_FEW_ROWS = 8
"""Fewer rows than these are read sooner one at a time."""


@dataclass(frozen=True, slots=True)
class Spans:
    """A column of strings or bytes: value i is `data[starts[i]:ends[i]]`; null where starts[i] is NULL."""

    starts: Ints
    ends: Ints


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of arrays: value i is elements bounds[i] to bounds[i + 1] of each column in `elements`."""

    bounds: Ints
    elements: dict[str, Any]
    """Fixed-width fields as numpy arrays, others as `Spans`."""


Columns = dict[str, Any]
"""By path (`RemoteLogSegmentId.TopicIdPartition.Id`): a numpy array of a fixed-width field, `Spans`, or `Lists`."""


def kept(column: Any, keep: Flags | Ints) -> Any:
    """A column's values of some rows: flags, or for columns other than `Lists` numbers."""
    if isinstance(column, Spans):
        return Spans(column.starts[keep], column.ends[keep])
    if isinstance(column, Lists):
        counts = np.diff(column.bounds)
        of_kept: Flags = np.repeat(np.asarray(keep, np.bool_), counts)
        elements = {name: kept(values, of_kept) for name, values in column.elements.items()}
        return Lists(np.concatenate([[0], np.cumsum(counts[keep])]), elements)
    return column[keep]


@dataclass(slots=True)
class _Progress:
    data: Bytes
    position: Ints
    end: Ints
    read: Flags
    columns: Columns


_Step = Callable[[_Progress], None]
_TAG_SECTION = "tagged fields"


class ColumnReader:
    """The column reader of a schema."""

    def __init__(self, schema: Struct) -> None:
        self._steps = [*_steps(schema), _closing_tags(schema)]

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[Columns, Flags]:
        """The values at `starts` up to `ends`, and which rows were read: the others are meaningless.

        Never reads a byte of a row beyond its end into a row that is marked as read.
        """
        progress = _Progress(data, starts.copy(), ends, np.ones(len(starts), np.bool_), {})
        for step in self._steps:
            step(progress)
            progress.read &= progress.position <= progress.end
        progress.read &= progress.position == progress.end
        return progress.columns, progress.read


def _steps(schema: Struct) -> Iterator[_Step]:
    run: list[Field] = []
    for field in _flattened(schema, ""):
        if isinstance(field.type, Primitive):
            run.append(field)
            continue
        if run:
            yield _fixed_run(run)
            run = []
        yield _array_step(field, field.type) if isinstance(field.type, Array) else _spans_step(field)
    if run:
        yield _fixed_run(run)


def _flattened(schema: Struct, prefix: str) -> Iterator[Field]:
    """The fields of a struct and of the structs in it, by path, with a nested struct's tagged section as one byte
    that must be zero."""
    if not schema.flexible:
        raise TypeError(f"{schema.name} is not flexible")
    for field in schema.positional:
        path = prefix + field.name
        if isinstance(field.type, Struct):
            yield from _flattened(field.type, path + ".")
            yield Field(f"{path}.{_TAG_SECTION}", Primitive.INT8)
        else:
            yield Field(path, field.type)


def _fixed_run(fields: list[Field]) -> _Step:
    dtype = fixed_dtype(Struct("run", tuple(fields)))
    tag_sections = [field.name for field in fields if field.name.endswith(_TAG_SECTION)]
    names = [field.name for field in fields if not field.name.endswith(_TAG_SECTION)]

    def step(progress: _Progress) -> None:
        rows = structs_at(progress.data, progress.position, dtype)
        for name in tag_sections:
            progress.read &= rows[name] == 0
        progress.columns.update((name, rows[name]) for name in names)
        progress.position += dtype.itemsize

    return step


def _spans_step(field: Field) -> _Step:
    nullable = field.type in (Length.NULLABLE_BYTES, Length.NULLABLE_STRING)

    def step(progress: _Progress) -> None:
        raw, position, ended = unsigned_varints_at(progress.data, progress.position, _LENGTH_BYTES)
        null = raw == 0
        progress.read &= ended & (raw <= progress.end - position + 1)
        if not nullable:
            progress.read &= ~null
        length = np.where(progress.read & ~null, raw - 1, 0)
        progress.columns[field.name] = Spans(np.where(null, NULL, position), position + length)
        progress.position = position + length

    return step


def _array_step(field: Field, array: Array) -> _Step:
    element = array.element
    if not isinstance(element, Struct):
        raise TypeError(f"{field.name} is not an array of structs")
    if all(isinstance(inner.type, Primitive) for inner in element.positional):
        return _fixed_array_step(field, element)
    return _struct_array_step(field, element)


def _fixed_array_step(field: Field, element: Struct) -> _Step:
    """An array of structs of fixed width: all at once."""
    with_tags = Struct(element.name, (*element.positional, Field(_TAG_SECTION, Primitive.INT8)))
    dtype = fixed_dtype(with_tags)

    def step(progress: _Progress) -> None:
        raw, position, ended = unsigned_varints_at(progress.data, progress.position, _LENGTH_BYTES)
        progress.read &= ended & (raw >= 1) & ((raw - 1) * dtype.itemsize <= progress.end - position)
        counts = np.where(progress.read, raw - 1, 0)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        owner = np.repeat(np.arange(len(counts)), counts)
        index = np.arange(bounds[-1]) - bounds[:-1][owner]
        rows = structs_at(progress.data, position[owner] + index * dtype.itemsize, dtype)
        progress.read[owner[rows[_TAG_SECTION] != 0]] = False
        elements = {inner.name: rows[inner.name] for inner in element.positional}
        progress.columns[field.name] = Lists(bounds, elements)
        progress.position = position + counts * dtype.itemsize

    return step


def _struct_array_step(field: Field, element: Struct) -> _Step:
    """An array of other structs: the next one of each row at a time. Where few rows have as many, they are left."""
    steps = [*_steps(element), _closing_tags(element)]

    def step(progress: _Progress) -> None:
        raw, position, ended = unsigned_varints_at(progress.data, progress.position, _LENGTH_BYTES)
        progress.read &= ended & (raw >= 1) & (raw - 1 <= progress.end - position)
        counts = np.where(progress.read, raw - 1, 0)
        rounds: list[tuple[Ints, Columns]] = []
        rows = np.flatnonzero(counts)
        while len(rows):
            if len(rows) < _FEW_ROWS:
                progress.read[rows] = False
                break
            one = _Progress(progress.data, position[rows], progress.end[rows], np.ones(len(rows), np.bool_), {})
            for inner in steps:
                inner(one)
                one.read &= one.position <= one.end
            position[rows] = one.position
            progress.read[rows] &= one.read
            rounds.append((rows, one.columns))
            rows = rows[one.read & (counts[rows] > len(rounds))]
        progress.columns[field.name] = _joined_rounds(rounds, np.where(progress.read, counts, 0))
        progress.position = position

    return step


def _joined_rounds(rounds: list[tuple[Ints, Columns]], counts: Ints) -> Lists:
    """Elements that were read one of each row at a time, by row; none of those rows whose count is 0."""
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if not rounds:
        return Lists(bounds, {})
    owners = np.concatenate([rows for rows, _ in rounds])
    order = np.argsort(owners, kind="stable")
    order = order[counts[owners[order]] > 0]
    columns = {name: _joined_columns([one[name] for _, one in rounds]) for name in rounds[0][1]}
    return Lists(bounds, {name: kept(column, order) for name, column in columns.items()})


def _joined_columns(parts: list[Any]) -> Any:
    if isinstance(parts[0], Spans):
        return Spans(np.concatenate([one.starts for one in parts]), np.concatenate([one.ends for one in parts]))
    return np.concatenate(parts)


def _closing_tags(schema: Struct) -> _Step:
    """The message's own tagged section: empty, or one known field of fixed width."""
    tagged_fields = list(schema.tagged.items())

    def step(progress: _Progress) -> None:
        count = rows_at(progress.data, progress.position, 1)[:, 0]
        for _, field in tagged_fields:
            progress.columns[field.name] = np.full(len(count), field.default)
        after = progress.position + 1
        for tag, field in tagged_fields:
            if isinstance(field.type, Primitive):
                width = field.type.width
                section = rows_at(progress.data, progress.position, 3 + width)
                present = (count == 1) & (section[:, 1] == tag) & (section[:, 2] == width)
                values = section[:, 3:].copy().view(fixed_dtype(Struct(field.name, (Field(field.name, field.type),))))
                progress.columns[field.name] = np.where(present, values[field.name][:, 0], field.default)
                after = np.where(present, progress.position + 3 + width, after)
        progress.read &= (count == 0) | (after > progress.position + 1)
        progress.position = after

    return step
