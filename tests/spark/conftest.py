"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.diskless.conftest import tidy
from tests.rigs.availability import rig_unavailable
from tests.rigs.small_spark import INTERPRETED
from tests.spark.connect_server import running_connect_server
from tieredctl.errors import TieredctlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tidy"]
"""Fixture of diskless topics, which Spark reads too."""


_SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"} | INTERPRETED


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session."""
    try:
        from tieredctl_spark.session import spark_session
    except ImportError as error:
        rig_unavailable(f"Spark is not installed: {error}")
    try:
        with spark_session(_SETTINGS) as session:
            yield session
    except TieredctlError as error:
        if error.code != "missing-extra":
            raise
        reason = error.message
    else:
        return
    rig_unavailable(reason)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server on loopback."""
    with running_connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(params=["kafka-4.3.1", pytest.param("kafka-3.9.1", marks=pytest.mark.exhaustive)])
def cluster(request: pytest.FixtureRequest, captures: Path) -> Path:
    """What a real cluster left behind: `data/` and `remote/kafka-tiered-storage/`. Only for reading."""
    folder: Path = captures / request.param
    return folder


@pytest.fixture
def kafka_4(captures: Path) -> Path:
    """The one of them that suffices where releases do not differ."""
    folder: Path = captures / "kafka-4.3.1"
    return folder
