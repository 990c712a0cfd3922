"""The orphans among the objects of a scan, gathered for a page while the scan runs: rows up to a limit, sums of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tieredctl.cli.output import Item, TableColumn
from tieredctl.cli.pages.report import table_of
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.quantities import time_ms
from tieredctl.report.table import MOST_ROWS, Table

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
AGES = (
    (_HOUR_MS, "less than an hour"),
    (_DAY_MS, "an hour to a day"),
    (7 * _DAY_MS, "1 to 7 days"),
    (30 * _DAY_MS, "7 to 30 days"),
    (365 * _DAY_MS, "30 to 365 days"),
    (None, "more than a year"),
)
"""How old, below what, in the order of a plot; the last has no end."""
UNKNOWN_AGE = "unknown"
_COLUMNS = (
    TableColumn("CAUSE", "cause"),
    size_column("size"),
    moment_column("MODIFIED", "lastModified"),
    TableColumn("KEY", "key"),
    TableColumn("PART", "part"),
    TableColumn("PARTITION", "partition"),
    TableColumn("TOPIC-ID", "topicId"),
    TableColumn("SEGMENT-ID", "segmentId"),
    TableColumn("TOPIC-LIVE", lambda item: "unknown" if item["topicLive"] is None else item["topicLive"]),
    TableColumn("EVIDENCE", lambda item: json.dumps(item["evidence"])),
)


@dataclass(slots=True)
class OrphanRows:
    """What went through."""

    now_ms: int
    has_sizes: bool
    """Whether the listing has sizes and times."""
    rows: list[Item] = field(default_factory=list)
    left_out: int = 0
    sizes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Bytes by age, as AGES says it, and cause."""

    def through(self, documents: Iterable[Item]) -> Iterator[Item]:
        """The same objects; orphans are remembered."""
        for document in documents:
            if document["status"] == ObjectStatus.ORPHAN:
                self._add(document)
            yield document

    def table(self) -> Table:
        """A row for each."""
        columns = [column for column in _COLUMNS if self.has_sizes or column.people_read is None]
        table = table_of("Orphaned objects", columns, self.rows)
        return Table(table.title, table.headings, table.rows, self.left_out, table.how_to_see_all)

    def _add(self, document: Item) -> None:
        if len(self.rows) < MOST_ROWS:
            self.rows.append(document)
        else:
            self.left_out += 1
        self.sizes[self._age(document), document["cause"]] += document["size"]

    def _age(self, document: Item) -> str:
        counted_from = (document["evidence"] or {}).get("originalTime") or document["lastModified"]
        age_ms = None if counted_from is None else self.now_ms - time_ms(counted_from)
        if age_ms is None:
            return UNKNOWN_AGE
        return next(name for below, name in AGES if below is None or age_ms < below)
