"""The example's questions, answered right: in a session of this process, and by a Spark Connect server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.metadata_logs import started, write_events
from tests.spark.damage import REMOTE
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentState as State
from tieredctl.ops.metadata.state import replayed
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.wiring.places import MetadataPlace

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples/tier_questions.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = spec_from_file_location("tier_questions", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def segments(kafka_4: Path) -> list[KnownSegment]:
    with MetadataPlace((kafka_4 / "data",)).open() as stream:
        return [segment for _, segment in replayed(stream).segments()]


def test_answers_are_those_of_the_local_replay(
    spark: SparkSession, example: Any, kafka_4: Path, segments: list[KnownSegment]
) -> None:
    key = min((kafka_4 / REMOTE).rglob("*.log")).relative_to(kafka_4 / REMOTE).as_posix()
    store = {"store": f"file:{kafka_4 / REMOTE}"}

    answers = example.answers(spark, {"log-dir": str(kafka_4 / "data")}, store, key, 0.0)

    topics, delays, stuck, owner, old = (frame.toArrow().to_pylist() for frame in answers.values())
    copied = [one.metadata for one in segments if one.metadata.state is State.COPY_SEGMENT_FINISHED]
    sizes = Counter[str]()
    for one in copied:
        sizes[one.topic_id_partition.topic] += one.segment_size_in_bytes
    assert {row["topic"]: row["bytes"] for row in topics} == dict(sizes)
    assert topics == sorted(topics, key=lambda row: -row["bytes"])
    took = sorted((one.topic_id_partition.topic, one.event_timestamp_ms - one.max_timestamp_ms) for one in copied)
    assert {row["topic"]: row["max"] for row in delays} == dict(took)
    assert all(row["p50"] <= row["p95"] <= row["p99"] <= row["max"] for row in delays)
    newest = max(one.metadata.event_timestamp_ms for one in segments)
    begun = [one.metadata for one in segments if one.metadata.state is State.COPY_SEGMENT_STARTED]
    waiting = Counter(one.author for one in begun if one.event_timestamp_ms < newest - 3_600_000)
    assert {row["brokerId"]: row["segments"] for row in stuck} == dict(waiting)
    explained = layout_named("local").explain(key)
    assert explained is not None
    assert [(row["key"], row["topic"], row["segmentId"]) for row in owner] == [
        (key, explained.topic, explained.segment_id)
    ]
    assert sum(row["segments"] for row in old) == sum(one.max_timestamp_ms < newest for one in copied)


@pytest.mark.parametrize("share", [2, 1], ids=["amid the log", "at its end"])
def test_damaged_metadata_is_not_summed_up(spark: SparkSession, example: Any, tmp_path: Path, share: int) -> None:
    log = write_events(tmp_path, *(started(one, one, one) for one in range(3)))
    data = bytearray(log.read_bytes())
    data[len(data) // share - 1] ^= 0x40
    log.write_bytes(data)

    with pytest.raises(ValueError, match="__remote_log_metadata-0"):
        example.answers(spark, {"log-dir": str(tmp_path)}, {"store": "memory:", "layout": "local"}, None, 7)


@pytest.mark.exhaustive
def test_a_connect_server_answers_the_same(
    connect_server: str, spark: SparkSession, example: Any, kafka_4: Path, tmp_path: Path
) -> None:
    words = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}", "--retention-days", "0"]
    here = example.answers(spark, {"log-dir": words[1]}, {"store": words[3]}, None, 0.0)
    environment = os.environ | {"SPARK_REMOTE": connect_server}

    there = subprocess.run(
        [sys.executable, EXAMPLE, *words], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert there.returncode == 0, there.stderr
    lines = [
        line
        for question, frame in here.items()
        for line in [
            question,
            *(
                "  " + ", ".join(f"{name} {value}" for name, value in row.items())
                for row in frame.toArrow().to_pylist()
            ),
        ]
    ]
    assert there.stdout.splitlines() == lines
