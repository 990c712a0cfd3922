"""The state of every segment after all events."""

from __future__ import annotations

import pyarrow as pa

from tieredctl.ops.orphans.state_columns import EVENT_SCHEMA, STATE_SCHEMA, replayed_states
from tieredctl_spark.packed import Packed, packed_groups, together
from tieredctl_spark.transforms.buckets import numbers_of_partitions


def segment_states(events: Packed, buckets: int) -> Packed:
    """A row by STATE_SCHEMA for each segment of each partition that events by EVENT_SCHEMA name, in whatever order they
    come. All events of a partition are replayed in one task; an id that two partitions claim has a row for each."""

    def replayed(group: pa.Table) -> pa.Table:
        return replayed_states(together(group, EVENT_SCHEMA))

    return packed_groups(events.by_bucket(buckets, numbers_of_partitions, EVENT_SCHEMA), replayed, STATE_SCHEMA)
