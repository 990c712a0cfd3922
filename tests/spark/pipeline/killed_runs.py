"""Runs that are killed before one of their writes, wherever it is made: on the driver, or by a Python worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tieredctl_spark.pipeline.run import PipelineOptions, run_pipeline
from tieredctl_spark.tables.table_store import Opened, TablesPlace

from tests.spark.pipeline.captured_pipeline import CapturedPipeline
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import StoredObject, WritableObjectStore
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace


class Killed(BaseException):
    """Nothing of the driver goes on."""


@dataclass(frozen=True)
class KilledStore:
    """A store of files whose writers are killed once so many writes were made. Can be pickled: all processes count
    together."""

    store: WritableObjectStore
    folder: Path
    """Of the store."""
    moments: Path
    """Gets a folder for each write, with what there was before it: what a run leaves that is killed there."""
    writes: int
    driver: int
    """The process id."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.store, name)

    def write(self, key: str, data: bytes) -> StoredObject:
        self._note()
        return self.store.write(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._note()
        return self.store.put_if_absent(key, data)

    def delete(self, objects: Sequence[StoredObject]) -> Any:
        self._note()
        return self.store.delete(objects)

    def _note(self) -> None:
        for number in count():
            if number >= self.writes:
                if os.getpid() == self.driver:
                    raise Killed
                os.kill(os.getpid(), signal.SIGKILL)
            with suppress(FileExistsError):
                (self.moments / str(number)).mkdir()
                return self._keep(self.moments / str(number))

    def _keep(self, moment: Path) -> None:
        for file in [*self.folder.rglob("*.parquet"), *self.folder.rglob("*.json")]:
            kept = moment / file.relative_to(self.folder)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.hardlink_to(file)


def killed_run(pipeline: CapturedPipeline, moments: Path, writes: int) -> bool:
    """Runs once, with so many writes and none after them; whether it was killed."""
    metadata, store = MetadataPlace((pipeline.data,)), StorePlace(f"file:{pipeline.store}", layout=pipeline.layout)
    tables = TablesPlace.given(str(pipeline.tables), {})
    options = PipelineOptions(metadata, store, TopicsPlace.beside(metadata), tables)
    return is_killed(lambda opened: run_pipeline(options, {}, opened), pipeline.tables, moments, writes)


def is_killed(run: Callable[[Opened], object], tables: Path, moments: Path, writes: int) -> bool:
    """Runs anything that writes tables in a folder, with so many writes and none after them; whether it was killed."""
    moments.mkdir()
    try:
        run(lambda place: KilledStore(place.open_writable(), tables, moments, writes, os.getpid()))
    except Killed:
        return True
    except TieredctlError as error:
        if error.code is not ErrorCode.SPARK_FAILED:
            raise
        return True
    return False
