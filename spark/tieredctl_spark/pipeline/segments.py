"""Where segments come from: all events are replayed by tieredctl's own replay. Whatever tables have of segments is made
where they are replayed, so that nothing comes to the driver but files' names and sums."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tieredctl.model.events import RemotePartitionDeleteMetadata
from tieredctl.ops.estimates.cost import TopicFigures, topic_figures
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.event_reading import selected_records
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import Layout
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.segment_table import segment_tables
from tieredctl_spark.kept_frames import task_rows
from tieredctl_spark.pipeline.retention import expiring
from tieredctl_spark.pipeline.segment_history import history_rows
from tieredctl_spark.replay_shares import ReplayShare, planned_replays, replayed_share
from tieredctl_spark.tables.kinds import SEGMENT_HISTORY, SEGMENTS
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter

_FACT_SCHEMA = pa.schema({"kind": pa.string(), "document": pa.string()})
_FIGURES, _EXPIRY = "figures", "expiry"
_Expiry = tuple[str, str, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Replaying:
    """How events are replayed. Can be pickled."""

    writer: TableWriter
    layout: Layout
    retention_ms: Mapping[str, int | None]
    """By topic id; None is unknown."""
    now_ms: int


@dataclass(slots=True)
class Replayed:
    """What was written, and sums by topic id."""

    segments: list[DataFile] = field(default_factory=list)
    history: list[DataFile] = field(default_factory=list)
    figures: dict[str, TopicFigures] = field(default_factory=dict)
    expiring: dict[_Expiry, tuple[int, int | None]] = field(default_factory=dict)
    """Segments and bytes (None if not known) by topic, topic id, day since the epoch and reason."""

    def take(self, kind: str, fact: Mapping[str, Any]) -> None:
        """What a task gave."""
        if kind == _FIGURES:
            mine = TopicFigures(**{**fact["figures"], "last_copy": tuple(fact["figures"]["last_copy"])})
            self.figures.setdefault(fact["topicId"], TopicFigures(mine.name)).add(mine)
        elif kind == _EXPIRY:
            name = fact["topic"], fact["topicId"], fact["expires"], fact["reason"]
            segments, size = self.expiring.get(name, (0, 0))
            total = None if None in (size, fact["bytes"]) else size + fact["bytes"]
            self.expiring[name] = segments + fact["segments"], total
        else:
            (self.segments if kind == SEGMENTS.name else self.history).append(DataFile(**fact))


def replay_segments(session: SparkSession, place: MetadataPlace, ends: Mapping[int, int], how: Replaying) -> Replayed:
    """Replays the events of each metadata partition before its offset in `ends`, on executors, in the shares of
    `tiered_segments`. Raises TieredctlError as `planned_replays` does."""
    place = replace(place, as_of=AsOf({number: end - 1 for number, end in ends.items()}))
    shares = planned_replays(place)

    def replayed(number: int) -> Iterator[pa.Table]:
        facts = [{"kind": kind, "document": json.dumps(one)} for kind, one in _facts(place, shares[number], how)]
        yield pa.Table.from_pylist(facts, _FACT_SCHEMA)

    found = Replayed()
    if shares:
        for row in task_rows(session, len(shares), replayed, _FACT_SCHEMA).toArrow().to_pylist():
            found.take(row["kind"], json.loads(row["document"]))
    return found


def _facts(place: MetadataPlace, share: ReplayShare, how: Replaying) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files that were written of a share, and its sums."""
    metadata = replayed_share(place, share)
    history = history_rows(metadata, _removed_ms(place, share, metadata))
    for file in how.writer.write_gathered(SEGMENTS, segment_tables(metadata, metadata.order)):
        yield SEGMENTS.name, asdict(file)
    for file in how.writer.write_gathered(SEGMENT_HISTORY, [history]):
        yield SEGMENT_HISTORY.name, asdict(file)
    for topic_id, figures in topic_figures(metadata, how.layout, how.now_ms).items():
        yield _FIGURES, {"topicId": topic_id, "figures": asdict(figures)}
    for one in expiring(metadata, how.retention_ms):
        yield _EXPIRY, one


def _removed_ms(place: MetadataPlace, share: ReplayShare, metadata: ReplayedMetadata) -> dict[tuple[int, int], int]:
    """The times of events about the removal of partitions, by metadata partition and offset. Hardly any cluster has
    one: those that do are read again."""
    removed = {metadata.partitions[one.partition].topic_id for one in metadata.events.partition_deletes}
    if not removed:
        return {}
    with place.open(share.metadata_partition) as stream:
        return {
            (record.metadata_partition, record.metadata_offset): record.event.event_timestamp_ms
            for record in selected_records(stream, Selection(topic_ids=tuple(sorted(removed))))
            if isinstance(record.event, RemotePartitionDeleteMetadata)
        }
