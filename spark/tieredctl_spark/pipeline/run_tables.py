"""Where a run keeps its rows: files with a manifest, or tables of a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.catalogs.claimed_tables import WritingRun
from tieredctl_spark.ledger_rows import LedgerRows
from tieredctl_spark.metadata_shares import Share
from tieredctl_spark.pipeline.segments import Replayed, Replaying
from tieredctl_spark.tables.kinds import TableKind
from tieredctl_spark.tables.manifest import Manifest, State


@dataclass(frozen=True, slots=True)
class RunIdentity(WritingRun):
    """The run that writes."""

    first_kept: str
    """The first day of which events are kept, as YYYY-MM-DD in UTC."""


class RunTables(Protocol):
    """The tables while one run writes them. Until its version is made current, readers of the version before see none
    of it."""

    def append_events(self, place: MetadataPlace, shares: Sequence[Share]) -> int | None:
        """Appends the records of some shares, and does the upkeep that is due. The time of the earliest in ms, by its
        own account; None where there are none."""
        ...

    def replay(self, how: Replaying, *, is_whole: bool) -> Replayed:
        """Replaces segments and their history; rows that metadata which is not whole no longer tells stay."""
        ...

    def rows(self, kind: TableKind, columns: Sequence[str]) -> DataFrame:
        """Some columns of a table, as it is now."""
        ...

    def known(self, kind: TableKind) -> pa.Table:
        """The rows of a small table, of earlier runs."""
        ...

    def replace(self, kind: TableKind, rows: pa.Table) -> None:
        """Writes all rows of a table; of a table by day, those of the run's day."""
        ...

    def replace_days(self, kind: TableKind, first_day: str, rows: Mapping[str, pa.Table]) -> None:
        """Writes the rows of days from `first_day` on, and of these alone."""
        ...

    def states(self) -> Mapping[str, State]:
        """What the new version has."""
        ...


class Versions(Protocol):
    """The versions of all tables."""

    @property
    def url(self) -> str: ...

    def current(self) -> Manifest | None:
        """The newest; None where no run ended."""
        ...

    def readings(self, cluster_id: str | None) -> LedgerRows:
        """Those of the verification ledger that is kept beside the tables, to which ones of this cluster are added."""
        ...

    def opened(self, before: Manifest | None, run: RunIdentity) -> RunTables:
        """In the active session, for the run that makes the version after this one."""
        ...

    def commit(self, manifest: Manifest) -> int:
        """Makes a version current, and removes files that no reader needs any more; how many those were. Raises
        TieredctlError `locked` where another run was faster."""
        ...
