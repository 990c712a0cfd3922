"""Every object of real stores, against what the clusters' own records say."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import broker_of
from tests.kraft_snapshots import topic_record, write_snapshot
from tests.rigs.buckets import BUCKET as STORED_IN
from tests.rigs.buckets import S3Bucket
from tests.rigs.inventories import BUCKET, ROOT, S3_MANIFEST, s3_inventory, s3_row
from tests.rigs.object_servers import ObjectServer
from tieredctl.cli.arguments import now_ms
from tieredctl.model.quantities import time_ms
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint
from tieredctl.ports.object_store import StoredObject

DELETED_TOPIC = "gone33"
LATER_MS = 4_000_000_000_000
"""After all that was captured."""
STARTED = re.compile(
    r"offset: (?P<offset>\d+), value: RemoteLogSegmentMetadata\{.*topicIdPartition=(?P<partition>[^,]+), "
    r"id=(?P<id>[^}]+)\}, startOffset=(?P<start>\d+), endOffset=(?P<end>\d+),.*state=COPY_SEGMENT_STARTED"
)


@pytest.fixture(scope="module")
def crash(captures: Path) -> Path:
    return captures / "aiven-crash-4.3.1"


@pytest.fixture(scope="module")
def record(crash: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((crash / "capture.json").read_text())
    return document


def words_of(crash: Path, *options: str | Path) -> tuple[str | Path, ...]:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")
    return "orphans", "scan", *where, *options


def scan(tieredctl: Tieredctl, crash: Path, *options: str | Path) -> tuple[int, list[dict[str, Any]]]:
    outcome = tieredctl(*words_of(crash, "--min-age", "0", "-o", "jsonl", *options))
    return outcome.exit_code, [json.loads(line) for line in outcome.out.splitlines()]


def verdicts(documents: list[dict[str, Any]]) -> set[tuple[str, str, str | None]]:
    return {(document["key"], document["status"], document["cause"]) for document in documents}


def superseded(crash: Path) -> set[str]:
    """Segments of which the offsets were copied again, by the text that Kafka's own formatter printed."""
    found = set()
    for text in (crash / "oracle" / "formatter").iterdir():
        starts = [match for match in map(STARTED.search, text.read_text().splitlines()) if match]
        for one in starts:
            for other in starts:
                later = int(other["offset"]) > int(one["offset"]) and other["partition"] == one["partition"]
                overlaps = int(other["start"]) <= int(one["end"]) and int(other["end"]) >= int(one["start"])
                if later and overlaps and other["id"] != one["id"]:
                    found.add(one["id"])
    return found


def expected(record: dict[str, Any], crash: Path, *, topics_are_known: bool) -> Iterator[tuple[str, str, str | None]]:
    given_up = superseded(crash)
    for state, keys in record["object_keys_by_final_state_of_their_segment"].items():
        for key in keys:
            (segment_id,) = [segment for segment in record["segments"] if f"-{segment}." in key]
            gone = topics_are_known and record["segments"][segment_id]["topic"] == DELETED_TOPIC
            if state == "COPY_SEGMENT_FINISHED":
                yield (key, "orphan", "topic-gone") if gone else (key, "owned", None)
            elif state == "DELETE_SEGMENT_STARTED":
                yield key, "orphan", "delete-never-finished"
            else:
                proven = gone or segment_id in given_up
                yield (key, "orphan", "copy-never-finished") if proven else (key, "in-progress", None)


def live_topic_ids(record: dict[str, Any], folder: Path) -> Path:
    live = {one["topic_id"] for one in record["segments"].values() if one["topic"] != DELETED_TOPIC}
    file = folder / "topic-ids"
    file.write_text("\n".join(sorted(live)) + "\n")
    return file


def test_each_object_of_a_cluster_that_crashed(tieredctl: Tieredctl, crash: Path, record: dict[str, Any]) -> None:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", broker_of(crash))
    outcome = tieredctl("orphans", "scan", *where, "--min-age", "0s", "-o", "jsonl")
    documents = outcome.lines()

    assert verdicts(documents) == set(expected(record, crash, topics_are_known=False))
    assert (len(documents), outcome.exit_code) == (499, 3)
    assert {document["topicLive"] for document in documents} == {None}


def test_each_object_where_it_is_known_which_topics_there_are(
    tieredctl: Tieredctl, crash: Path, record: dict[str, Any], tmp_path: Path
) -> None:
    """By a list, by a later snapshot without the topic, and by the log after the last snapshot."""
    ids = live_topic_ids(record, tmp_path)
    later = write_snapshot(tmp_path, LATER_MS, *map(topic_record, ids.read_text().split()))
    for options in (
        ("--live-topic-ids", ids),
        ("--kraft-snapshot", later, "--now", str(LATER_MS)),
        ("--kraft-snapshot", crash / "data"),
        ("--kraft-snapshot", crash / "data/__cluster_metadata-0"),
    ):
        code, documents = scan(tieredctl, crash, *options)

        assert verdicts(documents) == set(expected(record, crash, topics_are_known=True)), options
        assert code == 3
        if options[0] == "--live-topic-ids":
            causes = Counter(document["cause"] for document in documents if not document["topicLive"])
            assert causes == {"topic-gone": 78, "delete-never-finished": 73, "copy-never-finished": 9}


