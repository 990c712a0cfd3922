"""The job `usage`: every object is counted once, where it belongs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tieredctl_spark.jobs import usage as job

from tests.rigs.inventories import BUCKET, ROOT, S3_MANIFEST, s3_inventory, s3_row
from tests.spark.damage import REMOTE
from tieredctl.errors import ExitCode
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.object_store import StoredObject
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


@pytest.mark.usefixtures("spark")
def test_what_is_chosen_is_counted_alone_and_leaves_metrics(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}"]
    metrics = tmp_path / "metrics.prom"

    for name, chosen in (("topic", ["--topic", "orders7"]), ("both", ["--topic", "orders7", "--partition", "1"])):
        words = [*where, *chosen, "--metrics-file", str(metrics), "--output", str(tmp_path / name)]
        assert job.main(words) == ExitCode.CLEAN, name
        summary = json.loads(capsys.readouterr().out)["summary"]
        rows = pq.read_table(tmp_path / name / "usage").to_pylist()
        assert {row["topic"] for row in rows} == {"orders7"}
        assert len({row["partition"] for row in rows}) == (1 if name == "both" else 3)
        assert summary["objects"] == sum(row["objects"] for row in rows)
        assert summary["selectedOnly"]
        assert f'tieredctl_objects{{command="usage"}} {summary["objects"]}\n' in metrics.read_text()

    assert job.main([*where, "--topic", "orders", "--output", str(tmp_path / "none")]) == ExitCode.USAGE
    assert "topic orders" in capsys.readouterr().err


def write_inventory(folder: Path, objects: list[StoredObject]) -> None:
    for name, data in s3_inventory(list(map(s3_row, objects)), parquet=True).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.usefixtures("spark", "cloud_environment")
def test_an_inventory_without_any_object_of_the_store_does_not_cost_nothing(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inventory(tmp_path, [StoredObject("a", 7, 0, "", "GLACIER")])

    code = job.main(
        [
            *("--log-dir", str(kafka_4 / "data"), "--output", str(tmp_path / "usage")),
            *("--store", f"s3://{BUCKET}/other", "--layout", "local", "--inventory", str(tmp_path / S3_MANIFEST)),
        ]
    )

    said = capsys.readouterr()
    assert (code, said.out) == (ExitCode.FAILURE, "")
    assert f"The inventory has no object of s3://{BUCKET}/other." in said.err


@pytest.mark.usefixtures("spark")
def test_an_empty_store_costs_nothing_only_where_the_metadata_promises_nothing(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    where = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{tmp_path / 'empty'}", "--layout", "local"]

    refused = job.main([*where, "--output", str(tmp_path / "refused")])
    nothing_said = capsys.readouterr().out
    none_yet = job.main([*where, "--as-of", "2000-01-01T00:00:00Z", "--output", str(tmp_path / "none")])

    assert (refused, nothing_said) == (ExitCode.USAGE, "")
    assert (none_yet, json.loads(capsys.readouterr().out)["summary"]["objects"]) == (ExitCode.CLEAN, 0)


@pytest.mark.usefixtures("spark", "cloud_environment")
def test_an_inventory_stands_for_the_listing_and_metadata_for_a_point_in_the_past(
    kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, now_ms = kafka_4 / REMOTE, 1_780_000_000_000
    files = sorted(path for path in store.rglob("*.log") if path.is_file())
    write_inventory(
        tmp_path, [StoredObject(path.relative_to(store).as_posix(), 7, now_ms, "", "GLACIER") for path in files]
    )
    words = [
        *("--log-dir", str(kafka_4 / "data"), "--as-of", "2000-01-01T00:00:00Z", "--output", str(tmp_path / "usage")),
        # Nothing answers there.
        *("--store", f"s3://{BUCKET}/{ROOT}", "--store-option", "endpoint=http://127.0.0.1:9", "--layout", "local"),
        *("--inventory", str(tmp_path / S3_MANIFEST)),
    ]

    code = job.main(words)

    said = json.loads(capsys.readouterr().out)
    rows = pq.read_table(tmp_path / "usage/usage").to_pylist()
    assert code == ExitCode.CLEAN
    assert (said["summary"]["objects"], said["summary"]["bytes"]) == (len(files), 7 * len(files))
    assert "inventory" in said["source"]
    moment = datetime.fromtimestamp(now_ms / 1_000, UTC).date()
    assert {(row["day"], row["storageClass"], row["brokerId"]) for row in rows} == {(moment, "GLACIER", None)}
