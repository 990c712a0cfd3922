"""The pass over a listing: objects of segments that brokers may read are counted where they are listed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes
from tieredctl.ops.documents import Document
from tieredctl.ops.verification.judged_partitions import any_segment
from tieredctl.ports.layout import Layout
from tieredctl_spark.arrow.sound_segments import KIND, PROBED_SCHEMA, Kind, Probe, SoundSegments
from tieredctl_spark.arrow.state_blocks import HASH
from tieredctl_spark.arrow.state_columns import PARTITION_FIELDS, STATE_SCHEMA
from tieredctl_spark.arrow.verdict_columns import JudgedBy
from tieredctl_spark.kept_frames import Keep
from tieredctl_spark.listing_frames import ListingFrame
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.worker_functions import given_to_workers

_SEGMENTS_AT_ONCE = 4_000_000
"""The driver holds so many, about 30 bytes each, and so does each task."""
_EVENTS_OF_SEGMENT = 2
"""At least, where brokers do not fail."""
_MOST_CLAIMED = 10_000


@dataclass(frozen=True, slots=True)
class ReadableSegments:
    """Segments in COPY_SEGMENT_FINISHED of partitions that are not being removed: brokers may read them if the topic
    exists. Without ids that several partitions claim."""

    segments: SegmentFrame
    """All segments."""
    counts: Mapping[TopicIdPartition, int]
    with_places: bool
    """Whether the places of their last events are needed, too."""
    here: SoundSegments | None
    """Themselves, where all segments are few."""
    claimed: Sequence[int]
    """Where they are many: hashes of the ids that several partitions claim, or one more than _MOST_CLAIMED of those.
    Others with the same hash are only judged with more effort."""

    @classmethod
    def of(cls, segments: SegmentFrame, events: int, *, with_places: bool) -> ReadableSegments:
        """Those among all segments, about which there are so many events; with the places of their last events where
        owned objects are listed one by one."""
        if events <= _EVENTS_OF_SEGMENT * _SEGMENTS_AT_ONCE:
            here = SoundSegments.of(segments.local(), with_places=with_places)
            return cls(segments, here.counts(), with_places, here, ())
        claimed = [row[HASH] for row in _claimed(segments).limit(_MOST_CLAIMED + 1).collect()]
        readable = cls(segments, {}, with_places, None, claimed)
        rows = readable._rows(segments, *PARTITION_FIELDS).groupBy(*PARTITION_FIELDS).count().collect()
        counts = {TopicIdPartition(row["topicId"], row["topic"], row["partition"]): row[3] for row in rows}
        return replace(readable, counts=counts)

    @property
    def topics(self) -> set[str]:
        """The ids of their topics."""
        return {one.topic_id for one in self.counts}

    def in_live_topics(self, by: JudgedBy) -> ReadableSegments:
        """Without those of topics that are known to be gone."""
        live = {one: count for one, count in self.counts.items() if by.live_topics.is_live(one.topic_id) is not False}
        return replace(self, counts=live)

    def frame(self, partitions: Collection[TopicIdPartition]) -> DataFrame:
        """Those of some partitions, by STATE_SCHEMA."""
        return self._rows(_of_partitions(self.segments, partitions), *STATE_SCHEMA.names)

    def sound(self, partitions: Collection[TopicIdPartition]) -> SoundSegments:
        """Those of some partitions, on the driver. None where too many ids are claimed to name them: then all that is
        listed is judged."""
        if self.here is not None:
            return self.here.of_partitions(partitions)
        if len(self.claimed) > _MOST_CLAIMED:
            return SoundSegments.of([], with_places=self.with_places)
        claimed = np.array(self.claimed, np.int64)
        some = _of_partitions(self.segments, partitions).those(lambda block: ~np.isin(block.hashes, claimed))
        return SoundSegments.of(some.local(), with_places=self.with_places)

    def _rows(self, segments: SegmentFrame, *names: str) -> DataFrame:
        """Those among some segments, with columns by STATE_SCHEMA."""
        rows = segments.those(lambda block: block.are_readable).rows(*names, HASH)
        if self.here is None and len(self.claimed) <= _MOST_CLAIMED:
            return rows.where(~fn.col(HASH).isin(*self.claimed)) if self.claimed else rows
        return rows.join(_claimed(self.segments), HASH, "left_anti").select(*names)


def probed_objects(listing: ListingFrame, readable: ReadableSegments, by: JudgedBy, keep: Keep) -> DataFrame:
    """By PROBED_SCHEMA, what is kept of the objects of a listing. Of many segments, some partitions' at a time, with
    the keys from the first of theirs up to those of the next."""
    found = []
    for number, one in enumerate(_stretches(readable, by.layout)):
        keys = listing if (one.first, one.end) == (b"", None) else listing.between(one.first, one.end)
        with given_to_workers(listing.session, Probe(readable.sound(one.counts), by)) as probe:
            found.append(keep(keys.through(partial(_probed, probe), PROBED_SCHEMA), f"probed-{number}"))
    return reduce(DataFrame.union, found)


def _probed(probe: Callable[[], Probe], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    return probe().rows(batches)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the rows of `probed_objects` count."""

    has_any: bool
    """Whether anything was listed."""
    are_unexplained: bool
    """Whether objects were listed, and the layout explains none of them."""
    reserved: Document
    """How much is tieredctl's own."""
    open: int
    """How many objects are still to be judged,"""
    open_topics: Collection[str]
    """and the topic ids in their keys."""

    @classmethod
    def of(cls, probed: DataFrame) -> Counted:
        """The sound objects of all of them."""
        sums = fn.count("*").alias("rows"), fn.sum("objects").alias("objects"), fn.sum("bytes").alias("bytes")
        found = [row.asDict() for row in probed.groupBy(KIND, "topicId").agg(*sums).collect()]

        def total(name: str, *kinds: Kind) -> int:
            return sum(row[name] or 0 for row in found if row[KIND] in kinds)

        return cls(
            total("objects", Kind.LISTED, Kind.RESERVED) > 0,
            total("objects", Kind.LISTED) > 0 and not total("objects", Kind.EXPLAINED),
            {name: total(name, Kind.RESERVED) for name in ("objects", "bytes")},
            total("rows", Kind.OPEN),
            {row["topicId"] for row in found if row[KIND] == Kind.OPEN} - {None},
        )


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


def _of_partitions(segments: SegmentFrame, partitions: Collection[TopicIdPartition]) -> SegmentFrame:
    wanted = frozenset(partitions)
    return segments.those(lambda block: block.are_of(wanted))


def _claimed(segments: SegmentFrame) -> DataFrame:
    """Hashes of ids that several partitions claim."""
    return segments.rows(HASH).groupBy(HASH).count().where("count > 1").select(HASH)
