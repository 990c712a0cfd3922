"""How tables of segments, or of objects, are read on executors, and what a report says of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from tieredctl.ports.object_store import ObjectStore

_Report = TypeVar("_Report")


class Answered(NamedTuple):
    """How many tasks the store answered, and the last errors of the others."""

    answered: int
    unanswered: int
    why: str | None = None
    refusal: str | None = None
    """The error of one that nobody was let in for, if there is one."""


class Reading(Protocol[_Report]):
    """How the segments, or the objects, of a table of tasks are read. It travels to executors."""

    @property
    def store(self) -> ObjectStore: ...

    def reports(self, batches: Iterable[pa.RecordBatch]) -> Iterator[_Report]:
        """One for each task about which there is something to say, and one for all others."""

    def answered(self, report: _Report) -> Answered:
        """Whether the store answered the tasks of a report."""

    def passed_over(self, unit: pa.Table, why: str) -> _Report:
        """The report of tasks that nobody was asked about, since the store is silent."""
