"""Where segments are read: in this process, or wherever an engine runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.ops.verification.silence import Silence
from tieredctl.plugins import PluginKind
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore

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
        """If `threads` is None, as many as the store reads best with."""
        self._threads = threads

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        threads = self._threads or store.parallel_reads
        waiting: deque[Future[SegmentReport]] = deque()
        silence = Silence()

        def next_report() -> SegmentReport:
            report = waiting.popleft().result()
            silence.note_report(report)
            return report

        with ThreadPoolExecutor(threads) as pool:
            try:
                for task in tasks:
                    waiting.append(pool.submit(silence.check, task, store, layout))
                    if len(waiting) > 2 * threads:
                        yield next_report()
                while waiting:
                    yield next_report()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def engine_named(name: str, settings: dict[str, str]) -> Engine:
    """The engine of that name. Raises TieredctlError for one that is not installed, or settings it does not take."""
    if name == LOCAL:
        if settings:
            raise TieredctlError(ErrorCode.USAGE, "--spark-conf is for --engine spark.")
        return LocalEngine()
    engine: Engine = ENGINES.make(name, settings)
    return engine