def test_nothing_is_an_orphan_while_all_is_young(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    outcome = tieredctl(*words_of(crash, "--now", "2000-01-01T00:00Z", "-o", "jsonl"))
    much = ("--min-age", "900000h")
    scanned = tieredctl(*words_of(crash), *much)
    planned = tieredctl("orphans", "plan", *words_of(crash)[2:], *much, "--to", tmp_path / "orphans.plan")

    assert {line["status"] for line in outcome.lines()} == {"owned", "in-progress"}
    assert (outcome.exit_code, scanned.exit_code, planned.exit_code) == (0, 0, 0)
    for shown in (scanned, planned):
        assert "193 objects that are not owned, 97.8 KiB, are younger than --min-age 900000h" in shown.err


def test_among_orphans_those_that_are_too_young_are_counted(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(crash, tmp_path / "crash")
    _, documents = scan(tieredctl, copy)
    young = next(one for one in documents if one["status"] == "orphan")
    (copy / "bucket" / young["key"]).touch()

    document = tieredctl(*words_of(copy, "--min-age", "1h", "-o", "json")).document()

    assert document["summary"]["younger"] == {"objects": 1, "bytes": young["size"]}
    assert document["summary"]["status"]["orphan"]["objects"] == 192
    (shown,) = (one for one in document["items"] if one["key"] == young["key"])
    assert shown["evidence"] == {**young["evidence"], "reason": "younger-than-min-age"}


def test_a_cluster_that_never_crashed_has_no_orphan(tieredctl: Tieredctl, captures: Path) -> None:
    for cluster in (captures / "kafka-4.3.1", captures / "kafka-3.9.1"):
        store = f"file:{cluster / 'remote' / 'kafka-tiered-storage'}"

        outcome = tieredctl("orphans", "scan", "--store", store, "--log-dir", cluster / "data", "--min-age", "0s")

        assert outcome.exit_code == 0, cluster
        assert {line.split()[0] for line in outcome.out.splitlines()} == {"STATUS", "owned"}, cluster


def test_a_list_of_keys_and_a_resumed_listing_stand_for_the_stores_listing(
    tieredctl: Tieredctl, crash: Path, tmp_path: Path
) -> None:
    whole = scan(tieredctl, crash)
    keys, checkpoint = tmp_path / "keys.txt", tmp_path / "checkpoint"
    keys.write_text("\n".join(document["key"] for document in whole[1]))

    code, documents = scan(tieredctl, crash, "--key-list", keys)

    assert [one["key"] for one in documents] == [one["key"] for one in whole[1]]
    assert (code, verdicts(documents)) == (3, verdicts(whole[1]))
    assert scan(tieredctl, crash, "--resume", checkpoint) == whole
    assert not checkpoint.exists()


def write_inventory(folder: Path, objects: list[StoredObject]) -> None:
    for name, data in s3_inventory(list(map(s3_row, objects))).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def test_an_inventory_stands_for_the_buckets_listing(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    _, listed = scan(tieredctl, crash)
    write_inventory(
        tmp_path,
        [StoredObject(one["key"], one["size"], time_ms(one["lastModified"]) // 1_000 * 1_000, "") for one in listed],
    )

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"s3://{BUCKET}/{ROOT}", "--layout", "aiven", "--layout-option"),
        *("key-prefix=tiered/", "--inventory", tmp_path / S3_MANIFEST),
        *("--log-dir", crash / "data", "--min-age", "0s", "-o", "json"),
    )

    document = outcome.document()
    assert verdicts(document["items"]) == verdicts(listed)
    assert document["source"]["inventory"]["taken"] == "2026-11-18T11:06:40.000Z"
    assert outcome.exit_code == 3


def test_an_inventory_without_any_object_of_the_store_does_not_stand_for_its_listing(
    tieredctl: Tieredctl, crash: Path, tmp_path: Path
) -> None:
    write_inventory(tmp_path, [StoredObject("tiered/a", 1, 0, "")])

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"s3://{BUCKET}/other", "--layout", "local"),
        *("--inventory", tmp_path / S3_MANIFEST, "--log-dir", crash / "data"),
    )

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert f"has no object of s3://{BUCKET}/other, but the metadata promises segments" in outcome.err


def test_a_list_with_a_key_twice_does_not_stand_for_the_listing(
    tieredctl: Tieredctl, crash: Path, tmp_path: Path
) -> None:
    _, listed = scan(tieredctl, crash)
    keys, once = tmp_path / "keys", "".join(f"{one['key']}\n" for one in listed)

    codes = []
    for text in (once, f"{once}{listed[0]['key']}\n"):
        keys.write_text(text)
        codes.append(tieredctl(*words_of(crash, "--key-list", keys, "-o", "json")).exit_code)

    assert codes == [0, 2]


def test_what_cannot_be_meant_is_wrong_usage(tieredctl: Tieredctl, crash: Path, captures: Path, tmp_path: Path) -> None:
    ListingCheckpoint(tmp_path / "checkpoint", "s3://other", now_ms(None)).close()
    snapshot = ("--kraft-snapshot", latest_snapshot(crash))
    ids, half, no_text = (tmp_path / name for name in ("ids", "half", "no-text"))
    half.write_bytes(b"G4i52LJdRBel-FDnehx_Kw\nhalf-an-i")
    no_text.write_bytes(b"\xff\xfe")
    local = ("--layout", "local", "--store")
    for words in (
        (*local, "file:.", "--inventory", "manifest.json"),
        (*local, "s3://tiered", "--inventory", "missing/manifest.json"),
        (*local, "s3://tiered", "--inventory", "manifest.json", "--key-list", "keys"),
        *(("--live-topic-ids", file) for file in (tmp_path / "missing", half, no_text)),
        ("--key-list", tmp_path / "missing"),
        ("--resume", tmp_path / "checkpoint"),
        (*snapshot, "--live-topic-ids", ids),
        (*snapshot, "--bootstrap-server", "localhost:1"),
        ("--kraft-snapshot", latest_snapshot(captures / "kafka-4.3.1")),
    ):
        where = ("--log-dir", crash / "data") if words[0] == "--layout" else words_of(crash)[2:]

        outcome = tieredctl("orphans", "scan", *where, *words)

        assert (outcome.exit_code in (1, 2), outcome.out) == (True, ""), (words, outcome.err)


def test_filters_choose_what_is_reported(tieredctl: Tieredctl, crash: Path) -> None:
    _, everything = scan(tieredctl, crash)
    segment_id = everything[7]["segmentId"]

    _, of_segment = scan(tieredctl, crash, "--segment-id", segment_id)
    _, of_topic = scan(tieredctl, crash, "--topic", "orders33", "--partition", "1")

    assert of_segment == [document for document in everything if document["segmentId"] == segment_id]
    assert of_topic == [d for d in everything if d["key"].startswith("tiered/orders33-") and d["partition"] == 1]


def test_the_summary_counts_by_status_and_cause(tieredctl: Tieredctl, crash: Path) -> None:
    document = tieredctl(*words_of(crash, "--min-age", "0s", "-o", "json")).document()

    assert document["kind"] == "RemoteObjects"
    summary = document["summary"]
    assert summary["objects"] == len(document["items"]) == 499
    assert summary["status"]["owned"]["objects"] == 306
    assert summary["causes"]["delete-never-finished"] == {"objects": 73, "bytes": 38257}
    assert summary["complete"] is True


def latest_snapshot(crash: Path) -> Path:
    """Its last moment is before the topic was deleted."""
    return max((crash / "data" / "__cluster_metadata-0").glob("*.checkpoint"))


def test_topics_of_a_snapshot_are_live_whatever_became_of_them_later(tieredctl: Tieredctl, crash: Path) -> None:
    snapshot = latest_snapshot(crash)

    document = tieredctl(*words_of(crash, "--min-age", "0s", "--kraft-snapshot", snapshot, "-o", "json")).document()

    source, items = document["source"], document["items"]
    assert {item["topicLive"] for item in items} == {True}
    assert "topic-gone" not in {item["cause"] for item in items}
    assert source["clusterId"] == source["liveTopics"]["clusterId"]
    assert (source["liveTopics"]["kind"], source["liveTopics"]["kraftSnapshot"]) == ("kraft-snapshot", str(snapshot))


def test_a_bucket_tells_the_storage_class_of_each_object(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path, moto: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash, root, bucket = captures / "aiven-crash-4.3.1", "classes/", S3Bucket(moto.endpoint)
    files = [file for file in sorted((crash / "bucket").rglob("*")) if file.is_file()]
    classes = ("STANDARD", "GLACIER", "DEEP_ARCHIVE")
    put = {
        file.relative_to(crash / "bucket").as_posix(): classes[number % len(classes)]
        for number, file in enumerate(files)
    }
    for key, storage_class in put.items():
        bucket.client.put_object(
            Bucket=STORED_IN, Key=root + key, Body=(crash / "bucket" / key).read_bytes(), StorageClass=storage_class
        )
    config = tmp_path / "config.yaml"
    config.write_text(
        "prices:\n"
        "  - {store: 's3://', perGiBMonth: 1024, currency: EUR}\n"
        "  - {store: 's3://', storageClass: GLACIER, perGiBMonth: 0, currency: EUR}\n"
    )
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    words = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    layout = ("--layout", "aiven", "--layout-option", "key-prefix=tiered/")
    where = ("--store", f"s3://{STORED_IN}/{root}", *words, *layout)

    outcome = tieredctl("orphans", "scan", *where, "--log-dir", crash / "data", "--min-age", "0s", "-o", "json")

    document = json.loads(outcome.out)
    assert {item["key"]: item["storageClass"] for item in document["items"]} == put
    assert {name: one["objects"] for name, one in document["summary"]["storageClasses"].items()} == {
        name: list(put.values()).count(name) for name in classes
    }
    assert document["summary"]["storageClasses"]["GLACIER"]["monthlyCost"] == 0
    assert "Priced like the store, since they have no price of their own: DEEP_ARCHIVE." in outcome.err
