"""Tables in a catalog, Iceberg's or Delta's, have the rows of those in a folder, each once, wherever runs died."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.catalog_jars import RELEASE, catalog_jars
from tests.rigs.prerequisites import RigMissing
from tests.spark.pipeline import catalog_trial
from tests.spark.pipeline.captured_pipeline import CapturedPipeline
from tests.spark.pipeline.catalog_trial import DELTA, MOMENTS
from tests.spark.release_process import process_of
from tieredctl.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]  # the first waits until its release is installed

SECONDS = 900
KILLED = -9


@pytest.fixture(scope="module")
def trials(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What the two processes saw."""
    try:
        jars = ",".join(map(str, catalog_jars()))
    except RigMissing as missing:
        rig_unavailable(str(missing))
    folder, found = tmp_path_factory.mktemp("catalogs"), []
    for which, code in (("first", KILLED), ("second", 0)):
        answer = folder / f"{which}.json"
        words = [which, str(folder), str(captures / "kafka-4.3.1"), jars, str(answer)]
        trial = process_of(RELEASE, catalog_trial.__name__, words, folder, SECONDS)
        assert trial.returncode == code, trial.stdout
        found.append(json.loads(answer.read_text()))
    return found[0], found[1]


@pytest.mark.parametrize("catalog", MOMENTS)
def test_rows_are_those_of_parquet_and_each_is_there_once_wherever_runs_died(
    trials: tuple[Any, Any], catalog: str
) -> None:
    first, second = trials
    later = second[catalog]

    assert first["diedFirst"][catalog]
    assert first["ended"][catalog]["version"] == 1
    assert first["equal"][catalog] == {}
    assert first["moments"][catalog] == [[True, {}]] * len(MOMENTS[catalog])  # what readers get does not change
    assert second["killed"] == {}
    assert later["ended"]["version"] == 2
    assert later["ended"]["code"] == ExitCode.CLEAN
    assert later["differences"] == {}
    assert later["latest"] == later["ended"]["rows"]  # and nothing of dead runs is left


@pytest.mark.parametrize("catalog", MOMENTS)
def test_of_two_runs_at_once_one_is_refused(trials: tuple[Any, Any], catalog: str) -> None:
    later = trials[1][catalog]

    assert (later["again"]["news"], later["again"]["version"]) == (False, 3)
    assert later["robbed"] == ExitCode.LOCKED
    assert later["kept"] == later["differencesAfter"] == {}
    assert later["after"]["version"] == 4


@pytest.mark.parametrize("catalog", MOMENTS)
def test_status_shows_the_tables(trials: tuple[Any, Any], catalog: str) -> None:
    later = trials[1][catalog]

    assert {one["table"]: one["rows"] for one in later["status"]["items"]} == later["after"]["rows"]
    assert later["status"]["summary"]["due"] == []


@pytest.mark.parametrize("catalog", MOMENTS)
def test_status_says_where_the_formats_procedure_is_due(trials: tuple[Any, Any], catalog: str) -> None:
    was_due, is_due = trials[1][catalog]["expiring"]

    # Iceberg removes nothing that is younger than five days.
    assert (was_due, is_due) == (True, catalog != DELTA)


@pytest.mark.usefixtures("spark")
def test_releases_without_a_runtime_refuse_a_catalog(kafka_4: Path, tmp_path: Path) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")

    code, sentence = pipeline.refused_into("--catalog", "lake")

    assert code == ExitCode.USAGE
    assert "have no runtime for Spark" in sentence
    assert os.listdir(tmp_path) == []
