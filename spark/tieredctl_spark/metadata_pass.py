"""One pass of executors over `__remote_log_metadata`: segments' states, or events, and what is true of all of it.

A task takes whole metadata partitions, which have all events of their user partitions, and replays them. Only events of
a metadata partition that is divided among tasks, and all where the topic's partition count was changed, are brought
together by user partition before they are replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.formats.metadata_schemas import SEGMENT_METADATA
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.stretches import demand_held
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.metadata_rows import (
    ABOUT,
    EVENT_ROW_SCHEMA,
    SEGMENT_ROW_SCHEMA,
    TOLD_SCHEMA,
    event_rows,
    state_rows,
)
from tieredctl_spark.arrow.state_blocks import BLOCK, BLOCK_SCHEMA, StateBlock
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA, replayed_states
from tieredctl_spark.kept_frames import Keep, task_rows
from tieredctl_spark.metadata_facts import MetadataFacts, are_apart, events_told, metadata_facts
from tieredctl_spark.metadata_shares import FINDING, Share, planned_shares
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.worker_functions import mapped_groups

COPY_SCHEMA = pa.schema(
    [EVENT_SCHEMA.field(name) for name in ("metadataOffset", "topicId", "partition", "segmentId", "brokerId")]
)
_OFFSETS_IN_TASK = 200_000
"""So many events take about half a second, and a task some tenths of one to start."""
_EVENTS_IN_BUCKET = 250_000
"""About: they are in the memory of a Python worker as a whole."""
_BUCKET = "bucket"


class ReadSegments(NamedTuple):
    """What was read, and kept."""

    segments: SegmentFrame
    facts: MetadataFacts


class ReadEvents(NamedTuple):
    """What was read, and kept."""

    rows: DataFrame
    """A row for each event, by EVENT_SCHEMA."""
    facts: MetadataFacts


def read_segments(session: SparkSession, place: MetadataPlace, stream: EventStream, keep: Keep) -> ReadSegments:
    """The segments of a place that was opened before as `stream`, all of its records of then among them. Raises
    TieredctlError as `share_chunks` does, and `unreadable` where some records are gone by now: what was read may lack
    them."""
    shares = planned_shares(place)
    whole, divided = ([share for share in shares if share.is_whole is is_whole] for is_whole in (True, False))
    kept = keep(_state_frame(session, place, whole), "segments")
    told, blocks = _told(kept), kept.where(fn.col(BLOCK).isNotNull()).select(BLOCK)
    if divided:
        events = keep(_event_frame(session, place, divided), "events")
        told = pa.concat_tables([told, _told(events)])
        blocks = blocks.union(keep(_replayed(events, told), "divided"))
    if are_apart(told):
        events = keep(_event_frame(session, place, shares), "events")
        told = _told(events)
        blocks = keep(_replayed(events, told), "divided")
    return ReadSegments(SegmentFrame(blocks), _facts(place, told, stream))


def read_events(session: SparkSession, place: MetadataPlace, stream: EventStream, keep: Keep) -> ReadEvents:
    """The events, as `read_segments` reads them."""
    kept = keep(_event_frame(session, place, planned_shares(place)), "metadata")
    events = kept.where(fn.col("apiKey").isNotNull()).select(*EVENT_SCHEMA.names)
    return ReadEvents(events, _facts(place, _told(kept), stream))


def copies_in(events: DataFrame) -> DataFrame:
    """Who copied which segment, by COPY_SCHEMA: a row for each event that says so."""
    return events.where(fn.col("apiKey") == SEGMENT_METADATA).select(*COPY_SCHEMA.names)


def replayed(events: DataFrame, buckets: int) -> DataFrame:
    """The segments, by BLOCK_SCHEMA, of all events by EVENT_SCHEMA, in whatever order they come."""
    bucket = fn.pmod(fn.xxhash64("topicId", "partition"), fn.lit(buckets)).alias(_BUCKET)
    groups = events.select(*EVENT_SCHEMA.names, bucket).groupBy(_BUCKET)

    def of_bucket(rows: pa.Table) -> pa.Table:
        return StateBlock.of(replayed_states(rows.select(EVENT_SCHEMA.names))).packed()

    return mapped_groups(groups, of_bucket, BLOCK_SCHEMA)


def _replayed(kept: DataFrame, told: pa.Table) -> DataFrame:
    return replayed(kept.where(fn.col("apiKey").isNotNull()), -(-events_told(told) // _EVENTS_IN_BUCKET) or 1)


def _facts(place: MetadataPlace, told: pa.Table, stream: EventStream) -> MetadataFacts:
    with closing(place.open_source()) as now:
        for number in stream.source.metadata_partitions():
            demand_held(now, number, stream.source.offset_range(number), was_read=False)
    return metadata_facts(told, stream)


def _told(kept: DataFrame) -> pa.Table:
    """All rows but those of segments and events."""
    return kept.where(fn.col(ABOUT).isNotNull() | fn.col(FINDING).isNotNull()).select(*TOLD_SCHEMA.names).toArrow()


def _state_frame(session: SparkSession, place: MetadataPlace, shares: Sequence[Share]) -> DataFrame:
    tasks = _tasks(shares)

    def read(number: int) -> Iterator[pa.Table]:
        return state_rows(place, tasks[number], number)

    return task_rows(session, len(tasks), read, SEGMENT_ROW_SCHEMA)


def _event_frame(session: SparkSession, place: MetadataPlace, shares: Sequence[Share]) -> DataFrame:
    tasks = _tasks(shares)

    def read(number: int) -> Iterator[pa.Table]:
        return event_rows(place, tasks[number])

    return task_rows(session, len(tasks), read, EVENT_ROW_SCHEMA)


def _tasks(shares: Sequence[Share]) -> list[list[Share]]:
    """Neighbours together, as long as they are worth one task."""
    tasks: list[list[Share]] = []
    room = 0
    for share in shares:
        size = share.planned.end - share.planned.start
        if not tasks or size > room:
            tasks.append([])
            room = _OFFSETS_IN_TASK
        tasks[-1].append(share)
        room -= size
    return tasks
