"""Where segments come from: all events are replayed by tieredctl's own replay. Whatever tables have of segments is made
where they are replayed, so that nothing comes to the driver but files' names and sums."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tieredctl.model.events import RemotePartitionDeleteMetadata
from tieredctl.ops.estimates.cost import TopicFigures, topic_figures
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.event_reading import selected_records
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import Layout
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.segment_table import segment_tables
from tieredctl_spark.kept_frames import Keep, task_rows
from tieredctl_spark.pipeline.retention import expiring
from tieredctl_spark.pipeline.segment_history import history_rows
from tieredctl_spark.replay_shares import ReplayShare, planned_replays, replayed_share
from tieredctl_spark.tables.kinds import SEGMENT_HISTORY, SEGMENTS, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter

_FACT_SCHEMA = pa.schema({"kind": pa.string(), "document": pa.string()})
_PIECE_SCHEMA = pa.schema(
    [*(pa.field(kind.name, pa.struct(list(kind.columns))) for kind in (SEGMENTS, SEGMENT_HISTORY)), *_FACT_SCHEMA]
)
_FIGURES, _EXPIRY = "figures", "expiry"
_Expiry = tuple[str, str, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Replaying:
    """How events are replayed. Can be pickled."""

    place: MetadataPlace
    ends: Mapping[int, int]
    """The offset of each metadata partition before which its events are replayed."""
    layout: Layout
    retention_ms: Mapping[str, int | None]
    """The retention by topic id; None is unknown."""
    now_ms: int

    @property
    def place_then(self) -> MetadataPlace:
        return replace(self.place, as_of=AsOf({number: end - 1 for number, end in self.ends.items()}))


@dataclass(slots=True)
class Replayed:
    """Sums by topic id."""

    figures: dict[str, TopicFigures] = field(default_factory=dict)
    expiring: dict[_Expiry, tuple[int, int | None]] = field(default_factory=dict)
    """Segments and bytes (None if not known) by topic, topic id, day since the epoch and reason."""

    def take(self, kind: str, fact: Mapping[str, Any]) -> None:
        """What a task gave."""
        if kind == _FIGURES:
            mine = TopicFigures(**{**fact["figures"], "last_copy": tuple(fact["figures"]["last_copy"])})
            self.figures.setdefault(fact["topicId"], TopicFigures(mine.name)).add(mine)
        else:
            name = fact["topic"], fact["topicId"], fact["expires"], fact["reason"]
            segments, size = self.expiring.get(name, (0, 0))
            total = None if None in (size, fact["bytes"]) else size + fact["bytes"]
            self.expiring[name] = segments + fact["segments"], total


def replay_into_files(
    session: SparkSession, how: Replaying, writer: TableWriter
) -> tuple[Replayed, dict[str, list[DataFile]]]:
    """Replays events, on executors, in the shares of `tiered_segments`, which write segments and their history; the
    files are by table. Raises TieredctlError as `planned_replays` does."""
    place = how.place_then
    shares = planned_replays(place)

    def replayed(number: int) -> Iterator[pa.Table]:
        one = _ReplayedShare.of(place, shares[number], how)
        files = [(kind.name, asdict(file)) for kind, rows in one.tables for file in writer.write_gathered(kind, rows)]
        yield _fact_table([*files, *one.facts()])

    sums, files = Replayed(), {SEGMENTS.name: list[DataFile](), SEGMENT_HISTORY.name: list[DataFile]()}
    if shares:
        for row in task_rows(session, len(shares), replayed, _FACT_SCHEMA).toArrow().to_pylist():
            kind, fact = row["kind"], json.loads(row["document"])
            if kind in files:
                files[kind].append(DataFile(**fact))
            else:
                sums.take(kind, fact)
    return sums, files


def replay_into_frames(session: SparkSession, how: Replaying, keep: Keep) -> tuple[Replayed, dict[str, DataFrame]]:
    """The same, without files: segments and their history as DataFrames of what `keep` keeps."""
    place = how.place_then
    shares = planned_replays(place)

    def replayed(number: int) -> Iterator[pa.Table]:
        one = _ReplayedShare.of(place, shares[number], how)
        for kind, tables in one.tables:
            for rows in tables:
                column = rows.cast(kind.columns).to_struct_array()
                yield _piece_table({kind.name: column}, len(rows))
        facts = _fact_table(one.facts())
        yield _piece_table({name: facts.column(name) for name in facts.column_names}, len(facts))

    kept = keep(task_rows(session, len(shares), replayed, _PIECE_SCHEMA), "replayed")
    sums = Replayed()
    for row in kept.where("kind IS NOT NULL").select("kind", "document").toArrow().to_pylist():
        sums.take(row["kind"], json.loads(row["document"]))
    return sums, {
        kind.name: kept.where(f"{kind.name} IS NOT NULL").select(f"{kind.name}.*")
        for kind in (SEGMENTS, SEGMENT_HISTORY)
    }


def _fact_table(facts: Iterable[tuple[str, Mapping[str, Any]]]) -> pa.Table:
    rows = [{"kind": kind, "document": json.dumps(one)} for kind, one in facts]
    return pa.Table.from_pylist(rows, _FACT_SCHEMA)


def _piece_table(columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    """Null in all other columns."""
    filled = [columns.get(one.name, pa.nulls(rows, one.type)) for one in _PIECE_SCHEMA]
    return pa.table(filled, schema=_PIECE_SCHEMA)


@dataclass(frozen=True, slots=True)
class _ReplayedShare:
    """What is made of a share where it is replayed."""

    metadata: ReplayedMetadata
    tables: Sequence[tuple[TableKind, Iterable[pa.Table]]]
    how: Replaying

    @classmethod
    def of(cls, place: MetadataPlace, share: ReplayShare, how: Replaying) -> _ReplayedShare:
        metadata = replayed_share(place, share)
        history = history_rows(metadata, _removed_ms(place, share, metadata))
        tables = (SEGMENTS, segment_tables(metadata, metadata.order)), (SEGMENT_HISTORY, [history])
        return cls(metadata, tables, how)

    def facts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Its sums."""
        for topic_id, figures in topic_figures(self.metadata, self.how.layout, self.how.now_ms).items():
            yield _FIGURES, {"topicId": topic_id, "figures": asdict(figures)}
        for one in expiring(self.metadata, self.how.retention_ms):
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
