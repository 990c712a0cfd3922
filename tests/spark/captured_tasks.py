"""The verification tasks of a captured cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.spark.damage import REMOTE
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.storage.file import FileStore


class _Kept:
    """Keeps what it is asked, and reads nothing."""

    def __init__(self) -> None:
        self.tasks: list[SegmentTask] = []

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        self.tasks = list(tasks)
        yield SegmentReport("", segments=len(self.tasks))


def captured_tasks(cluster: Path, level: Level) -> list[SegmentTask]:
    """A task for each segment, as the store lists its objects now."""
    engine, store = _Kept(), FileStore(str(cluster / REMOTE))
    stream = EventStream(LogDirectories([cluster / "data"]))
    verify(stream, store, layout_named("local"), engine, VerifyOptions(level, Clock(now_ms=0, older_than_ms=0)))
    return engine.tasks
