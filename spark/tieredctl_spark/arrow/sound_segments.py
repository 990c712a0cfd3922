"""Objects of a listing against the segments that brokers may read: nearly all are plainly owned. Arrow in, Arrow out.

The segments' ids are a sorted array of which each task has a copy. A key that names one of them, with its partition and
its offset, is that of an owned object, and is counted. Of all others it is not known here what metadata says: those are
given on, to be judged.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.uuid_columns import UuidColumns, UuidLookup, grouped, joined_uuids
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.orphans.judgement import Verdicts, judged_objects, verdict_of
from tieredctl.ops.orphans.object_columns import ObjectColumns, selected_rows
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.orphans.segment_states import CopiedOffsets, SegmentStates
from tieredctl_spark.arrow.state_blocks import StateBlock
from tieredctl_spark.arrow.verdict_columns import VERDICT_SCHEMA, JudgedBy, StemTexts, listed_verdicts, verdict_totals

_PLACES = ("metadataPartition", "metadataOffset")
KIND = "kind"


class Kind(StrEnum):
    """What a row is."""

    VERDICT = "verdict"
    """By VERDICT_SCHEMA."""
    OPEN = "open"
    """An object that is still to be judged: its key and what that names, version, storage class, size (`bytes`), and
    time of modification (`newestMs`)."""
    PART = "part"
    """How many objects are owned that are a `part` of a segment of a partition, whatever is selected."""
    LISTED = "listed"
    """How many objects there are, whatever is selected,"""
    EXPLAINED = "explained"
    """of how many of them the layout explains the key,"""
    RESERVED = "reserved"
    """and how many of tieredctl's own, with their bytes."""


PROBED_SCHEMA = pa.schema([(KIND, pa.string()), *VERDICT_SCHEMA])


@dataclass(frozen=True)
class SoundSegments:
    """Segments in COPY_SEGMENT_FINISHED of partitions that are not being removed, in the order of their ids' hashes.
    Pickled, some tens of bytes each."""

    partitions: list[TopicIdPartition]
    ids: UuidColumns
    rows: UuidLookup
    """By id. It takes more memory to make than to have."""
    owners: NDArray[np.int32]
    start_offsets: Ints
    places: Sequence[NDArray[Any]]
    """Metadata partitions and offsets of their last events; empty where nobody asks."""

    @classmethod
    def of(cls, blocks: Iterable[StateBlock], *, with_places: bool) -> SoundSegments:
        """Those among segments whose ids no other of these has; with the places of their last events where owned
        objects are listed one by one."""
        partitions: dict[TopicIdPartition, int] = {}
        kept = [_read(block, partitions, _PLACES if with_places else ()) for block in blocks]
        if not kept:
            none = UuidColumns(*np.zeros((2, 0), np.uint64))
            return cls([], none, UuidLookup(none), np.zeros(0, np.int32), np.zeros(0, np.int64), ())
        order, ids = grouped(joined_uuids([one.ids for one in kept]))
        first = ids.changes()
        is_sound = np.concatenate([one.are_sound for one in kept])
        chosen = np.flatnonzero(first & np.append(first[1:], True) & is_sound[order])
        order = order[chosen]
        owners, starts, *places = (
            np.concatenate(parts)[order] for parts in zip(*(one.columns for one in kept), strict=True)
        )
        ids = ids.at(chosen)
        return cls(list(partitions), ids, UuidLookup(ids), owners, starts, places)

    def counts(self) -> dict[TopicIdPartition, int]:
        """How many there are of each partition that has any."""
        counts = np.bincount(self.owners, minlength=len(self.partitions)).tolist()
        return {one: count for one, count in zip(self.partitions, counts, strict=True) if count}

    def of_partitions(self, wanted: Container[TopicIdPartition]) -> SoundSegments:
        """Those of some partitions."""
        are_wanted = np.array([one in wanted for one in self.partitions], np.bool_)
        if are_wanted.all():
            return self
        rows = np.flatnonzero(are_wanted[self.owners])
        ids, places = self.ids.at(rows), [column[rows] for column in self.places]
        return SoundSegments(self.partitions, ids, UuidLookup(ids), self.owners[rows], self.start_offsets[rows], places)

    def states(self, last_timestamp_ms: int) -> SegmentStates:
        """For a judge, of whose verdicts on objects only that they are owned is true."""
        count = len(self.ids)
        partitions, offsets = self.places or (np.broadcast_to(np.int64(0), count),) * 2
        return _KnownRows(
            self.ids,
            np.broadcast_to(np.int8(RemoteLogSegmentState.COPY_SEGMENT_FINISHED), count),
            self.owners.astype(np.int64),
            self.start_offsets,
            partitions.astype(np.int64, copy=False),
            offsets,
            np.broadcast_to(np.bool_(False), count),
            self.partitions,
            {},
            CopiedOffsets.none(len(self.partitions)),
            last_timestamp_ms,
            self.rows,
        )


@dataclass(frozen=True)
class _KnownRows(SegmentStates):
    """Segments whose rows are looked up by what the driver made."""

    lookup: UuidLookup

    @property
    def rows(self) -> UuidLookup:
        return self.lookup


