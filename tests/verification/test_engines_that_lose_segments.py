"""An engine that does not report on every segment gives no result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.storage.file import FileStore


class Forgetful:
    """Reads only the first two segments."""

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        return LocalEngine().check_segments(islice(tasks, 2), store, layout)


def test_segments_without_a_report_are_not_taken_for_sound(captures: Path) -> None:
    capture = captures / "kafka-4.3.1"
    store = FileStore(str(capture / "remote" / "kafka-tiered-storage"))
    stream = EventStream(LogDirectories([capture / "data"]))
    options = VerifyOptions(Level.HEADERS, Clock(now_ms=0, older_than_ms=0))

    with pytest.raises(TieredctlError, match=r"^The engine reported on 2 of \d+ segments: "):
        verify(stream, store, layout_named("local"), Forgetful(), options)
