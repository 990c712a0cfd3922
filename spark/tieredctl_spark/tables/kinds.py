"""All tables: their names, columns and how they are kept."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tieredctl.records.arrow_records import DAMAGE
from tieredctl_spark.arrow.event_table import EVENT_TABLE_SCHEMA
from tieredctl_spark.arrow.instants import INSTANT
from tieredctl_spark.arrow.segment_table import SEGMENT_TABLE_SCHEMA
from tieredctl_spark.record_rows import RECORD_TABLE_SCHEMA
from tieredctl_spark.segment_reading import READING_SCHEMA

DAY = "day"
PROVENANCE = pa.schema({"clusterId": pa.string(), "runId": pa.string(), "schemaVersion": pa.int32()})
"""What each row of each table has besides: the cluster, null where its id is not known; the run that wrote it; and the
version of its table's columns."""
_TOPIC = {"topic": pa.string(), "topicId": pa.string()}
_PARTITION = {**_TOPIC, "partition": pa.int32()}


@dataclass(frozen=True, slots=True)
class TableKind:
    """One of the tables."""

    name: str
    columns: pa.Schema
    """Without `day` and PROVENANCE."""
    by_day: bool = False
    """Whether its rows are in folders `day=YYYY-MM-DD` (UTC); else a run writes it as a whole."""
    schema_version: int = 1

    @property
    def schema(self) -> pa.Schema:
        """All columns of a file."""
        return pa.schema([*self.columns, *PROVENANCE])

    @property
    def read_schema(self) -> pa.Schema:
        """All columns that a reader gets."""
        days = [pa.field(DAY, pa.string())] if self.by_day else []
        return pa.schema([*self.schema, *days])


EVENTS = TableKind("events", EVENT_TABLE_SCHEMA, by_day=True)
"""A row for each record of the metadata topic, as `remote_log_metadata` has it; `day` is the one on which a run took
it."""
SEGMENTS = TableKind("segments", SEGMENT_TABLE_SCHEMA)
"""A row for each segment as it is now, as `tiered_segments` has it."""
SEGMENT_HISTORY = TableKind(
    "segment_history",
    pa.schema(
        {
            **_PARTITION,
            "segmentId": pa.string(),
            "state": pa.string(),
            "validFrom": INSTANT,
            "validTo": INSTANT,
            "brokerId": pa.int32(),
            "metadataPartition": pa.int32(),
            "metadataOffset": pa.int64(),
            "maxTimestamp": INSTANT,
        }
    ),
)
"""A row for each state that a segment was in, from the event that began it; `validTo` is null for the last one."""
OBJECTS_DAILY = TableKind(
    "objects_daily",
    pa.schema({**_TOPIC, "part": pa.string(), "storageClass": pa.string(), "objects": pa.int64(), "bytes": pa.int64()}),
    by_day=True,
)
"""What the store held on a day: null is what no layout explains, or the store does not tell."""
COST_DAILY = TableKind(
    "cost_daily",
    pa.schema(
        {
            **_TOPIC,
            "segments": pa.int64(),
            "bytes": pa.int64(),
            "storageCost": pa.float64(),
            "copiesPerDay": pa.float64(),
            "objectsASegment": pa.int64(),
            "puts": pa.int64(),
            "putsCost": pa.float64(),
            "currency": pa.string(),
        }
    ),
    by_day=True,
)
"""What a month costs, as `estimate cost` said it on a day; without rows where the configuration has no price."""
FINDINGS = TableKind(
    "findings",
    pa.schema(
        {
            "code": pa.string(),
            "severity": pa.string(),
            "subject": pa.string(),
            "firstOffset": pa.int64(),
            "lastOffset": pa.int64(),
            "message": pa.string(),
            "evidence": pa.string(),
            "remedy": pa.string(),
            "look": pa.string(),
            "level": pa.string(),
            "firstSeen": INSTANT,
            "lastSeen": INSTANT,
            "resolved": INSTANT,
        }
    ),
)
"""A row for each code, subject and offsets; message, evidence and severity are those of the last look that found it."""
ORPHANS_DAILY = TableKind(
    "orphans_daily",
    pa.schema(
        {
            **_TOPIC,
            "cause": pa.string(),
            "storageClass": pa.string(),
            "atLeastDays": pa.int32(),
            "objects": pa.int64(),
            "bytes": pa.int64(),
        }
    ),
    by_day=True,
)
"""The orphaned objects of a day, by how many days ago they were written: 0, 1, 7, 30 or 90 at least."""
COVERAGE = TableKind(
    "coverage",
    pa.schema(
        {
            **_TOPIC,
            "level": pa.string(),
            "segments": pa.int64(),
            "bytes": pa.int64(),
            "verified": INSTANT,
            "complete": pa.bool_(),
        }
    ),
    by_day=True,
)
"""What was compared with the store, how deep, when; `complete` is whether the store answered all that it was asked."""
COPY_LAG_HOURLY = TableKind(
    "copy_lag_hourly",
    pa.schema(
        {
            **_TOPIC,
            "hour": INSTANT,
            "copies": pa.int64(),
            "p50Ms": pa.int64(),
            "p95Ms": pa.int64(),
            "longestMs": pa.int64(),
        }
    ),
    by_day=True,
)
"""By the hour (UTC) in which copies finished, how long after their segments' last records that was."""
RETENTION_FORECAST = TableKind(
    "retention_forecast",
    pa.schema(
        {
            **_TOPIC,
            "expires": pa.date32(),
            "reason": pa.string(),
            "segments": pa.int64(),
            "bytes": pa.int64(),
        }
    ),
    by_day=True,
)
"""The finished segments of a day by the day on which `retention.ms` lets brokers delete them. Where `expires` is null,
`reason` says why: `no-limit`, `unknown` settings, `out-of-range`. `bytes` is null where the size of one is unknown."""

TABLES = {
    kind.name: kind
    for kind in (
        EVENTS,
        SEGMENTS,
        SEGMENT_HISTORY,
        OBJECTS_DAILY,
        COST_DAILY,
        FINDINGS,
        ORPHANS_DAILY,
        COVERAGE,
        COPY_LAG_HOURLY,
        RETENTION_FORECAST,
    )
}
"""The pipeline's."""

RECORDS = TableKind("records", pa.schema([field for field in RECORD_TABLE_SCHEMA if field.name != DAMAGE.name]))
"""A row for each record of a topic, as `tiered_log` has it."""
UNREADABLE = TableKind(
    "unreadable",
    pa.schema(
        {
            **_PARTITION,
            "firstOffset": pa.int64(),
            "lastOffset": pa.int64(),
            "segmentId": pa.string(),
            "part": pa.string(),
            "key": pa.string(),
            "code": pa.string(),
            "severity": pa.string(),
            "message": pa.string(),
            "evidence": pa.string(),
        }
    ),
)
"""A row for each finding about a topic's records: offsets (inclusive) are those of which nothing was returned, null
where that is none. Where damage is in the object `key`, `evidence` (JSON) has the byte as `position`."""

BACKFILL_TABLES = {kind.name: kind for kind in (RECORDS, UNREADABLE)}
"""Those of a topic's history."""

READINGS = TableKind("readings", pa.schema([*READING_SCHEMA, ("checkedAt", INSTANT)]))
"""A row for each reading of a segment by verification; `checkedAt` is a time before it, by the clock of the job's
driver. A row may be there twice."""
LEDGER_TABLES = {READINGS.name: READINGS}
"""That of the verification ledger."""
