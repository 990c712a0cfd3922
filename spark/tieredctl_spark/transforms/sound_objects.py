"""The pass over a listing: objects of segments that brokers may read are counted where they are listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes
from tieredctl.ops.verification.judged_partitions import any_segment
from tieredctl.ports.layout import Layout
from tieredctl_spark.arrow.sound_segments import PROBED_SCHEMA, SOUND_COLUMNS, Probe, SoundSegments
from tieredctl_spark.arrow.verdict_columns import JudgedBy
from tieredctl_spark.kept_frames import Keep
from tieredctl_spark.listing_frames import ListingFrame
from tieredctl_spark.transforms.object_verdicts import PARTITION_FIELDS, partition_frame

_FINISHED = int(RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
_SEGMENTS_AT_ONCE = 2_000_000
"""The driver holds so many, some tens of bytes each, and so does each task."""
_MOST_CLAIMED = 10_000
_HASH = "hash"


@dataclass(frozen=True, slots=True)
class ReadableSegments:
    """Segments in COPY_SEGMENT_FINISHED of partitions that are not being removed: brokers may read them if the topic
    exists."""

    states: DataFrame
    """All segments by STATE_SCHEMA."""
    counts: Mapping[TopicIdPartition, int]
    claimed: Sequence[int]
    """Hashes of the ids that several partitions claim, or one more than _MOST_CLAIMED of those. Others with the same
    hash are only judged with more effort."""

    @classmethod
    def of(cls, states: DataFrame) -> ReadableSegments:
        """Counts them."""
        rows = states.where(_are_readable()).groupBy(*PARTITION_FIELDS).count().collect()
        counts = {TopicIdPartition(row["topicId"], row["topic"], row["partition"]): row[3] for row in rows}
        claimed = _claimed_hashes(states).limit(_MOST_CLAIMED + 1).collect()
        return cls(states, counts, [row[_HASH] for row in claimed])

    @property
    def topics(self) -> set[str]:
        """The ids of their topics."""
        return {one.topic_id for one in self.counts}

    def in_live_topics(self, by: JudgedBy) -> ReadableSegments:
        """Without those of topics that are known to be gone."""
        live = {one: count for one, count in self.counts.items() if by.live_topics.is_live(one.topic_id) is not False}
        return replace(self, counts=live)

    def frame(self, partitions: Mapping[TopicIdPartition, int]) -> DataFrame:
        """Those of some partitions, by STATE_SCHEMA, without ids that several partitions claim."""
        found = self.states.where(_are_readable())
        if len(self.claimed) > _MOST_CLAIMED:
            found = (
                found.withColumn(_HASH, _id_hash()).join(_claimed_hashes(self.states), _HASH, "left_anti").drop(_HASH)
            )
        elif self.claimed:
            found = found.where(~_id_hash().isin(*self.claimed))
        wanted = partition_frame(self.states, partitions)
        return found.join(fn.broadcast(wanted), list(PARTITION_FIELDS), "left_semi")


def probed_objects(listing: ListingFrame, readable: ReadableSegments, by: JudgedBy, keep: Keep) -> DataFrame:
    """By PROBED_SCHEMA, what is kept of the objects of a listing. Of many segments, some partitions' at a time, with
    the keys from the first of theirs up to those of the next."""
    found = []
    for number, one in enumerate(_stretches(readable.counts, by.layout)):
        sound = SoundSegments.of(readable.frame(one.counts).select(*SOUND_COLUMNS).toArrow())
        keys = listing if (one.first, one.end) == (b"", None) else listing.between(one.first, one.end)
        found.append(keep(keys.through(Probe(sound, by).rows, PROBED_SCHEMA), f"probed-{number}"))
    return reduce(DataFrame.union, found)


class _Stretch(NamedTuple):
    counts: Mapping[TopicIdPartition, int]
    first: bytes
    """The keys from there,"""
    end: bytes | None
    """up to, not including, this one."""


def _stretches(counts: Mapping[TopicIdPartition, int], layout: Layout) -> Iterator[_Stretch]:
    """Partitions by the folders of their keys. Where a layout puts keys elsewhere, their objects are judged like others
    that are not found."""
    if sum(counts.values()) <= _SEGMENTS_AT_ONCE:
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


def _claimed_hashes(states: DataFrame) -> DataFrame:
    return states.select(_id_hash().alias(_HASH)).groupBy(_HASH).count().where("count > 1").select(_HASH)


def _id_hash() -> Column:
    return fn.xxhash64("segmentId")


def _are_readable() -> Column:
    return (fn.col("state") == _FINISHED) & fn.col("removal").isNull()
