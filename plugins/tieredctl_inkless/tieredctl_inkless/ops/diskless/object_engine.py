"""Where the objects of a diskless bucket are read: in this process, or wherever an engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Protocol, runtime_checkable

from tieredctl.ops.verification.report import Level
from tieredctl.ports.object_store import ObjectStore
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport, read_objects
from tieredctl_inkless.ops.diskless.object_tasks import ObjectTasks, tasks_in


@runtime_checkable
class ObjectEngine(Protocol):
    """Runs `read_object` on many tasks."""

    def read_objects(self, tasks: ObjectTasks, store: ObjectStore, level: Level) -> Iterator[ObjectReport]:
        """Reports of all tasks; sound ones may be summed up in one. Once the store is silent, others need not be asked
        for: they are passed over."""
        ...


class LocalObjects:
    """Threads of this process."""

    def read_objects(self, tasks: ObjectTasks, store: ObjectStore, level: Level) -> Iterator[ObjectReport]:
        return read_objects(store, chain.from_iterable(map(tasks_in, tasks.batches())), level)
