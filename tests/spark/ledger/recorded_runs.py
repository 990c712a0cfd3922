"""Runs of the engine with a ledger, into one folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.ledger import Ledger
from tieredctl_spark.ledger_place import ledger_in, open_ledger
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.tables.table_store import Opened, TablesPlace

from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.ports.layout import SegmentIdentity, SegmentReader
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.places import StorePlace

HALF_A_DAY = timedelta(hours=12)


def telling(folder: Path) -> LocalLayout:
    """Leaves a file named after each segment that is read."""

    class Telling(LocalLayout):
        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            (folder / segment.segment_id).touch()
            return super().open_segment(store, segment)

    return Telling()


@dataclass(frozen=True)
class Runs:
    """Runs into one folder."""

    session: SparkSession
    folder: Path
    store: ObjectStore
    opened: Opened = TablesPlace.open_writable

    @property
    def output(self) -> OutputFolder:
        return OutputFolder(self.session, str(self.folder / "output"))

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.place, self.output, StorePlace(self.store.url), opened=self.opened)

    @property
    def place(self) -> TablesPlace:
        return ledger_in(self.output, StorePlace(self.store.url))

    def read(
        self, tasks: list[SegmentTask], *, max_age: timedelta = HALF_A_DAY, max_bytes: int | None = None
    ) -> set[str]:
        """The segments that another run reads."""
        told = self.folder / "told"
        told.mkdir()
        self.reports(tasks, telling(told), RunOptions(max_age, max_bytes))
        names = {path.name for path in told.iterdir()}
        shutil.rmtree(told)
        return names

    def reports(
        self, tasks: list[SegmentTask], layout: LocalLayout | None = None, options: RunOptions | None = None
    ) -> list[SegmentReport]:
        """What another run reports."""
        engine = RecordedEngine(self.output, self.ledger, options or RunOptions(HALF_A_DAY))
        reports = list(engine.check_segments(tasks, self.store, layout or LocalLayout()))
        engine.tidy()
        engine.end()
        assert sum(report.segments for report in reports) == len(tasks)
        return reports


def ids(tasks: list[SegmentTask]) -> set[str]:
    return {task.metadata.segment_id for task in tasks}
