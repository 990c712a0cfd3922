"""The pass over a listing: objects of segments that brokers may read are counted where they are listed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes
from tieredctl.ops.documents import Document
from tieredctl.ops.verification.judged_partitions import any_segment
from tieredctl.ports.layout import Layout
from tieredctl_spark.arrow.sound_segments import (
    KIND,
    PLACE_COLUMNS,
    PROBED_SCHEMA,
    SOUND_COLUMNS,
    Kind,
    Probe,
    SoundSegments,
)
from tieredctl_spark.arrow.verdict_columns import JudgedBy
from tieredctl_spark.kept_frames import Keep
from tieredctl_spark.listing_frames import ListingFrame
from tieredctl_spark.transforms.object_verdicts import PARTITION_FIELDS, partition_frame

_FINISHED = int(RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
_SEGMENTS_AT_ONCE = 4_000_000
"""The driver holds so many, about 30 bytes each, and so does each task."""
_EVENTS_OF_SEGMENT = 2
"""At least, where brokers do not fail."""
_MOST_CLAIMED = 10_000
_HASH = "hash"


@dataclass(frozen=True, slots=True)
class ReadableSegments:
    """Segments in COPY_SEGMENT_FINISHED of partitions that are not being removed: brokers may read them if the topic
    exists. Without ids that several partitions claim."""

    states: DataFrame
    """All segments by STATE_SCHEMA."""
    counts: Mapping[TopicIdPartition, int]
    columns: Sequence[str]
    """What is read of them to look objects up."""
    here: SoundSegments | None
    """Themselves, where all segments are few."""
    claimed: Sequence[int]
    """Where they are many: hashes of the ids that several partitions claim, or one more than _MOST_CLAIMED of those.
    Others with the same hash are only judged with more effort."""

    @classmethod
    def of(cls, states: DataFrame, events: int, *, with_places: bool) -> ReadableSegments:
        """Those among all segments, about which there are so many events; with the places of their last events where
        owned objects are listed one by one."""
        columns = (*SOUND_COLUMNS, *(PLACE_COLUMNS if with_places else ()))
        if events <= _EVENTS_OF_SEGMENT * _SEGMENTS_AT_ONCE:
            here = SoundSegments.of(_batches(states.select(*columns)))
            return cls(states, here.counts(), columns, here, ())
        claimed = _some_claimed(states)
        rows = _readable(states, claimed).groupBy(*PARTITION_FIELDS).count().collect()
        counts = {TopicIdPartition(row["topicId"], row["topic"], row["partition"]): row[3] for row in rows}
        return cls(states, counts, columns, None, claimed)

    @property
    def topics(self) -> set[str]:
        """The ids of their topics."""
        return {one.topic_id for one in self.counts}

    def in_live_topics(self, by: JudgedBy) -> ReadableSegments:
        """Without those of topics that are known to be gone."""
        live = {one: count for one, count in self.counts.items() if by.live_topics.is_live(one.topic_id) is not False}
        return replace(self, counts=live)

    def frame(self, partitions: Mapping[TopicIdPartition, int]) -> DataFrame:
        """Those of some partitions, by STATE_SCHEMA."""
        claimed = self.claimed if self.here is None else _some_claimed(self.states)
        wanted = fn.broadcast(partition_frame(self.states, partitions))
        return _readable(self.states, claimed).join(wanted, list(PARTITION_FIELDS), "left_semi")

    def sound(self, partitions: Mapping[TopicIdPartition, int]) -> SoundSegments:
        """Those of some partitions, on the driver."""
        if self.here is not None:
            return self.here.of_partitions(partitions)
        return SoundSegments.of(_batches(self.frame(partitions).select(*self.columns)))


def probed_objects(listing: ListingFrame, readable: ReadableSegments, by: JudgedBy, keep: Keep) -> DataFrame:
    """By PROBED_SCHEMA, what is kept of the objects of a listing. Of many segments, some partitions' at a time, with
    the keys from the first of theirs up to those of the next."""
    found = []
    for number, one in enumerate(_stretches(readable, by.layout)):
        keys = listing if (one.first, one.end) == (b"", None) else listing.between(one.first, one.end)
        probe = Probe(readable.sound(one.counts), by)
        found.append(keep(keys.through(probe.rows, PROBED_SCHEMA), f"probed-{number}"))
    return reduce(DataFrame.union, found)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the rows of `probed_objects` count."""

    has_any: bool
    """Whether anything was listed."""
    reserved: Document
    """How much is tieredctl's own."""
    open: int
    """How many objects are still to be judged,"""
    open_topics: Collection[str]
    """and the topic ids in their keys."""

    @classmethod
    def of(cls, probed: DataFrame) -> Counted:
        """Of all of them."""
        sums = fn.count("*").alias("rows"), fn.sum("objects").alias("objects"), fn.sum("bytes").alias("bytes")
        found = [row.asDict() for row in probed.groupBy(KIND, "topicId").agg(*sums).collect()]

        def total(name: str, *kinds: Kind) -> int:
            return sum(row[name] or 0 for row in found if row[KIND] in kinds)

        return cls(
            total("objects", Kind.LISTED, Kind.RESERVED) > 0,
            {name: total(name, Kind.RESERVED) for name in ("objects", "bytes")},
            total("rows", Kind.OPEN),
            {row["topicId"] for row in found if row[KIND] == Kind.OPEN} - {None},
        )


def _batches(rows: DataFrame) -> Iterator[pa.RecordBatch]:
    """All rows, let go of once they are read."""
    yield from rows.toArrow().to_batches()


class _Stretch(NamedTuple):
    counts: Mapping[TopicIdPartition, int]
    first: bytes
    """The keys from there,"""
    end: bytes | None
    """up to, not including, this one."""


def _stretches(readable: ReadableSegments, layout: Layout) -> Iterator[_Stretch]:
    """Partitions by the folders of their keys. Where a layout puts keys elsewhere, their objects are judged like others
    that are not found."""
    counts = readable.counts
    if readable.here is not None or sum(counts.values()) <= _SEGMENTS_AT_ONCE:
        yield _Stretch(counts, b"", None)
        return
    some: dict[TopicIdPartition, int] = {}
    first, room = b"", _SEGMENTS_AT_ONCE
    for folder, one in sorted((_folder(one, layout), one) for one in counts):
        if some and counts[one] > room:
            yield _Stretch(some, first, folder)
            some, first, room = {}, folder, _SEGMENTS_AT_ONCE
        some[one] = counts[one]
        room -= counts[one]
    yield _Stretch(some, first, None)


def _folder(partition: TopicIdPartition, layout: Layout) -> bytes:
    key = min(layout.promised_objects(any_segment(partition)).values())
    return key_bytes(key[: key.rfind("/") + 1])


def _readable(states: DataFrame, claimed: Sequence[int]) -> DataFrame:
    found = states.where((fn.col("state") == _FINISHED) & fn.col("removal").isNull())
    if len(claimed) > _MOST_CLAIMED:
        return found.withColumn(_HASH, _id_hash()).join(_claimed_hashes(states), _HASH, "left_anti").drop(_HASH)
    return found.where(~_id_hash().isin(*claimed)) if claimed else found


def _some_claimed(states: DataFrame) -> list[int]:
    return [row[_HASH] for row in _claimed_hashes(states).limit(_MOST_CLAIMED + 1).collect()]


def _claimed_hashes(states: DataFrame) -> DataFrame:
    return states.select(_id_hash().alias(_HASH)).groupBy(_HASH).count().where("count > 1").select(_HASH)


def _id_hash() -> Column:
    return fn.xxhash64("segmentId")
