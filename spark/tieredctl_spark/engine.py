"""`--engine spark`: the local engine's checks, run on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from tieredctl.layouts.protocol import Layout
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.silence import Silence
from tieredctl.storage.protocol import ObjectStore
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.orphan_scan import OpenedSparkScan, opened_spark_scan
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_rows import REPORT_SCHEMA, TASK_SCHEMA, check_rows, read_report, task_row
from tieredctl_spark.session import spark_session

# Spark cuts local rows into this number of consecutive slices, and returns their results in order.
_SLICES = "spark.sql.leafNodeDefaultParallelism"
_SLICES_PER_CORE = 4
# A wave is one Spark job, whose reports arrive when it ends: soon, for people who watch, but not too soon, since cores
# idle while its last segments are read.
_WAVE_TASKS = 8_192
_WAVE_BYTES_PER_CORE = 1 << 34
_INTERRUPT_TAG = "tieredctl-check-segments"


def spark_engine(settings: dict[str, str]) -> Engine:
    """The engine of the entry point `spark`: `settings` are Spark's properties, such as `spark.master`."""
    return SparkEngine(settings)


class SparkEngine:
    """Runs `check_segment` in Spark's Python workers, in the active session or in one of its own.

    Executors need the same Python packages as the driver, and access to the store.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings` are for a session of its own; an active one is used as it is."""
        self._settings = settings

    def opened_scan(
        self, places: ScanPlaces, options: ScanOptions, *, lists_all: bool
    ) -> AbstractContextManager[OpenedSparkScan]:
        """`orphans scan`, as the local engine opens it. Raises TieredctlError as that does, `missing-extra` and
        `spark-failed`."""
        return opened_spark_scan(self._settings, places, options, lists_all=lists_all)

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """A report for each task, in the order of the tasks. Raises TieredctlError `missing-extra`, `spark-failed`."""
        with spark_session(self._settings) as session:
            cores = session.sparkContext.defaultParallelism
            # Settings in a new session do not affect the given one.
            own = session.newSession()
            silence = Silence()
            for wave in _waves(tasks, cores):
                if silence.is_final:
                    yield from (silence.check(task, store, layout) for task in wave)
                    continue
                own.conf.set(_SLICES, str(min(len(wave), cores * _SLICES_PER_CORE)))
                for report in _checked(own, wave, store, layout):
                    silence.note_report(report)
                    yield report


def _waves(tasks: Iterable[SegmentTask], cores: int) -> Iterator[list[SegmentTask]]:
    wave: list[SegmentTask] = []
    size = 0
    for task in tasks:
        wave.append(task)
        size += task.metadata.segment_size_in_bytes if task.level is Level.FULL else 0
        if len(wave) == _WAVE_TASKS or size >= cores * _WAVE_BYTES_PER_CORE:
            yield wave
            wave, size = [], 0
    if wave:
        yield wave


def _checked(session: SparkSession, wave: list[SegmentTask], store: ObjectStore, layout: Layout) -> list[SegmentReport]:
    rows = pa.Table.from_pylist([task_row(task) for task in wave], TASK_SCHEMA)
    check = partial(check_rows, store=store, layout=layout)
    session.addTag(_INTERRUPT_TAG)
    try:
        with spark_failures():
            frame = session.createDataFrame(rows, spark_schema(TASK_SCHEMA))
            found = frame.mapInArrow(check, spark_schema(REPORT_SCHEMA)).toArrow()
    except KeyboardInterrupt:
        session.interruptTag(_INTERRUPT_TAG)
        raise
    finally:
        session.removeTag(_INTERRUPT_TAG)
    reports = [read_report(row) for row in found.to_pylist()]
    assert [report.segment_id for report in reports] == [task.metadata.segment_id for task in wave]
    return reports
