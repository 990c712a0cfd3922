"""Records of `__remote_log_metadata`, and what is wrong with it, as the tables of two data sources."""

from __future__ import annotations

import pyarrow as pa

from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA
from tieredctl_spark.arrow.instants import INSTANT, instants
from tieredctl_spark.finding_rows import FINDING_TYPE
from tieredctl_spark.metadata_shares import FINDING, OFFSET, PARTITION

_TIMES = {"timestampMs": "timestamp", "maxTimestampMs": "maxTimestamp", "eventTimestampMs": "eventTimestamp"}
EVENT_TABLE_SCHEMA = pa.schema(
    [
        pa.field(_TIMES[field.name], INSTANT) if field.name in _TIMES else field.with_nullable(True)
        for field in RECORD_TABLE_SCHEMA
    ]
)
"""A row for each record, as in `metadata export`: its value unchanged, and columns of its content, which are null where
it cannot be decoded."""
FINDING_TABLE_SCHEMA = pa.schema([(PARTITION, pa.int32()), (OFFSET, pa.int64()), *FINDING_TYPE])
"""A row for each finding: the metadata partition and the offset that it is about, null where it is about more."""


def event_table(rows: pa.Table) -> pa.Table:
    """The records among rows by METADATA_SCHEMA, of which none is a finding."""
    columns = [
        instants(rows.column(name)) if name in _TIMES else rows.column(name) for name in RECORD_TABLE_SCHEMA.names
    ]
    return pa.table(columns, schema=EVENT_TABLE_SCHEMA)


def finding_table(rows: pa.Table) -> pa.Table:
    """The findings among rows by METADATA_SCHEMA."""
    found = rows.filter(rows.column(FINDING).is_valid()).combine_chunks()
    said = found.column(FINDING).combine_chunks()
    fields = [said.field(number) for number in range(said.type.num_fields)]
    return pa.table([found.column(PARTITION), found.column(OFFSET), *fields], schema=FINDING_TABLE_SCHEMA)
