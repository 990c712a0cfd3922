"""What a job has already checked, so that an interrupted job resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from tieredctl.layouts.protocol import Layout
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.storage.protocol import ObjectStore
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.segment_rows import REPORT_SCHEMA, read_report, report_row, task_row

TABLE = "segments"
LEDGER_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("topicId", pa.string()),
        ("partition", pa.int32()),
        ("startOffset", pa.int64()),
        ("endOffset", pa.int64()),
        ("level", pa.string()),
        *REPORT_SCHEMA,
        ("checkedAt", pa.timestamp("us", "UTC")),
        ("fingerprint", pa.string()),
    ]
)
"""A row for each segment that was read. `fingerprint` covers everything that determined the check."""

_SECONDS_BETWEEN_ENTRIES = 60.0


def fingerprint(task: SegmentTask, store: ObjectStore, layout: Layout) -> str:
    """Changes whenever the segment's metadata, its objects' names, the store, the layout or the level do."""
    row = task_row(task) | {"store": store.url, "layout": layout.name}
    text = json.dumps(row, default=bytes.hex, sort_keys=True)
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()


class Ledger:
    """The reports in an output folder."""

    def __init__(self, output: OutputFolder) -> None:
        self._output = output

    def reports(self) -> dict[str, SegmentReport]:
        """By fingerprint, the reports of segments that need not be read again, as they were read to their end."""
        rows = self._output.read_table(TABLE, LEDGER_SCHEMA).sort_by("checkedAt").to_pylist()
        reports = {row["fingerprint"]: read_report(row) for row in rows}
        return {mark: report for mark, report in reports.items() if not _is_incomplete(report)}

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Adds rows of LEDGER_SCHEMA."""
        self._output.write_table(TABLE, pa.Table.from_pylist(rows, LEDGER_SCHEMA), append=True)


@dataclass(slots=True)
class ResumingEngine:
    """An engine that skips the segments of which the ledger has a report, and enters those that it reads.

    It enters them once a minute, so at most a minute's work is lost.
    """

    engine: Engine
    ledger: Ledger
    resumed: int = 0
    """How many segments were skipped so far."""
    _pending: list[dict[str, Any]] = field(default_factory=list)

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """As every engine does."""
        known = self.ledger.reports()
        marked = [(task, fingerprint(task, store, layout)) for task in tasks]
        unread = [task for task, mark in marked if mark not in known]
        fresh = self.engine.check_segments(unread, store, layout)
        entered = time.monotonic()
        for task, mark in marked:
            if mark in known:
                self.resumed += 1
                yield known[mark]
                continue
            report = next(fresh)
            if report.not_looked_at is None:
                self._pending.append(_ledger_row(task, report, mark))
            if time.monotonic() - entered > _SECONDS_BETWEEN_ENTRIES:
                self._enter()
                entered = time.monotonic()
            yield report
        self._enter()

    def _enter(self) -> None:
        if self._pending:
            self.ledger.add(self._pending)
            self._pending = []


def _ledger_row(task: SegmentTask, report: SegmentReport, mark: str) -> dict[str, Any]:
    metadata = task.metadata
    return report_row(report) | {
        "topic": metadata.topic_id_partition.topic,
        "topicId": metadata.topic_id_partition.topic_id,
        "partition": metadata.topic_id_partition.partition,
        "startOffset": metadata.start_offset,
        "endOffset": metadata.end_offset,
        "level": task.level.value,
        "checkedAt": datetime.now(UTC),
        "fingerprint": mark,
    }


def _is_incomplete(report: SegmentReport) -> bool:
    return any(finding.kind.incomplete for finding in report.findings)
