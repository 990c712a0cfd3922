"""Removes what a cleaning plan showed, file by file, and looks again afterwards.

Interrupted anywhere, a node can start on what is there, and another run removes the rest: the latest snapshot and the
log after it are never touched, and segments go from the oldest on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.json_lines import line_of
from tieredctl.model.local_file import SeenFile
from tieredctl.ops.change import Outcome
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.snapshots.cleaning_plan import CleaningPlan, PlannedFiles, PlannedFilesRow
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.replaced_file import file_added_to

_BEGINNING = b'{"step":"'


class Folder(Protocol):
    """A node's folder."""

    def seen(self, name: str) -> SeenFile | None:
        """A regular file as it is now; None where there is none. Raises OSError."""
        ...

    def remove(self, name: str) -> None:
        """Removes a file, for good when this returns. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class CleanedFilesRow(PlannedFilesRow):
    """The same, once the plan was applied."""

    removed: bool


@dataclass(slots=True, kw_only=True)
class CleaningOutcome(Outcome):
    """What became of a plan."""

    plan: CleaningPlan
    removed: list[PlannedFiles] = field(default_factory=list)

    @property
    def others_left(self) -> int:
        return self.planned - self.done

    def rows(self) -> list[CleanedFilesRow]:
        """The plan's rows, each with its outcome."""
        names = {part.files[0].name for part in self.removed}
        return [row.extended(CleanedFilesRow, removed=row.file in names) for row in self.plan.rows()]


@dataclass(frozen=True, slots=True)
class Cleaning:
    """One run over a plan that was shown."""

    plan: CleaningPlan
    folder: Folder
    receipts: Path
    """A file to which a line is added before each file goes, and one after."""
    plan_again: Callable[[], CleaningPlan]
    """Reads the folder once more, in full."""
    demand_stopped: Callable[[], None]
    """Raises TieredctlError if a node may use the folder."""

    def run(self) -> CleaningOutcome:
        """Removes what was shown. Whatever stops it is in the outcome."""
        outcome = CleaningOutcome(plan=self.plan, planned=len(self.plan.to_remove()))
        try:
            self._demand_unchanged_plan()
            parts = self.plan.to_remove()
            for part in parts:
                with critical_section():
                    self._remove(part)
                    outcome.removed.append(part)
                    outcome.done += 1
                    outcome.bytes += part.size
                    if part is parts[-1]:
                        mark_complete()
            self._look_again()
        except OSError as error:
            message = f"{error.filename or self.plan.cluster.path} cannot be removed: {error.strerror}."
            outcome.stopped = TieredctlError(ErrorCode.REMOVAL_FAILED, message)
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _demand_unchanged_plan(self) -> None:
        again = self.plan_again()
        if again.to_remove() != self.plan.to_remove() or again.kept() != self.plan.kept():
            message = f"The files in {self.plan.cluster.path} are no longer those that the plan was made of."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _remove(self, part: PlannedFiles) -> None:
        for file in part.files:
            self._decide_again(file)
            self._receipt(part, file, "removing")
            self.folder.remove(file.name)
            self._receipt(part, file, "removed")

    def _decide_again(self, file: SeenFile) -> None:
        """Raises TieredctlError `world-changed` if the file, or one that stays and lets it go, changed meanwhile."""
        self.demand_stopped()
        for one in (*self.plan.kept(), file):
            if self.folder.seen(one.name) != one:
                message = f"{one.name} in {self.plan.cluster.path} changed while it was cleaned."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _receipt(self, part: PlannedFiles, file: SeenFile, step: str) -> None:
        line: Mapping[str, object] = {
            "step": step,
            "clusterId": self.plan.cluster.cluster_id,
            "folder": str(self.plan.cluster.path),
            "file": file.name,
            "size": file.size,
            "reason": part.reason,
        }
        try:
            with file_added_to(self.receipts, _BEGINNING) as opened:
                opened.write(_end_of_a_cut_line(opened) + line_of(line))
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            message = f"{self.receipts} cannot be written: {error.strerror}."
            raise TieredctlError(ErrorCode.UNWRITABLE, message) from None

    def _look_again(self) -> None:
        """Raises TieredctlError unless the node has the cluster that it had, and nothing of the plan is left."""
        self.demand_stopped()
        left = self.plan_again()
        names = {file.name for part in self.plan.to_remove() for file in part.files}
        back = sorted(names & {file.name for part in left.parts for file in part.files})
        if back:
            message = f"{back[0]} in {self.plan.cluster.path} reappeared after it was removed."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        if _state(left.cluster) != _state(self.plan.cluster):
            message = f"The log in {self.plan.cluster.path} changed while it was cleaned."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)


def demand_receipts(file: Path) -> None:
    """Raises TieredctlError for an existing file that does not begin as receipts do (nothing is added to it), and for
    one in a folder that does not exist."""
    try:
        file.parent.stat()
        with file.open("rb") as opened:
            beginning = opened.read(len(_BEGINNING))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.filename == str(file):
            return
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{file} cannot be written: {error.strerror}.") from None
    if not _BEGINNING.startswith(beginning):
        message = f"{file} has something else than the receipts of an earlier run."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Name another file with --receipts.")


def _end_of_a_cut_line(file: BinaryIO) -> bytes:
    """What ends a last line whose writer was killed."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def _state(cluster: OfflineCluster) -> object:
    return cluster.snapshot, cluster.image.end_offset, cluster.image.topic_ids
