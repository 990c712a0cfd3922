"""Every supported release of Spark gives the rows that tieredctl gives without any; all other tests run with 4.3.

A share of the exhaustive sets has one of the releases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSource
from tieredctl_spark.catalogs.place import RELEASES as RELEASES_WITH_CATALOGS
from tieredctl_spark.remote_log_metadata import RemoteLogMetadata
from tieredctl_spark.remote_objects import RemoteObjects
from tieredctl_spark.segment_batches import SegmentBatches
from tieredctl_spark.tiered_findings import TieredFindings
from tieredctl_spark.tiered_log import TieredLog
from tieredctl_spark.tiered_segments import TieredSegments

from tests.rigs.spark_releases import RELEASES
from tests.shares import divided
from tests.spark import release_trial
from tests.spark.damage import REMOTE
from tests.spark.release_process import process_of
from tests.spark.release_trial import SOURCES, job_words, options_of, plain
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]  # the first waits until its release is installed

WITHOUT_STREAMS = ("4.0", "4.1")
TRIAL_SECONDS = 500
KINDS: tuple[type[DataSource], ...] = (
    *(RemoteLogMetadata, RemoteObjects, SegmentBatches, TieredFindings, TieredLog),
    TieredSegments,
)
COUNTS_OF_VERIFY = ("segments", "objects", "bytesRead", "batches", "complete")
COUNTS_OF_ORPHANS = ("objects", "bytes", "status", "causes", "complete")


@pytest.fixture(scope="module")
def places(captures: Path) -> tuple[str, str]:
    cluster = captures / "kafka-4.3.1"
    return str(cluster / "data"), f"file:{cluster / REMOTE}"


def tried(release: str, folder: Path, places: tuple[str, str]) -> Any:
    """What a release gives, in a process of its own."""
    answer = folder / "answer.json"
    trial = process_of(release, release_trial.__name__, [*places, str(folder), str(answer)], folder, TRIAL_SECONDS)
    assert trial.returncode == 0, trial.stdout
    return json.loads(answer.read_text())


@pytest.fixture(scope="module")
def rows(places: tuple[str, str]) -> Mapping[str, list[str]]:
    """Of each source, without Spark."""
    found = {}
    for source, kind in zip(SOURCES, KINDS, strict=True):
        opened: Any = kind(options_of(source, *places))
        reader = opened.reader(opened.schema())
        batches = (batch for partition in reader.partitions() for batch in reader.read(partition))
        found[source] = plain(row for batch in batches for row in batch.to_pylist())
    return found


@pytest.mark.parametrize("release", divided(RELEASES))
def test_all_sources_and_jobs_run_on_a_release(
    release: str,
    rows: Mapping[str, list[str]],
    places: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = tried(release, tmp_path, places)

    assert found["release"].startswith(f"{release}.")
    for source, expected in rows.items():
        assert found[source] == expected, source
        assert bool(expected) == (source != "tiered_findings"), source
    for stream, told in found["streams"].items():
        if release in WITHOUT_STREAMS:
            assert f"A stream of {stream} needs PySpark 4.2 or later; this is {found['release']}." in told
            assert "Traceback" not in told
        else:
            assert told == len(rows[stream])
    assert (found["followed"] is not None) == (release in WITHOUT_STREAMS)
    if found["followed"] is not None:
        assert found["followed"]["code"] == ExitCode.FAILURE
        assert "needs PySpark 4.2 or later" in found["followed"]["said"]
        assert "Traceback" not in found["followed"]["said"]
    for job, names in (("verify", COUNTS_OF_VERIFY), ("orphans", COUNTS_OF_ORPHANS)):
        words = job_words(job, *places, "")
        del words[4:6]  # the output
        code = run([*(("orphans", "scan") if job == "orphans" else (job,)), *words, "-o", "json"])
        local = json.loads(capsys.readouterr().out)["summary"]
        assert found[job]["code"] == code, job
        assert {name: found[job]["summary"][name] for name in names} == {name: local[name] for name in names}
    assert found["usage"]["code"] == ExitCode.CLEAN
    assert found["usage"]["summary"]["objects"] == len(rows["remote_objects"])
    assert found["backfill"]["code"] == ExitCode.CLEAN
    assert found["backfill"]["summary"]["records"] == len(rows["tiered_log"])
    assert found["without a catalog"]["code"] == ExitCode.USAGE
    sentence, _ = found["without a catalog"]["said"].splitlines()
    assert sentence.startswith(
        "Spark has no catalog 'lake'." if release in RELEASES_WITH_CATALOGS else "Iceberg and Delta have no runtime"
    )
    kept = found["pipeline"]["rows"]
    assert found["pipeline"]["code"] == ExitCode.CLEAN
    assert kept["events"] == kept["segment_history"] == len(rows["remote_log_metadata"])
    assert kept["segments"] == len(rows["tiered_segments"])
    assert all(kept[name] for name in ("objects_daily", "coverage", "copy_lag_hourly", "retention_forecast"))
