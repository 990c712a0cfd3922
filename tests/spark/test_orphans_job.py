"""The job `orphans`: it marks what the local engine calls orphaned, and of its mark a plan is made."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.jobs import orphans as job
from tieredctl_spark.orphan_scan import SparkScan
from tieredctl_spark.verdict_rows import verdict_document

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import (
    AGED,
    CAPTURE,
    CLUSTER_ID,
    ENOUGH,
    LONG_AGO,
    CrashedClusterOnDisk,
    crashed_cluster_on_disk,
    planned_keys,
    put,
)
from tests.rigs.inventories import BUCKET, ROOT, S3_MANIFEST, s3_inventory, s3_row
from tieredctl.config.plan_key import signing_key
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ports.object_store import StoredObject
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

NOT_UTF_8 = "tiered/orders33-G4i52LJdRBel-FDnehx_Kw/0/\udcff.log"


@pytest.fixture
def cluster(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> CrashedClusterOnDisk:
    """A crashed cluster whose store may be changed, with an object whose name is not UTF-8."""
    copied = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    put(copied, NOT_UTF_8)
    return copied


def run(cluster: CrashedClusterOnDisk, output: Path, log_dir: Path | None = None, *words: str) -> int:
    where = ("--store", f"file:{cluster.bucket}", "--layout", "aiven", "--output", str(output))
    return job.main([*where, "--log-dir", str(log_dir or cluster.log_dir), "--min-age", "1h", *words])


def inventory_of(cluster: CrashedClusterOnDisk, folder: Path) -> Path:
    """An inventory of the cluster's store, as if it were in a bucket: its manifest."""
    objects = [path for path in cluster.bucket.rglob("*") if path.is_file()]
    rows = [
        StoredObject(path.relative_to(cluster.bucket).as_posix(), path.stat().st_size, LONG_AGO * 1_000, "", "STANDARD")
        for path in sorted(objects)
        if path.name.isprintable()
    ]
    for name, data in s3_inventory(list(map(s3_row, rows)), parquet=True).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder / S3_MANIFEST


