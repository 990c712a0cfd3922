"""The job `usage`: every object is counted once, where it belongs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tieredctl_spark.jobs import usage as job

from tests.spark.damage import REMOTE
from tieredctl.errors import ExitCode
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.wiring.places import MetadataPlace

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
CONFIG = """
prices:
  - {store: "file:", perGiBMonth: 0.5, currency: EUR}
"""


@pytest.mark.usefixtures("spark")
def test_every_object_is_counted_where_it_belongs(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    store, output = kafka_4 / REMOTE, tmp_path / "output"
    where = ("--log-dir", str(kafka_4 / "data"), "--store", f"file:{store}", "--layout", "local")

    code = job.main([*where, "--output", str(output)])

    summary = json.loads(capsys.readouterr().out)["summary"]
    with MetadataPlace((kafka_4 / "data",)).open() as stream:
        events = [record.event for record in stream.records()]
    brokers = {one.segment_id: one.author for one in events if isinstance(one, RemoteLogSegmentMetadata)}
    expected_objects, expected_bytes = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for file in store.rglob("*"):
        said = LAYOUT.explain(file.relative_to(store).as_posix())
        if file.is_dir() or said is None:
            continue
        day = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
        group = said.topic, said.topic_id, said.partition, day, brokers.get(said.segment_id)
        expected_objects[group] += 1
        expected_bytes[group] += file.stat().st_size
    rows = pq.read_table(output / "usage").to_pylist()
    groups = [tuple(row[name] for name in ("topic", "topicId", "partition", "day", "brokerId")) for row in rows]
    assert code == ExitCode.CLEAN
    assert len(set(groups)) == len(groups)
    assert {group: row["objects"] for group, row in zip(groups, rows, strict=True)} == expected_objects
    assert {group: row["bytes"] for group, row in zip(groups, rows, strict=True)} == expected_bytes
    assert all(row["monthlyCost"] == pytest.approx(row["bytes"] * 0.5 / 2**30) for row in rows)
    assert summary["success"]
    assert summary["objects"] == expected_objects.total()
    assert summary["bytes"] == expected_bytes.total()
    assert summary["monthlyCost"] == pytest.approx(expected_bytes.total() * 0.5 / 2**30)
    assert summary["currency"] == "EUR"
