"""What a plan is made and applied by, altered by somebody so that it says too little: nothing live is touched."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_bucket import broker_of_bucket, crashed_contents
from tests.cli.crashed_cluster import (
    AGED,
    CLUSTER_ID,
    LONG_AGO,
    NEVER_NAMED,
    CrashedCluster,
    CrashedClusterOnDisk,
    planned_keys,
    put,
    without_own,
)
from tests.kraft_snapshots import topic_record, write_snapshot
from tests.rigs.buckets import S3Bucket
from tests.rigs.inventories import BUCKET, ROOT, S3_MANIFEST, s3_inventory, s3_row
from tests.rigs.object_servers import ObjectServer
from tieredctl.cli.arguments import clock_ms, now_ms
from tieredctl.errors import TieredctlError
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.formats.record_batches import read_batch_header
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint
from tieredctl.ops.remote.listing import record_batch
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.wiring.places import ClusterPlace, MetadataPlace
from tieredctl.wiring.topics_place import TopicsPlace

METADATA_TOPIC_ID = "VClEsq7TTwq9CJDcrhYnAg"
NO_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
GONE = "gone33"


@pytest.fixture
def topics(captures: Path) -> dict[str, str]:
    """The ids of the capture's tiered topics, by name."""
    record = json.loads((captures / "aiven-crash-4.3.1/capture.json").read_text())
    return {one["topic"]: one["topic_id"] for one in record["segments"].values()}


Told = Callable[[Path, list[str]], tuple[str, Path]]


def in_a_list(folder: Path, topic_ids: list[str]) -> tuple[str, Path]:
    file = folder / "topic-ids"
    file.write_text("".join(f"{topic_id}\n" for topic_id in topic_ids))
    return "--live-topic-ids", file


def in_a_snapshot(folder: Path, topic_ids: list[str]) -> tuple[str, Path]:
    properties = MetaProperties(KRAFT_VERSION, CLUSTER_ID, 1, None)
    (folder / "meta.properties").write_bytes(encode_meta_properties(properties))
    return "--kraft-snapshot", write_snapshot(folder, clock_ms(), *map(topic_record, topic_ids))


TOLD = pytest.mark.parametrize("told", [in_a_list, in_a_snapshot])
EVERYTHING = (*AGED, "--max-percent", "100")


def keys_owned(cluster: CrashedCluster) -> set[str]:
    return {line["key"] for line in cluster.scan("-o", "jsonl").lines() if line["status"] == "owned"}


def test_topics_that_cannot_be_all_neither_plan_nor_apply_anything(
    cluster: CrashedClusterOnDisk, topics: dict[str, str], tmp_path: Path
) -> None:
    live = [topic_id for name, topic_id in topics.items() if name != GONE]
    lacking = {"everything": [], "the tiered topics": [METADATA_TOPIC_ID, NO_TOPIC_ID], "the metadata topic": live}
    given = {}
    for what, ids in lacking.items():
        for told in (in_a_list, in_a_snapshot):
            folder = tmp_path / f"{told.__name__} {what}"
            folder.mkdir()
            given[folder.name] = told(folder, ids)
    before = cluster.objects()

    for name, words in given.items():
        assert (cluster.plan(*EVERYTHING, *words).exit_code, cluster.plan_file.exists()) == (2, False), name
    assert METADATA_TOPIC_ID in cluster.scan(*given["in_a_list the metadata topic"]).err
    cluster.plan(*EVERYTHING)
    for name, words in given.items():
        assert (cluster.apply(*words).exit_code, without_own(cluster.objects()) == before) == (2, True), name


@TOLD
def test_a_topic_that_was_left_out_after_the_plan_was_made_stops_it(
    cluster: CrashedClusterOnDisk, topics: dict[str, str], tmp_path: Path, told: Told
) -> None:
    """What the others own was not planned, and is not touched."""
    live = [METADATA_TOPIC_ID, *(topic_id for name, topic_id in topics.items() if name != GONE)]
    for name in ("all", "fewer"):
        (tmp_path / name).mkdir()
    owned = keys_owned(cluster)
    assert cluster.plan(*EVERYTHING, *told(tmp_path / "all", live)).exit_code == 0
    planned = planned_keys(cluster.plan_file)

    applied = cluster.apply(*told(tmp_path / "fewer", live[:2]))

    kept = owned - planned
    assert applied.exit_code == 0
    assert kept
    assert kept <= set(cluster.objects())


def test_a_topic_that_nobody_reports_any_more_is_reported_as_unclear(
    cluster: CrashedClusterOnDisk, topics: dict[str, str], tmp_path: Path
) -> None:
    live = [METADATA_TOPIC_ID, *(topic_id for name, topic_id in topics.items() if name != GONE)]
    cluster.plan(*EVERYTHING, "--cause", "topic-gone", *in_a_list(tmp_path, live))
    before = cluster.objects()

    outcome = cluster.apply()

    assert (outcome.exit_code, "now owned" in outcome.err) == (5, False)
    assert without_own(cluster.objects()) == before


