"""`orphans scan` on Spark: the local engine's safety order and rules, and nothing larger than partitions on the driver.

Two passes: over the metadata, whose segments are kept, and over the listing, of which only what is not plainly owned is
kept, to be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import ObjectStatus, UnknownReason
from tieredctl.ops.cluster.live_topics import LiveTopics, TopicSources, demand_believable, doubt_about, live_topics
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, read_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.judgement import verdict_of_younger
from tieredctl.ops.orphans.noncurrent import Noncurrent, noncurrent
from tieredctl.ops.orphans.overlap import demand_any_explained, demand_any_object, demand_any_told
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.orphans.still_there import StillThere, still_there
from tieredctl.ops.orphans.totals import ScanTotals
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.places import Remote
from tieredctl_spark.arrow.judged_bucket import OBJECT_SCHEMA
from tieredctl_spark.arrow.sound_segments import KIND, Kind
from tieredctl_spark.arrow.verdict_columns import VERDICT_SCHEMA, AskedTopics, JudgedBy
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.kept_frames import Keep, kept_by_executors
from tieredctl_spark.listing_frames import listing_frame
from tieredctl_spark.metadata_facts import MetadataFacts
from tieredctl_spark.metadata_pass import ReadSegments, read_segments
from tieredctl_spark.moved_segments import moved_segments
from tieredctl_spark.promised_objects import PromisedObjects
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.session import spark_session
from tieredctl_spark.transforms.object_verdicts import (
    object_verdicts,
    with_known_partitions,
    without_known_partitions,
)
from tieredctl_spark.transforms.sound_objects import Counted, ReadableSegments, probed_objects
from tieredctl_spark.transforms.unnamed_objects import unnamed_verdicts
from tieredctl_spark.verdict_rows import group_of, verdict_document
from tieredctl_spark.worker_functions import mapped

_GROUP = ["topic", "topicId", "status", "cause", "storageClass", "reason"]
_ORPHAN = ObjectStatus.ORPHAN.value


@dataclass(frozen=True, slots=True)
class SparkScan:
    """A scan that is done."""

    verdicts: DataFrame
    """By VERDICT_SCHEMA: a row for each object that was to be listed or looked orphaned, and what is counted of the
    others."""
    listed: frozenset[ObjectStatus]
    counted: ScanTotals
    options: ScanOptions
    gone: int
    """How many objects looked orphaned, but no longer exist."""
    reserved: Document
    """How much was passed over as tieredctl's own."""
    facts: MetadataFacts
    cluster_id: str | None
    remote: Remote[ObjectStore]
    topics: TopicSources
    source: Document
    doubt: TieredctlError | None
    """Why the list of topics cannot be complete, if that was found."""
    doubts: Sequence[Finding]
    """That promised objects are missing, so that what looks orphaned may be these, or were not listed."""
    segments: SegmentFrame
    """All of them."""

    @property
    def findings(self) -> list[Finding]:
        """What was odd about the metadata, one finding for each cause of orphans, and what is missing."""
        counted = self.counted.findings(self.remote.store.url)
        return [*self.facts.findings, *self.topics.findings(), *counted, *self.doubts]

    def run(self) -> None:
        """It ran."""

    def totals(self) -> list[Document]:
        """A row for each topic id and verdict, as of a local scan."""
        return self.counted.rows()

    def summary(self) -> Document:
        """As of a local scan."""
        is_whole = self.facts.certainty.is_whole and not self.doubts
        return self.counted.summary(self.reserved, self.gone, is_whole=is_whole)

    def documents(self) -> Iterator[Document]:
        """Those objects that were to be listed, by key. Streams."""
        is_listed = fn.col("key").isNotNull() & fn.col("status").isin([one.value for one in self.listed])
        rows = self.verdicts.where(is_listed).orderBy("key")
        return (verdict_document(row.asDict()) for row in rows.toLocalIterator())


@dataclass(frozen=True, slots=True)
class OpenedSparkScan:
    """A scan that is done, and what it read, as the command line shows it."""

    scan: SparkScan
    lists_store: bool
    """Whether the store itself was listed."""

    @property
    def topics(self) -> TopicSources:
        return self.scan.topics

    def source(self) -> Document:
        """Which metadata, which list of topics, which store."""
        return self.scan.source

    def noncurrent(self) -> Noncurrent | None:
        """What the store keeps besides its objects; None if the store itself was not listed, and should not be now."""
        if not self.lists_store:
            return None
        return noncurrent(*self.scan.remote, self.scan.options.selection, self.scan.options.price)

    def doubt(self) -> TieredctlError | None:
        """Why the list of topics cannot be complete, if that was found."""
        return self.scan.doubt


