"""Writes the checkpoint files of a plan, one by one, and looks again afterwards.

Interrupted anywhere, each file is the old one or the new one, and another run writes the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.result_row import Column
from tieredctl.ops.change import Outcome
from tieredctl.ops.metadata_recovery.log_start_plan import LARGEST_CHECKPOINT_BYTES, LogStartPlan, ReplacedCheckpoint
from tieredctl.ops.metadata_recovery.restored_log_start import Action, LogStartRow
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.progress import note


class Folder(Protocol):
    """A node's log directory, or a partition's folder in it."""

    @property
    def path(self) -> Path: ...

    def inner(self, name: str) -> AbstractContextManager[Folder]:
        """A folder in this one. Raises OSError."""
        ...

    def read(self, name: str, largest: int) -> bytes:
        """All bytes of a regular file. Raises OSError, also for one that has more than `largest`."""
        ...

    def replace(self, name: str, data: bytes, kept_as: str) -> None:
        """Puts `data` in the place of a file, on disk when this returns; the old one stays as `kept_as`. Raises
        OSError."""
        ...


@dataclass(frozen=True, slots=True)
class RestoredLogStartRow(LogStartRow):
    """The same, once the plan was applied."""

    restored: Annotated[bool, Column("DONE")]


@dataclass(slots=True, kw_only=True)
class LogStartOutcome(Outcome):
    """What became of a plan. Done are partitions: once all files are written and were read again."""

    plan: LogStartPlan
    files: int = 0
    """Files that were written."""

    @property
    def others_left(self) -> int:
        return self.planned - self.done + len(self.plan.by_action(Action.UNKNOWN))

    def rows(self) -> list[RestoredLogStartRow]:
        """The plan's rows, each with its outcome."""
        is_done = self.planned > 0 and self.done == self.planned
        return [
            row.extended(RestoredLogStartRow, restored=is_done and row.action is Action.RESTORE)
            for row in self.plan.rows()
        ]


@dataclass(frozen=True, slots=True)
class LogStartWriting:
    """One run over a plan that was shown."""

    plan: LogStartPlan
    log_dir: Folder
    plan_again: Callable[[], LogStartPlan]
    """Reads the node's files once more, in full."""
    demand_stopped: Callable[[], None]
    """Raises TieredctlError if a node may use the log directory."""

    def run(self) -> LogStartOutcome:
        """Writes what was shown. Whatever stops it is in the outcome."""
        outcome = LogStartOutcome(plan=self.plan, planned=len(self.plan.by_action(Action.RESTORE)))
        try:
            if self.plan_again() != self.plan:
                self._stop("is no longer as it was when the plan was made")
            files = self.plan.to_replace()
            for file in files:
                with critical_section():
                    self._replace(file)
                    outcome.files += 1
                    outcome.bytes += len(file.after)
                    if file is files[-1]:
                        mark_complete()
                note("files", outcome.files, len(files))
            self._look_again()
            outcome.done = outcome.planned
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _replace(self, file: ReplacedCheckpoint) -> None:
        self.demand_stopped()
        if file.folder is None:
            self._replace_in(self.log_dir, file)
            return
        try:
            with self.log_dir.inner(file.folder) as folder:
                self._replace_in(folder, file)
        except OSError as error:
            raise _unwritable(self.log_dir.path / file.folder, error) from None

    def _replace_in(self, folder: Folder, file: ReplacedCheckpoint) -> None:
        path = folder.path / file.name
        try:
            if folder.read(file.name, LARGEST_CHECKPOINT_BYTES) != file.before:
                self._stop(f"changed while it was written: {path}")
            folder.replace(file.name, file.after, file.kept_as)
            if folder.read(file.name, LARGEST_CHECKPOINT_BYTES) != file.after:
                self._stop(f"does not have what was written to {path}")
        except OSError as error:
            raise _unwritable(path, error) from None

    def _look_again(self) -> None:
        """Raises TieredctlError unless everything is as the plan wants it, and no node has started."""
        self.demand_stopped()
        again = self.plan_again()
        if again.to_replace() or again.by_action(Action.REFUSE) or len(again.replicas) != len(self.plan.replicas):
            self._stop("changed while it was written")

    def _stop(self, how: str) -> None:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{self.plan.node.log_dir} {how}.")


def _unwritable(path: Path, error: OSError) -> TieredctlError:
    return TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be written: {error.strerror}.")