@TOLD
def test_a_live_cluster_is_asked_itself(tmp_path: Path, told: Told) -> None:
    option, file = told(tmp_path, [METADATA_TOPIC_ID])
    listed, snapshot = (file, None) if option == "--live-topic-ids" else (None, file)

    live = MetadataPlace(cluster=ClusterPlace("broker:9092"))
    with pytest.raises(TieredctlError, match=f"{option} is for a cluster that is down"):
        TopicsPlace.beside(live, listed, snapshot)


def starts_of_batches(log: bytes) -> list[int]:
    starts = [0]
    while starts[-1] < len(log):
        starts.append(starts[-1] + read_batch_header(log, starts[-1], len(log)).size)
    return starts


def cut_short(cluster: CrashedClusterOnDisk, folder: Path) -> CrashedClusterOnDisk:
    """The same with a metadata partition that lost the later half of its batches, and objects older than any event."""
    data = folder / "cut"
    shutil.copytree(cluster.log_dir, data)
    log = data / "__remote_log_metadata-0/00000000000000000000.log"
    os.truncate(log, starts_of_batches(log.read_bytes())[64])
    for file in filter(Path.is_file, cluster.bucket.rglob("*")):
        os.utime(file, (LONG_AGO, LONG_AGO))
    return replace(cluster, log_dir=data)


def test_what_the_last_events_of_a_metadata_log_told_is_neither_orphaned_nor_lost_without_them(
    tieredctl: Tieredctl, cluster: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    verify = ("verify", *cluster.store, "--layout", "aiven", "--level", "listing", "-o", "json", "--log-dir")
    known = {finding["subject"] for finding in tieredctl(*verify, cluster.log_dir).document()["items"]}
    owned = keys_owned(cluster)
    cut = cut_short(cluster, tmp_path)

    scanned, made = cut.scan("-o", "jsonl"), cut.plan(*EVERYTHING)
    assert (scanned.exit_code, made.exit_code, cut.plan_file.exists()) == (5, 5, False)
    assert not owned & {line["key"] for line in scanned.lines() if line["status"] == "orphan"}
    assert "metadata-cut-short: __remote_log_metadata-0: " in made.err

    verified = tieredctl(*verify, cut.log_dir)
    others = [item for item in verified.document()["items"] if item["code"] != "metadata-cut-short"]
    assert (verified.exit_code, verified.document()["summary"]["complete"]) == (5, False)
    assert {item["subject"] for item in others} <= known

    assert cluster.plan(*EVERYTHING).exit_code == 0
    before = cluster.objects()
    assert (cut.apply().exit_code, without_own(cluster.objects()) == before) == (5, True)


def altered_checkpoint(cluster: CrashedClusterOnDisk, file: Path) -> Path:
    """Of a complete listing that says of each object that it is old."""
    store = FileStore(str(cluster.bucket))
    objects = [stored._replace(last_modified_ms=LONG_AGO * 1_000) for stored in store.list()]
    checkpoint = ListingCheckpoint(file, store.url, now_ms(None))
    (everything,) = checkpoint.unlisted()
    checkpoint.add(everything.number, objects[0].key, record_batch(objects), objects[-1].key)
    checkpoint.finish(everything.number)
    checkpoint.close()
    return file


def test_a_checkpoint_that_makes_objects_old_removes_none_that_is_young_or_owned(
    cluster: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    owned = keys_owned(cluster)
    os.utime(put(cluster, NEVER_NAMED))  # a copy that began, whose first event is not read yet, looks like this
    before = cluster.objects()

    made = cluster.plan(*EVERYTHING, "--resume", altered_checkpoint(cluster, tmp_path / "checkpoint"))

    assert owned
    assert made.exit_code == 0
    assert not cluster.plan_file.exists()
    assert without_own(cluster.objects()) == before


def test_an_inventory_that_makes_objects_old_removes_none_that_is_young_or_owned(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path, moto: ObjectServer
) -> None:
    bucket, contents = S3Bucket(moto.endpoint), crashed_contents(captures)
    words = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    store = ("--store", f"s3://{BUCKET}/{ROOT}", *words)
    cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, store)
    for key, data in contents.items():
        bucket.put(ROOT + key, data)
    owned = keys_owned(cluster)
    rows = [s3_row(StoredObject(key, len(data), LONG_AGO * 1_000, "")) for key, data in contents.items()]
    for name, written in s3_inventory([row | {"ETag": ""} for row in rows]).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(written)

    made = cluster.plan(*(*EVERYTHING, "--layout-option", "key-prefix=tiered/", "--inventory", tmp_path / S3_MANIFEST))

    assert owned
    assert made.exit_code == 0
    assert not cluster.plan_file.exists()
    assert {name.removeprefix(ROOT) for name in bucket.names(ROOT + "tiered/")} == set(contents)
    for name in bucket.names(ROOT):
        bucket.remove(name)
