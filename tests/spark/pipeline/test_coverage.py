"""What was verified, how deep and when, whoever read it: the pipeline, or the job `verify` beside it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from tieredctl_spark.jobs import verify
from tieredctl_spark.tables.files import read_rows
from tieredctl_spark.tables.kinds import READINGS

from tests.spark.pipeline.captured_pipeline import CapturedPipeline
from tieredctl.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_coverage_counts_what_the_ledger_knows_and_what_is_known_is_not_read_again(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    began = datetime.now(UTC)
    pipeline.run("--level", "headers")
    words = [*pipeline.places, "--level", "full", "--subset", "1/2", "--output", str(tmp_path / "output")]
    assert verify.main([*words, "--tables", str(pipeline.tables)]) == ExitCode.CLEAN
    half = json.loads(capsys.readouterr().out)["summary"]["segments"]

    code, _ = pipeline.run("--level", "headers", "--list-every", "0s")

    rows = pipeline.rows("coverage").to_pylist()
    finished = [one for one in pipeline.rows("segments").to_pylist() if one["state"] == "COPY_SEGMENT_FINISHED"]
    counted = Counter[str]()
    for row in rows:
        counted[row["level"]] += row["segments"]
    readings = read_rows(str(pipeline.tables / "ledger"), "readings").to_pylist()
    assert code == ExitCode.CLEAN
    assert counted == {"listing": len(finished), "headers": len(finished), "full": half}
    assert len(readings) == len(finished) + half
    assert {one["clusterId"] for one in readings} == {one["clusterId"] for one in rows} != {None}
    assert sum(row["bytes"] for row in rows if row["level"] == "headers") == sum(
        one["segmentSizeInBytes"] for one in finished
    )
    assert all(row["complete"] and row["verified"] > began for row in rows if row["level"] != "listing")
    assert not (tmp_path / "output/ledger").exists()
    replica = replace(pipeline, store=Path(shutil.copytree(pipeline.store, tmp_path / "replica")))
    words = [*replica.places, "--level", "full", "--output", str(tmp_path / "output")]
    assert verify.main([*words, "--tables", str(pipeline.tables)]) == ExitCode.USAGE
    assert pipeline.rows("coverage").to_pylist() == rows
    assert len(read_rows(str(pipeline.tables / "ledger"), "readings")) == len(readings)


def test_what_was_read_of_another_store_or_of_one_that_is_not_known_is_not_covered(
    kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    replica = replace(pipeline, store=Path(shutil.copytree(pipeline.store, tmp_path / "replica")))
    words = ["--subset", "1/4", "--output", str(tmp_path / "output"), "--tables", str(pipeline.tables)]
    assert verify.main([*replica.places, "--level", "full", *words]) == ExitCode.CLEAN
    written = pa.schema([field for field in READINGS.columns if field.name != "store"])
    with monkeypatch.context() as earlier:  # whose rows do not say of which store they are
        earlier.setattr("tieredctl_spark.ledger_rows.READINGS", replace(READINGS, columns=written))
        earlier.setattr("tieredctl_spark.ledger.READINGS", replace(READINGS, columns=written))
        assert verify.main([*pipeline.places, "--level", "headers", *words]) == ExitCode.CLEAN

    pipeline.run()

    readings = read_rows(str(pipeline.tables / "ledger"), "readings").to_pylist()
    assert {one["store"] for one in readings} == {f"file:{replica.store}", None}
    assert {row["level"] for row in pipeline.rows("coverage").to_pylist()} == {"listing"}
