"""Which objects the metadata promises and a store lacks, where objects look orphaned: these may be theirs; and which a
listing lacked that the store has.

How many objects of each part the listing has of a partition's segments tells where some are missing. Only the listing
of such partitions is gone through again, and only segments that lack something come to the driver, which asks for it as
the local engine does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.windows import Ints
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.metadata.completeness import demand_whole, lost_between
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.promised_segments import PromisedSegments, listing_was_short, promised_objects_missing
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.remote.key_columns import KeyColumns, KeyExplainer
from tieredctl.ops.verification.judged_partitions import any_segment, mask_of
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.places import MetadataPlace, Remote
from tieredctl_spark.arrow.sound_segments import KIND, Kind
from tieredctl_spark.arrow.state_columns import PARTITION_FIELDS, STATE_SCHEMA, numbered_partitions, states_of
from tieredctl_spark.listing_frames import Batches, ListingFrame
from tieredctl_spark.metadata_facts import MetadataFacts
from tieredctl_spark.transforms.object_verdicts import partition_frame
from tieredctl_spark.transforms.sound_objects import ReadableSegments

_IDENTITY = [*PARTITION_FIELDS, "segmentId", "startOffset"]
_PARTS = "parts"
_PART_SCHEMA = pa.schema([*(STATE_SCHEMA.field(name) for name in _IDENTITY), (_PARTS, pa.int32())])
"""A listed object a row: `parts` has the bit of its part."""
_MOST_ASKED = 1_000_000
"""Segments that lack something; of more than these it is not asked what."""


@dataclass(frozen=True, slots=True)
class PromisedObjects:
    """What brokers may read, and what is listed of it."""

    listing: ListingFrame
    readable: ReadableSegments
    probed: DataFrame
    """By PROBED_SCHEMA, of the whole listing."""

    def doubts(
        self,
        facts: MetadataFacts,
        live: LiveTopics,
        metadata: MetadataPlace,
        remote: Remote[ObjectStore],
        options: ScanOptions,
        *,
        with_missing: bool,
    ) -> list[Finding]:
        """The findings about promised objects that the listing lacked though the store has them, and `with_missing`
        about those that the store lacks too, as a local scan has them; of very many segments, only about some. `facts`
        are of the metadata that was read, which is read again where something is missing. Raises TieredctlError
        `metadata-incomplete` where the metadata lost events meanwhile."""
        if remote.layout.form_outside is not None:
            return []
        lacking = self._lacking(remote.layout)
        if not lacking:
            return []
        rows = self._absent(lacking, remote.layout).limit(_MOST_ASKED).toArrow()
        promised = _promised(rows, facts, live, remote.layout)
        passed_over = promised.passed_over(remote.store, options.now_ms)
        found = [listing_was_short(passed_over, remote.store.url)] if passed_over else []
        missing = _missing(promised, facts, metadata, remote, options.key) if with_missing else []
        return [*found, promised_objects_missing(missing, remote.store.url)] if missing else found

    def _lacking(self, layout: Layout) -> dict[TopicIdPartition, int]:
        """Partitions with fewer objects of some part than segments, or more, with how many segments they have."""
        names = [*PARTITION_FIELDS, "part"]
        parts = self.probed.where(fn.col(KIND) == Kind.PART.value).groupBy(*names).agg(fn.sum("objects"))
        counts = {
            (TopicIdPartition(row["topicId"], row["topic"], row["partition"]), row["part"]): row[4]
            for row in parts.collect()
        }
        return {
            partition: segments
            for partition, segments in self.readable.counts.items()
            if any(counts.get((partition, part.value), 0) != segments for part in _promised_parts(partition, layout))
        }

    def _absent(self, lacking: Mapping[TopicIdPartition, int], layout: Layout) -> DataFrame:
        """Their segments that lack something, by STATE_SCHEMA and with the `parts` that are listed."""
        masks = pa.array([mask_of(list(_promised_parts(one, layout))) for one in lacking], pa.int32())
        promised = partition_frame(self.probed, lacking, {"promised": masks})
        listed = self.listing.through(_PartsOf(layout, lacking.keys()).rows, _PART_SCHEMA)
        listed = listed.groupBy(*_IDENTITY).agg(fn.bit_or(_PARTS).alias(_PARTS))
        found = self.readable.frame(lacking).join(listed, _IDENTITY, "left").join(promised, list(PARTITION_FIELDS))
        parts = fn.coalesce(_PARTS, fn.lit(0))
        lacks = parts.bitwiseAND(fn.col("promised")) != fn.col("promised")
        return found.where(lacks).select(*STATE_SCHEMA.names, parts.alias(_PARTS))


def _missing(
    promised: PromisedSegments,
    facts: MetadataFacts,
    metadata: MetadataPlace,
    remote: Remote[ObjectStore],
    key: bytes | None,
) -> list[str]:
    with ExitStack() as stack:
        later = list[EventStream]()

        def read() -> EventStream:
            later.append(stack.enter_context(metadata.open()))
            return later[-1]

        missing = promised.missing(remote.store, read, key)
        for stream in later:
            demand_whole(lost_between(facts, stream))
    return missing


def _promised_parts(partition: TopicIdPartition, layout: Layout) -> Collection[Part]:
    return layout.promised_objects(any_segment(partition)).keys()


def _promised(rows: pa.Table, facts: MetadataFacts, live: LiveTopics, layout: Layout) -> PromisedSegments:
    partitions, _ = numbered_partitions(rows.combine_chunks())
    known = {one: number for number, one in enumerate(partitions)}
    segments = states_of(rows.select(STATE_SCHEMA.names), known, facts.last_timestamp_ms)
    promised = PromisedSegments(segments, live, layout)
    promised.take_parts(numbers_in(rows.column(_PARTS).combine_chunks()).astype(np.uint16))
    return promised


@dataclass(frozen=True)
class _PartsOf:
    """Tells which parts are listed of the segments of some partitions."""

    layout: Layout
    partitions: Collection[TopicIdPartition]

    def rows(self, batches: Batches) -> Iterator[pa.Table]:
        """By _PART_SCHEMA, of objects by LISTING_SCHEMA."""
        explainer, wanted = KeyExplainer(self.layout), frozenset(self.partitions)
        for batch in batches:
            keys = batch.column("key")
            said = explainer.explain(keys.filter(pc.invert(are_reserved(keys))))
            are_wanted = [one is not None and one.topic_id_partition in wanted for one in said.explained]
            yield _part_rows(said, np.flatnonzero(np.array(are_wanted, np.bool_)[said.stems]))


def _part_rows(said: KeyColumns, rows: Ints) -> pa.Table:
    stems, of_stems = said.explained, number_array(said.stems[rows])
    names = said.names[rows]
    columns = {
        "topic": pa.array([one and one.topic for one in stems], pa.string()).take(of_stems),
        "topicId": pa.array([one and one.topic_id for one in stems], pa.string()).take(of_stems),
        "partition": pa.array([one and one.partition for one in stems], pa.int32()).take(of_stems),
        "segmentId": said.named_segments.at(names).text_array(),
        "startOffset": number_array(said.named_offsets[names]),
        _PARTS: pa.array([one and mask_of([one.part]) for one in stems], pa.int32()).take(of_stems),
    }
    return pa.table(columns, schema=_PART_SCHEMA)