@contextmanager
def opened_spark_scan(
    settings: Mapping[str, str], places: ScanPlaces, options: ScanOptions, *, lists_all: bool
) -> Iterator[OpenedSparkScan]:
    """A scan in the active session or in one with these settings, to be read while this is open. Without `lists_all`,
    only orphans have documents. Raises TieredctlError as `scanned` does, `missing-extra` and `spark-failed`."""
    listed = frozenset(ObjectStatus) if lists_all else frozenset({ObjectStatus.ORPHAN})
    with spark_session(settings) as session, spark_failures():
        found = scanned(session, places, options, kept_by_executors, listed)
        yield OpenedSparkScan(found, places.listing.is_of_store)


def scanned(
    session: SparkSession, places: ScanPlaces, options: ScanOptions, keep: Keep, listed: frozenset[ObjectStatus]
) -> SparkScan:
    """The store is listed first, then the metadata is read, then it is asked which topics exist, and last the store
    again for what looks orphaned, and for promised objects that were not listed. `listed` tells which
    objects have a row each. An inventory or a list of keys stands for a listing, and then the store is not asked.

    Raises TieredctlError as a local scan does, and as `listing_frame` does.
    """
    remote, metadata = places.store.open(), places.metadata
    listing = listing_frame(session, places.listing, places.store, remote)
    metadata.demand_usable()
    asked = remote.store if places.listing.is_of_store else None
    listing = listing.kept(keep)
    with metadata.open() as stream, places.asked_topics().open(options.now_ms) as topics:
        segments, facts = read_segments(session, metadata, stream, keep)
        readable = ReadableSegments.of(segments, facts.events, with_places=ObjectStatus.OWNED in listed)
        # Not before: what is asked about has to be older than the answer.
        live = live_topics(topics, facts.first_events_ms, stream.source, facts.last_timestamp_ms)
        demand_believable(topics, live, readable.topics)
        options = replace(options, has_times=places.listing.has_times)
        by = _judged_by(remote.layout, asked, options, facts, _answers(live, facts.first_events_ms), listed)
        readable = readable.in_live_topics(by)
        probed = probed_objects(listing, readable, by, keep)
        counted = Counted.of(probed)
        if not counted.has_any:
            if asked is None:
                demand_any_told(remote.store.url, remote.layout, readable.topics, live)
            else:
                demand_any_object(asked, remote.layout, readable.topics, live, options.now_ms)
        elif counted.are_unexplained:
            demand_any_explained(remote.store.url, remote.layout, readable.topics, live)
        judged = _with_open(probed, counted, ReadSegments(segments, facts), live, by, keep)
        verdicts, gone = judged, 0
        if asked is not None:
            orphans = judged.where(fn.col("status") == _ORPHAN)
            moved, lost = moved_segments(orphans, metadata, facts, keep)
            facts = facts.lacking(lost)
            kept = _still_there(orphans, moved, asked, by, keep)
            verdicts, gone = judged.where(fn.col("status") != _ORPHAN).union(kept), orphans.count() - kept.count()
        totals = _totals(verdicts, options)
        doubts = list[Finding]()
        if asked is not None and facts.certainty.is_whole:
            promised = PromisedObjects(listing, readable, probed)
            doubts = promised.doubts(facts, live, metadata, remote, options, with_missing=_has_orphans(totals))
        described = _described(stream, facts, live, remote, listing.described)
        doubt = doubt_about(topics, stream.source)
        cluster_id = stream.source.cluster_id
    return SparkScan(
        verdicts,
        listed,
        totals,
        options,
        gone,
        counted.reserved,
        facts,
        cluster_id,
        remote,
        topics,
        described,
        doubt,
        doubts,
        segments,
    )


def _has_orphans(totals: ScanTotals) -> bool:
    return any(group.status is ObjectStatus.ORPHAN for group in totals.groups)


def _with_open(
    probed: DataFrame, counted: Counted, metadata: ReadSegments, live: LiveTopics, by: JudgedBy, keep: Keep
) -> DataFrame:
    """All verdicts, once what was not plainly owned was judged."""
    verdicts = probed.where(fn.col(KIND) == Kind.VERDICT.value).drop(KIND)
    if not counted.open:
        return verdicts
    segments, facts = metadata
    objects = probed.where(fn.col(KIND) == Kind.OPEN.value)
    by = replace(by, live_topics=_answers(live, {*facts.first_events_ms, *counted.open_topics}))
    objects = objects.withColumnsRenamed({"bytes": "size", "newestMs": "lastModifiedMs"})
    certainty = facts.certainty
    if certainty.partitions_are_sure and not certainty.events_may_be_gone:
        objects = without_known_partitions(objects)
    else:
        objects = with_known_partitions(objects, facts.partitions)
    objects = objects.select(*OBJECT_SCHEMA.names, "segmentId")
    judged = keep(object_verdicts(segments, objects, by, counted.open), "judged")
    removed = [one for one, is_removed in facts.partitions.items() if is_removed]
    return verdicts.union(_with_partitions(judged, segments, removed, by, keep))