@dataclass(frozen=True)
class _Read:
    """Some segments that were read, in the order of their rows."""

    ids: UuidColumns
    are_sound: Flags
    """But for what others claim."""
    columns: Sequence[NDArray[Any]]
    """As in SoundSegments: owners, start offsets, and places."""


def _read(block: StateBlock, numbers: dict[TopicIdPartition, int], places: Sequence[str]) -> _Read:
    """Numbers the partitions that have no number yet."""
    known = np.array([numbers.setdefault(one, len(numbers)) for one in block.partitions], np.int32)
    columns = (block.numbers(name) for name in ("startOffset", *places))
    return _Read(block.ids, block.are_readable, (known[block.owners], *columns))


@dataclass(frozen=True)
class Probe:
    """What a task does with its part of a listing."""

    sound: SoundSegments
    by: JudgedBy

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """By PROBED_SCHEMA, of objects by LISTING_SCHEMA."""
        listed, explained, reserved = _Count(), _Count(), _Count()

        def unreserved() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                are_own = are_reserved(batch.column("key"))
                others = batch.filter(pc.invert(are_own)) if are_own.true_count else batch
                if are_own.true_count:
                    reserved.add(batch.filter(are_own))
                listed.add(others)
                yield others

        known = {one: number for number, one in enumerate(self.sound.partitions)}
        judge, owners = self.by.judge(self.sound.states(self.by.last_timestamp_ms)), self.by.owners(known)
        stems, parts = StemTexts(self.by), np.zeros(0, np.int64)
        for objects, verdicts in judged_objects(judge, owners, unreserved(), self.by.layout):
            explained.objects += int(objects.is_explained.sum())
            stems.extend(objects.said.explained)
            owned = _are_owned(verdicts)
            counts = np.bincount(objects.said.stems[owned], minlength=len(objects.said.explained))
            counts[: len(parts)] += parts
            parts = counts
            rows = selected_rows(objects, self.by.selection)
            yield _of_kind(Kind.OPEN, _open_rows(objects, rows[~owned[rows]], stems))
            rows = rows[owned[rows]]
            if ObjectStatus.OWNED in self.by.listed:
                yield _of_kind(Kind.VERDICT, listed_verdicts(objects, verdicts, rows, judge, stems))
            else:
                yield _of_kind(Kind.VERDICT, verdict_totals(objects, verdicts, rows, stems))
        yield _of_kind(Kind.PART, _part_rows(parts, stems))
        yield _of_kind(Kind.LISTED, listed.row())
        yield _of_kind(Kind.EXPLAINED, explained.row())
        yield _of_kind(Kind.RESERVED, reserved.row())


@dataclass
class _Count:
    objects: int = 0
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.objects += len(batch)
        self.size += int(numbers_in(batch.column("size")).sum())

    def row(self) -> pa.Table:
        return _table(1, {"objects": pa.array([self.objects]), "bytes": pa.array([self.size])})


def _are_owned(verdicts: Verdicts) -> Flags:
    codes: list[int] = np.unique(verdicts.codes).tolist()
    owned: Flags = np.isin(verdicts.codes, [one for one in codes if verdict_of(one)[0] is ObjectStatus.OWNED])
    return owned


def _open_rows(objects: ObjectColumns, rows: Ints, stems: StemTexts) -> pa.Table:
    taken, of_stems, said = number_array(rows), objects.said.stems[rows], objects.said
    ids = said.named_segments.at(said.names[rows]).text_array()
    topic_ids = stems.of("topicId", pa.string(), of_stems)
    columns = {
        "key": objects.keys.take(taken),
        "version": objects.versions.take(taken),
        "topic": stems.of("topic", pa.string(), of_stems),
        "topicId": topic_ids,
        "partition": stems.of("partition", pa.int32(), of_stems),
        "segmentId": pc.if_else(topic_ids.is_valid(), ids, pa.scalar(None, pa.string())),
        "storageClass": objects.storage_classes.take(taken).cast(pa.string()),
        "bytes": number_array(objects.sizes[rows]),
        "newestMs": number_array(objects.last_modified_ms[rows]),
    }
    return _table(len(rows), columns)


def _part_rows(counts: Ints, stems: StemTexts) -> pa.Table:
    found = np.flatnonzero(counts)
    names = {"topic": pa.string(), "topicId": pa.string(), "partition": pa.int32(), "part": pa.string()}
    columns = {name: stems.of(name, kind, found) for name, kind in names.items()}
    return _table(len(found), {**columns, "objects": number_array(counts[found].astype(np.int64))})


def _of_kind(kind: Kind, rows: pa.Table) -> pa.Table:
    kinds = pa.repeat(pa.scalar(kind.value, pa.string()), len(rows))
    return pa.table([kinds, *rows.columns], schema=PROBED_SCHEMA)


def _table(count: int, columns: dict[str, pa.Array]) -> pa.Table:
    """By VERDICT_SCHEMA, what is not given null."""
    absent = {one.name: pa.nulls(count, one.type) for one in VERDICT_SCHEMA}
    return pa.table(absent | columns, VERDICT_SCHEMA)
