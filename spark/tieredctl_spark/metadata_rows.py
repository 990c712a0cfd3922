"""The rows of a data source that reads `__remote_log_metadata` record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_shares import Share, Wanted, share_tables
from tieredctl_spark.schemas import Projection


@dataclass(frozen=True, slots=True)
class MetadataRows:
    """Those that are asked for. They travel to executors."""

    table: Callable[[pa.Table], pa.Table]
    wanted: Wanted
    columns: Projection

    def batches(self, place: MetadataPlace, share: Share) -> Iterator[pa.RecordBatch]:
        """The batches of one share."""
        for table in share_tables(place, share, self.wanted):
            yield from self.columns.batches(self.table(table))
