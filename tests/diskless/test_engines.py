"""Which engines read the objects of diskless topics, and what is believed of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.ops.diskless.bucket import read_bucket
from tieredctl_inkless.ops.diskless.object_engine import LocalObjects
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport
from tieredctl_inkless.ops.diskless.object_tasks import ObjectTasks
from tieredctl_inkless.ops.diskless.verify import verify

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import READER, Inkless
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.verification.report import Level
from tieredctl.ports.object_store import ObjectStore
from tieredctl.storage.file import FileStore


class Losing:
    """Gives all reports but one."""

    def read_objects(self, tasks: ObjectTasks, store: ObjectStore, level: Level) -> Iterator[ObjectReport]:
        reports = LocalObjects().read_objects(tasks, store, level)
        next(reports)
        yield from reports


def test_an_engine_that_loses_an_object_proves_nothing(tidy: Inkless) -> None:
    control_plane = PostgresControlPlane(tidy.server.url(tidy.database, READER))

    with read_bucket(FileStore(str(tidy.bucket)), control_plane) as bucket, pytest.raises(TieredctlError) as failure:
        verify(bucket, Losing(), Level.FULL, 0)

    assert failure.value.code is ErrorCode.FAULT


@pytest.mark.parametrize(
    ("words", "exit_code"), [(("--engine", "flink"), 1), (("--spark-conf", "spark.master=local"), 2)]
)
def test_an_engine_that_is_not_there_and_settings_of_another_are_refused(
    tidy: Inkless, tieredctl: Tieredctl, words: tuple[str, str], exit_code: int
) -> None:
    outcome = tieredctl("diskless", "verify", *tidy.places, *words)

    assert outcome.exit_code == exit_code
    assert "Traceback" not in outcome.err