def _described(
    stream: EventStream, facts: MetadataFacts, live: LiveTopics, remote: Remote[ObjectStore], listing: Document
) -> Document:
    described = stream.source.describe()
    if "endOffsets" in described:  # of what executors read, not of what was there before
        described = {**described, "endOffsets": {str(one): end for one, end in sorted(facts.end_offsets.items())}}
    where = {"store": remote.store.url, **listing, "layout": remote.layout.name}
    return {**described, "liveTopics": live.describe(), **where}


def _answers(live: LiveTopics, topic_ids: Iterable[str]) -> AskedTopics:
    return AskedTopics({topic_id: live.is_live(topic_id) for topic_id in topic_ids})


def _judged_by(
    layout: Layout,
    asked: ObjectStore | None,
    options: ScanOptions,
    facts: MetadataFacts,
    answers: AskedTopics,
    listed: frozenset[ObjectStatus],
) -> JudgedBy:
    since_ms = options.now_ms - options.min_age_ms
    times = NO_ORIGINAL_TIMES if asked is None else read_original_times(asked, options.key, TIMES_OF_RESTORED, since_ms)
    return JudgedBy(
        layout=layout,
        now_ms=options.now_ms,
        min_age_ms=options.min_age_ms,
        last_timestamp_ms=facts.last_timestamp_ms,
        certainty=facts.certainty,
        live_topics=answers,
        named_topics=frozenset(facts.first_events_ms),
        begins=facts.begins,
        end_offsets=facts.end_offsets,
        original_times=times,
        selection=options.selection,
        has_times=options.has_times,
        listed=listed | {ObjectStatus.ORPHAN},
    )


def _with_partitions(
    judged: DataFrame, segments: SegmentFrame, removed: Iterable[TopicIdPartition], by: JudgedBy, keep: Keep
) -> DataFrame:
    """The verdicts, once other segments of their partitions were looked at for objects that metadata never named."""
    is_open = fn.col("reason").eqNullSafe(UnknownReason.NOT_COVERED.value)
    unnamed = judged.where(is_open)
    if unnamed.isEmpty():
        return judged
    return judged.where(~is_open).union(keep(unnamed_verdicts(unnamed, segments, removed, by), "unnamed"))


def _as_it_is(row: dict[str, object], key: str, found: StillThere, floor_ms: int) -> dict[str, object]:
    """The verdict on an object that looked orphaned, by its time now."""
    modified_ms = found.younger.get(key)
    if modified_ms is None:
        return row
    status, reason = verdict_of_younger(modified_ms, floor_ms)
    times = {"oldestMs": modified_ms, "newestMs": modified_ms, "originalMs": None}
    return row | times | {"status": status.value, "cause": None, "reason": None if reason is None else reason.value}


def _still_there(
    orphans: DataFrame, moved: DataFrame | None, store: ObjectStore, by: JudgedBy, keep: Keep
) -> DataFrame:
    """All but the orphans that no longer exist; those that are younger than they were listed to be are none, and in
    progress are those whose segments go on meanwhile."""
    if moved is not None:
        found = moved.withColumn("moved", fn.lit(True))
        orphans = orphans.join(found, "segmentId", "left")
        has_moved = fn.coalesce("moved", fn.lit(False))
        orphans = orphans.withColumn("status", fn.when(has_moved, ObjectStatus.IN_PROGRESS.value).otherwise(_ORPHAN))
        orphans = orphans.withColumn("cause", fn.when(~has_moved, fn.col("cause"))).select(*VERDICT_SCHEMA.names)
    floor_ms = by.now_ms - by.min_age_ms
    # By key, so that many are asked for by listing a short stretch.
    asked = orphans.repartitionByRange("key").sortWithinPartitions("key")

    def there(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = [key_text(key) for key in batch.column("key").to_pylist()]
            times = batch.column("newestMs").to_pylist()
            found = still_there(store, dict(zip(keys, times, strict=True)))
            rows = zip(keys, batch.to_pylist(), strict=True)
            there = found.same | found.younger.keys()
            kept = [_as_it_is(row, key, found, floor_ms) for key, row in rows if key in there]
            yield pa.RecordBatch.from_pylist(kept, VERDICT_SCHEMA)

    return keep(mapped(asked, there, VERDICT_SCHEMA), "orphans")


def _totals(verdicts: DataFrame, options: ScanOptions) -> ScanTotals:
    found = verdicts.groupBy(*_GROUP).agg(
        fn.sum("objects").alias("objects"),
        fn.sum("bytes").alias("bytes"),
        fn.min("oldestMs").alias("oldestMs"),
        fn.max("newestMs").alias("newestMs"),
    )
    totals = ScanTotals(options.price)
    for row in found.collect():
        totals.add(*group_of(row.asDict()))
    return totals
