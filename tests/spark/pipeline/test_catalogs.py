"""Tables in a catalog, Iceberg's or Delta's, have the rows of those in a folder, each once, wherever runs died."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.catalog_jars import RELEASE, catalog_jars
from tests.rigs.prerequisites import RigMissing
from tests.spark.pipeline import catalog_trial
from tests.spark.pipeline.catalog_trial import CATALOGS, DELTA
from tests.spark.release_process import process_of
from tieredctl.errors import ExitCode

# The first waits until its release is installed; then come some twenty runs of the pipeline, and some of backfills.
pytestmark = [pytest.mark.spark, pytest.mark.exhaustive("catalogs"), pytest.mark.timeout(3_600)]

SECONDS = 3_000


@pytest.fixture(scope="module")
def trials(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the other process saw."""
    try:
        jars = ",".join(map(str, catalog_jars()))
    except RigMissing as missing:
        rig_unavailable(str(missing))
    folder = tmp_path_factory.mktemp("catalogs")
    answer = folder / "answer.json"
    words = [str(folder), str(captures / "kafka-4.3.1"), jars, str(answer)]
    trial = process_of(RELEASE, catalog_trial.__name__, words, folder, SECONDS)
    assert trial.returncode == 0, trial.stdout
    return json.loads(answer.read_text())


@pytest.mark.parametrize("catalog", CATALOGS)
def test_rows_are_those_of_parquet_and_each_is_there_once_wherever_runs_died(trials: Any, catalog: str) -> None:
    found = trials[catalog]

    assert (found["diedFirst"], found["died"]) == (True, True)
    assert found["first"]["version"] == 1
    assert found["firstDifferences"] == {}
    assert (found["ended"]["version"], found["ended"]["code"]) == (2, ExitCode.CLEAN)
    assert found["differences"] == {}
    assert found["latest"] == found["ended"]["rows"]  # and nothing of dead runs is left
    assert (found["again"]["news"], found["again"]["version"]) == (False, 3)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_of_two_runs_at_once_one_is_refused_and_what_it_wrote_is_undone(trials: Any, catalog: str) -> None:
    found = trials[catalog]

    assert found["robbed"] == ExitCode.LOCKED
    assert found["kept"] == {}  # what readers get does not change
    assert found["later"]["rows"] == found["later"]["latest"] == found["ended"]["rows"]


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_run_names_the_newest_version_of_a_table_whose_files_were_put_together(trials: Any, catalog: str) -> None:
    later = trials[catalog]["later"]

    assert (later["isNew"], later["isNewest"]) == (True, True)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_the_verification_ledger_is_a_table_of_the_catalog(trials: Any, catalog: str) -> None:
    verified = trials[catalog]["verified"]

    assert verified["resumed"] == [0, verified["segments"]]
    assert verified["counted"] == verified["segments"] > 0


def test_a_claim_that_the_format_refuses_is_not_taken_for_a_lost_one(trials: Any) -> None:
    assert trials["refusedClaim"] not in ("nothing", "TieredctlError")


def test_a_table_of_runs_without_a_row_is_named(trials: Any) -> None:
    assert trials["empty"] == ExitCode.CORRUPTION


@pytest.mark.parametrize("catalog", CATALOGS)
def test_status_shows_the_tables(trials: Any, catalog: str) -> None:
    found = trials[catalog]

    assert {one["table"]: one["rows"] for one in found["status"]["items"]} == found["ended"]["rows"]
    assert found["status"]["summary"]["due"] == []


@pytest.mark.parametrize("catalog", CATALOGS)
def test_status_says_where_the_formats_procedure_is_due(trials: Any, catalog: str) -> None:
    was_due, is_due = trials[catalog]["expiring"]

    # Iceberg removes nothing that is younger than five days.
    assert (was_due, is_due) == (True, catalog != DELTA)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_topics_history_has_each_record_once_wherever_runs_died(trials: Any, catalog: str) -> None:
    found = trials["backfill"][catalog]
    first, whole = found["expected"]

    assert found["ended"] == [first, whole]  # the rows that files have
    counts = [len(seen["records"]) for seen in found["seen"]]
    assert len(counts) > 2
    assert counts == sorted(counts)
    for seen in found["seen"]:
        assert set(Counter(seen["records"]).values()) <= {1}
        assert set(seen["records"]) <= set(first["records"])
    assert len(whole["unreadable"]) == 1
    assert found["newest"] == {name: len(rows) for name, rows in whole.items()}  # nothing of dead runs is left
    assert found["left"] == []


@pytest.mark.parametrize("catalog", CATALOGS)
def test_of_two_backfills_at_once_one_is_refused_and_another_run_appends_what_is_new(trials: Any, catalog: str) -> None:
    found = trials["backfill"][catalog]
    ended, again = found["runs"]

    assert (found["robbed"], found["kept"]) == (ExitCode.LOCKED, True)
    assert (ended["code"], ended["records"]) == (ExitCode.CORRUPTION, len(found["expected"][1]["records"]))
    assert (again["appended"], again["version"]) == (0, ended["version"])
    assert set(found["refused"]) == {ExitCode.USAGE}  # among files of other tables, and another topic