@pytest.mark.usefixtures("spark", "cloud_environment")
def test_a_mark_is_made_of_an_inventory_as_of_a_point_without_asking_the_store(
    cluster: CrashedClusterOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, manifest = tmp_path / "mark", inventory_of(cluster, tmp_path)
    words = [
        *("--log-dir", str(cluster.log_dir), "--as-of", "2099-01-01T00:00:00Z", "--min-age", "0s"),
        # Nothing answers there.
        *("--store", f"s3://{BUCKET}/{ROOT}", "--store-option", "endpoint=http://127.0.0.1:9"),
        *("--layout", "aiven", "--layout-option", "key-prefix=tiered/", "--inventory", str(manifest)),
    ]

    code = job.main([*words, "--output", str(output)])

    said = json.loads(capsys.readouterr().out)
    local = cluster.tieredctl("orphans", "scan", *words, "-o", "json").document()
    candidates = [verdict_document(row) for row in pq.read_table(output / "candidates").to_pylist()]
    assert code == ExitCode.FINDINGS
    assert sorted(candidates, key=itemgetter("key")) == sorted(
        (one for one in local["items"] if one["status"] == "orphan"), key=itemgetter("key")
    )
    assert said["source"]["inventory"] == local["source"]["inventory"]
    for name in ("objects", "bytes", "status", "causes", "reserved", "gone"):
        assert said["summary"][name] == local["summary"][name]


@pytest.mark.usefixtures("spark", "cloud_environment")
def test_no_mark_is_made_of_an_inventory_without_any_object_of_the_store(
    cluster: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    output, manifest = tmp_path / "mark", inventory_of(cluster, tmp_path)

    code = job.main(
        [
            *("--log-dir", str(cluster.log_dir), "--as-of", "2099-01-01T00:00:00Z", "--output", str(output)),
            *("--store", f"s3://{BUCKET}/other", "--layout", "local", "--inventory", str(manifest)),
        ]
    )

    assert code == ExitCode.USAGE
    assert not (output / "candidates").exists()


class SilentCluster:
    """A `TopicLookup` that is never answered."""

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return dict.fromkeys(topic_ids)

    def describe(self) -> Document:
        return {"kind": "cluster", "bootstrapServer": "broker:9092", "unanswered": "no broker answered."}


@pytest.mark.usefixtures("spark")
def test_where_the_cluster_does_not_say_which_topics_are_live_it_is_incomplete(
    cluster: CrashedClusterOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def silent(_place: TopicsPlace, _now_ms: int) -> Iterator[TopicSources]:
        yield TopicSources(cluster=SilentCluster())

    monkeypatch.setattr(TopicsPlace, "open", silent)

    code = run(cluster, tmp_path / "mark")

    said = capsys.readouterr()
    where = ("--store", f"file:{cluster.bucket}", "--layout", "aiven", "--log-dir", cluster.log_dir)
    local = cluster.tieredctl("orphans", "scan", *where, "--min-age", "1h", "-o", "json")
    assert code == local.exit_code == ExitCode.INCOMPLETE
    for summary in (json.loads(said.out)["summary"], local.document()["summary"]):
        assert not summary["complete"]
    for told in (said.err, local.err):
        assert "It is unknown which topics are live: no broker answered." in told


@pytest.mark.usefixtures("spark")
def test_it_opens_the_notes_that_the_users_key_sealed(
    cluster: CrashedClusterOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the key what was restored looks young, and what was removed is missing."""
    own_key, keys = signing_key(), list[bytes | None]()

    def seen(_session: SparkSession, _places: ScanPlaces, how: ScanOptions, *_others: object) -> SparkScan:
        keys.append(how.key)
        raise TieredctlError(ErrorCode.INTERRUPTED, "That is enough.")

    monkeypatch.setattr(job, "scanned", seen)

    assert run(cluster, tmp_path / "mark") == ExitCode.INTERRUPTED
    assert keys == [own_key]


@pytest.mark.usefixtures("spark")
def test_of_a_partition_alone_what_a_scan_of_it_finds_is_marked(
    cluster: CrashedClusterOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "metrics.prom"
    local = cluster.scan("--min-age", "1h", "-o", "json").document()
    orphan = next(one for one in local["items"] if one["status"] == "orphan" and one["topicId"])
    chosen = ["--topic-id", orphan["topicId"], "--partition", str(orphan["partition"])]

    code = run(cluster, tmp_path / "mark", None, *chosen, "--metrics-file", str(metrics))

    said = json.loads(capsys.readouterr().out)["summary"]
    expected = cluster.scan("--min-age", "1h", "-o", "json", *chosen).document()["summary"]
    assert code == ExitCode.FINDINGS
    for name in ("objects", "bytes", "status", "causes", "selection", "selectedOnly"):
        assert said[name] == expected[name], name
    assert 0 < said["objects"] < local["summary"]["objects"]
    assert f'tieredctl_objects{{command="orphans"}} {said["objects"]}\n' in metrics.read_text()
    assert run(cluster, tmp_path / "none", None, "--topic", "no-such-topic") == ExitCode.USAGE


def summary_in(output: Path) -> Mapping[str, Any]:
    found = output / "summary.json"
    text = found.read_text() if found.is_file() else next(found.glob("part-*")).read_text()
    document: Mapping[str, Any] = json.loads(text)
    return document


@pytest.mark.usefixtures("spark")
def test_a_mark_is_what_a_scan_finds_until_another_begins(
    cluster: CrashedClusterOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "mark"

    code = run(cluster, output)

    said = json.loads(capsys.readouterr().out)
    local = cluster.scan("--min-age", "1h", "-o", "json").document()
    orphans = [one for one in local["items"] if one["status"] == "orphan"]
    candidates = [verdict_document(row) for row in pq.read_table(output / "candidates").to_pylist()]
    assert code == ExitCode.FINDINGS
    assert sorted(candidates, key=itemgetter("key")) == orphans
    assert summary_in(output) == said
    assert said["source"]["clusterId"] == CLUSTER_ID
    for name in ("objects", "bytes", "status", "causes", "storageClasses", "reserved", "complete", "gone"):
        assert said["summary"][name] == local["summary"][name]
    assert said["summary"]["candidates"] == len(orphans) == local["summary"]["status"]["orphan"]["objects"]

    cluster.plan(*AGED, *ENOUGH)
    expected = planned_keys(cluster.plan_file)
    planned = cluster.plan(*AGED, *ENOUGH, "--force", "--from", output)
    assert planned.exit_code == ExitCode.CLEAN, planned.err
    assert planned_keys(cluster.plan_file) == expected

    # From its first moment on, another run takes the mark back that it is about to replace.
    assert run(cluster, output, tmp_path / "nowhere") == ExitCode.USAGE
    refused = cluster.plan(*AGED, *ENOUGH, "--force", "--from", output)
    assert refused.exit_code == ExitCode.USAGE
    assert "not finished" in refused.err
