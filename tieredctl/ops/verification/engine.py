"""Where segments are read: in this process, or wherever an engine runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import StoreSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.guards.in_parallel import in_turn
from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.plugins import PluginKind
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore

LOCAL = "local"
ENGINES = PluginKind("engine", "tieredctl.engines", built_in=(LOCAL,))


class Engine(Protocol):
    """Runs `check_segment` on many tasks."""

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """Reports of all tasks. Those of tasks with findings are in the order of the tasks, one for each; others may be
        summed up in one report. A task skipped because the store stopped answering is reported as by
        `Silence.check`."""
        ...


class LocalEngine:
    """Threads of this process: reading and checksumming both release the interpreter lock."""

    def __init__(self, threads: int | None = None) -> None:
        """An engine with `threads` threads; with as many as the store reads best with if None."""
        self._threads = threads

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        threads = self._threads or store.parallel_reads
        silence = Silence()
        for report in in_turn(lambda task: silence.check(task, store, layout), tasks, threads, most=2 * threads + 1):
            silence.note_report(report)
            yield report


def engine_named(name: str, settings: dict[str, str]) -> Engine:
    """The engine of that name. Raises TieredctlError for one that is not installed, or settings it does not take."""
    if name == LOCAL:
        if settings:
            raise TieredctlError(ErrorCode.USAGE, "--spark-conf is for --engine spark.")
        return LocalEngine()
    engine: Engine = ENGINES.make(name, settings)
    return engine


MOST_SEGMENTS_IN_A_ROW = 16


@dataclass(slots=True)
class Silence:
    """Whether too many segments in a row could not be read, each for a reason that would affect every other, too."""

    in_a_row: int = 0
    why: str = ""
    """The last error of the store."""

    @property
    def is_final(self) -> bool:
        return self.in_a_row >= MOST_SEGMENTS_IN_A_ROW

    def note(self, error: TieredctlError | None) -> None:
        """Takes the result of asking for a segment's objects: an error, or an answer."""
        self._note(None if error is None or error.code not in CONCERN_EVERY_OBJECT else error.message)

    def note_report(self, report: SegmentReport) -> None:
        """Takes the report of a segment that was read."""
        causes = (one.message for one in report.unread if one.code in CONCERN_EVERY_OBJECT)
        self._note(next(causes, None if report.not_looked_at is None else self.why))

    def check(self, task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
        """Checks a segment as `check_segment` does, without asking a silent store: the report then says that the
        segment was not checked."""
        if not self.is_final:
            return check_segment(task, store, layout)
        return SegmentReport(task.metadata.segment_id, not_looked_at=self.why, objects=len(task.keys))

    def _note(self, why: str | None) -> None:
        if why is not None:
            self.in_a_row, self.why = self.in_a_row + 1, why
        elif not self.is_final:
            self.in_a_row = 0


def not_looked_at(url: str, segments: int, why: str) -> Finding:
    """The finding that this many segments were not checked, with the store's last error."""
    were = counted(segments, "segment was", "segments were")
    message = f"{were} not checked, after {MOST_SEGMENTS_IN_A_ROW} in a row that could not be read: {why}"
    return Finding(FindingCode.UNREADABLE, url, message, {"store": url, "segments": segments}, about=StoreSubject())
