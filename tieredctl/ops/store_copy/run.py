"""Copies what a destination lacks, then what was added meanwhile, until nothing is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.in_parallel import in_turn
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.store_copy.comparison import Mark, StoreComparison
from tieredctl.ops.store_copy.copying import CopiedObject, CopyResult, ObjectCopier
from tieredctl.ops.store_copy.difference import Difference, Turns
from tieredctl.ops.store_copy.unproven import note_begun, note_proven
from tieredctl.ops.store_copy.written import WrittenObjects
from tieredctl.ports.object_store import Capability, StoredObject, WritableObjectStore
from tieredctl.process.progress import note

MOST_PASSES = 10
"""A source that grows faster than it is copied would never be done with."""
_RENEW_SECONDS = 60.0
_REQUESTS_A_PAGE = 100
"""A page of a listing shows a thousand objects, and is charged like some ten requests for one of them."""
_Row = TypeVar("_Row")


def demand_uploads(store: WritableObjectStore) -> None:
    """Raises TieredctlError `store-incapable` for a store that would replace what others write meanwhile."""
    lacking = {Capability.CONDITIONAL_WRITE, Capability.CONDITIONAL_UPLOAD} - store.capabilities
    if lacking:
        message = f"{store.url} cannot be copied to: it does not honour conditions of writes ({min(lacking)})."
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message)


def difference(comparison: StoreComparison, turns: Turns) -> Difference:
    """What only the source has. Reads both listings when it is entered."""
    missing = (pair.source for pair, row in comparison.compared() if row.mark == Mark.ONLY_IN_SOURCE)
    return Difference((stored for stored in missing if stored is not None), turns)


@dataclass(slots=True)
class CopyRun:
    """One run that begins with a difference which was shown."""

    comparison: StoreComparison
    planned: Difference
    turns: Turns
    copier: ObjectCopier
    lease: Hold
    outcome: Outcome = field(default_factory=Outcome)
    passes: int = 0
    is_whole: bool = False
    """Whether the last look found nothing missing."""
    unproven: int = 0
    """How many objects may be there with other bytes: a look by size takes them for the same."""
    listed_from: int = 10_000
    """How many written objects are worth a listing of the destination before all are written."""
    clock: Callable[[], float] = time.monotonic

    def copied(self) -> Iterator[CopiedObject]:
        """Each object that was copied or could not be, of all passes. What stops it is in the outcome."""
        with ExitStack() as stack:
            todo = self.planned
            try:
                note_begun(self.copier.destination, self.comparison.unproven, self.lease.clock())
                while todo.objects and self.passes < MOST_PASSES:
                    done_before = self.outcome.done
                    yield from self._pass(todo)
                    todo = stack.enter_context(difference(self.comparison, self.turns))
                    if self.outcome.done == done_before:
                        break
                self.is_whole = not todo.objects
                if not self.unproven and not self.comparison.doubtful:
                    note_proven(self.copier.destination)
            except TieredctlError as error:
                self.outcome.stopped = error

    def summary(self) -> Document:
        """What was done, and what the last look found."""
        return {
            **self.outcome.counts(),
            "passes": self.passes,
            "isWhole": self.is_whole,
            "unproven": self.unproven,
        } | self.comparison.summary()

    def exit_code(self) -> ExitCode:
        """An object that failed in one pass may have been copied in another: what is missing in the end counts."""
        if self.outcome.stopped is not None:
            return worst(ExitCode.INCOMPLETE, self.outcome.stopped.exit_code)
        left = self.comparison.exit_code(besides=(Mark.ONLY_IN_SOURCE, Mark.ONLY_IN_DESTINATION))
        return worst(left, ExitCode.CLEAN if self.is_whole and not self.unproven else ExitCode.INCOMPLETE)

    def _pass(self, todo: Difference) -> Iterator[CopiedObject]:
        outcome = self.outcome
        self.passes += 1
        outcome.planned = outcome.done + todo.objects
        outcome.failed = outcome.skipped = 0
        renewed = self.clock()
        for row in self._rows(todo):
            if row is not None:
                self._count(row)
                yield row
            if self.clock() - renewed > _RENEW_SECONDS:
                self.lease.renew()
                renewed = self.clock()

    def _rows(self, todo: Difference) -> Iterator[CopiedObject | None]:
        """What became of each object; None too for one at which somebody has yet to look.

        A listing looks at all of the destination: once as many objects were written as that had before, and at the end
        of the pass if these are more than a few of it."""
        written, held = WrittenObjects(todo), self.comparison.in_destination
        for turn, row in enumerate(self._in_threads(self.copier.copy, todo.in_turn())):
            note("objects copied", turn + 1, todo.objects)
            if row is None:
                written.add(turn)
            yield row
            if written.objects >= max(held, self.listed_from):
                held += written.objects
                yield from self._looked_at(written, by_listing=True)
        yield from self._looked_at(written, by_listing=written.objects * _REQUESTS_A_PAGE > held)

    def _looked_at(self, written: WrittenObjects, *, by_listing: bool) -> Iterator[CopiedObject | None]:
        if by_listing:
            yield from written.shown_by(self.copier.destination)
        yield from self._in_threads(self.copier.look_at, written.taken())

    def _in_threads(self, work: Callable[[StoredObject], _Row], objects: Iterator[StoredObject]) -> Iterator[_Row]:
        threads = max(store.parallel_reads for store in (self.copier.source, self.copier.destination))
        return in_turn(work, objects, threads, most=2 * threads)

    def _count(self, row: CopiedObject) -> None:
        outcome = self.outcome
        if row.result == CopyResult.COPIED:
            outcome.done += 1
            outcome.bytes += row.size
        else:
            self.unproven += row.result == CopyResult.UNPROVEN
            outcome.failed += row.result in (CopyResult.FAILED, CopyResult.UNPROVEN)
            outcome.skipped += row.result not in (CopyResult.FAILED, CopyResult.UNPROVEN)
