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
from tests.rigs.inventories import BUCKET, ROOT, S3_MANIFEST, s3_inventory, s3_row
from tieredctl.cli.arguments import now_ms
from tieredctl.errors import ExitCode
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


def scan(tieredctl: Tieredctl, crash: Path, *options: str | Path) -> tuple[int, list[dict[str, Any]]]:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")
    outcome = tieredctl("orphans", "scan", *where, "--min-age", "0s", "-o", "jsonl", *options)
    return outcome.exit_code, [json.loads(line) for line in outcome.out.splitlines()]


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
    code, documents = outcome.exit_code, outcome.lines()

    found = {(document["key"], document["status"], document["cause"]) for document in documents}
    assert found == set(expected(record, crash, topics_are_known=False))
    assert (len(documents), code) == (499, 3)
    assert {document["topicLive"] for document in documents} == {None}


def test_each_object_where_it_is_known_which_topics_there_are(
    tieredctl: Tieredctl, crash: Path, record: dict[str, Any], tmp_path: Path
) -> None:
    code, documents = scan(tieredctl, crash, "--live-topic-ids", live_topic_ids(record, tmp_path))

    found = {(document["key"], document["status"], document["cause"]) for document in documents}
    assert found == set(expected(record, crash, topics_are_known=True))
    assert code == 3
    causes = Counter(document["cause"] for document in documents if not document["topicLive"])
    assert causes == {"topic-gone": 78, "delete-never-finished": 73, "copy-never-finished": 9}


def test_nothing_is_an_orphan_while_all_is_young(tieredctl: Tieredctl, crash: Path) -> None:
    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{crash / 'bucket'}", "--layout", "aiven"),
        *("--log-dir", crash / "data", "--now", "2000-01-01T00:00Z", "-o", "jsonl"),
    )
    assert {json.loads(line)["status"] for line in outcome.out.splitlines()} == {"owned", "in-progress"}
    assert outcome.exit_code == 0


def test_that_all_is_too_young_is_said_with_what_shows_it(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")
    much = ("--min-age", "900000h")

    scanned = tieredctl("orphans", "scan", *where, *much)
    planned = tieredctl("orphans", "plan", *where, *much, "--to", tmp_path / "orphans.plan")

    said = "193 objects that are not owned, 97.8 KiB, are younger than --min-age 900000h: a lower one shows what is"
    assert scanned.err == f"0 of 499 objects, 0 B, are orphaned.\n{said} orphaned.\n"
    assert planned.err.endswith(f"is not written.\n{said} orphaned.\n")


def test_among_orphans_those_that_are_too_young_are_counted(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(crash, tmp_path / "crash")
    _, documents = scan(tieredctl, copy)
    young = next(one for one in documents if one["status"] == "orphan")
    (copy / "bucket" / young["key"]).touch()

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{copy / 'bucket'}", "--layout", "aiven"),
        *("--log-dir", copy / "data", "--min-age", "1h", "-o", "json"),
    )

    document = outcome.document()
    assert document["summary"]["younger"] == {"objects": 1, "bytes": young["size"]}
    assert document["summary"]["status"]["orphan"]["objects"] == 192
    (shown,) = (one for one in document["items"] if one["key"] == young["key"])
    assert shown["evidence"] == {**young["evidence"], "reason": "younger-than-min-age"}


@pytest.mark.parametrize("capture", ["kafka-4.3.1", "kafka-3.9.1"])
def test_a_cluster_that_never_crashed_has_no_orphan(tieredctl: Tieredctl, captures: Path, capture: str) -> None:
    cluster = captures / capture
    store = f"file:{cluster / 'remote' / 'kafka-tiered-storage'}"

    outcome = tieredctl("orphans", "scan", "--store", store, "--log-dir", cluster / "data", "--min-age", "0s")

    assert outcome.exit_code == 0
    assert {line.split()[0] for line in outcome.out.splitlines()} == {"STATUS", "owned"}


def test_a_list_of_keys_stands_for_the_stores_listing(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    _, listed = scan(tieredctl, crash)
    keys = tmp_path / "keys.txt"
    keys.write_text("\n".join(document["key"] for document in listed))

    code, documents = scan(tieredctl, crash, "--key-list", keys)

    verdicts = [(document["key"], document["status"], document["cause"]) for document in documents]
    assert verdicts == [(document["key"], document["status"], document["cause"]) for document in listed]
    assert code == 3


def test_an_inventory_stands_for_the_buckets_listing(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    _, listed = scan(tieredctl, crash)
    modified_ms = [time_ms(document["lastModified"]) // 1_000 * 1_000 for document in listed]
    files = s3_inventory(
        [
            s3_row(StoredObject(document["key"], document["size"], modified, ""))
            for document, modified in zip(listed, modified_ms, strict=True)
        ]
    )
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"s3://{BUCKET}/{ROOT}", "--layout", "aiven", "--layout-option"),
        *("key-prefix=tiered/", "--inventory", tmp_path / S3_MANIFEST),
        *("--log-dir", crash / "data", "--min-age", "0s", "-o", "json"),
    )

    document = outcome.document()
    verdicts = {(item["key"], item["status"], item["cause"]) for item in document["items"]}
    assert verdicts == {(item["key"], item["status"], item["cause"]) for item in listed}
    assert document["source"]["inventory"]["taken"] == "2026-11-18T11:06:40.000Z"
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("store", "words", "said"),
    [
        ("file:.", ("--inventory", "manifest.json"), "Only a bucket has an inventory"),
        ("s3://tiered", ("--inventory", "missing/manifest.json"), "There is no file"),
        ("s3://tiered", ("--inventory", "manifest.json", "--key-list", "keys"), "exclude each other"),
    ],
)
def test_an_inventory_that_cannot_be_meant_is_wrong_usage(
    tieredctl: Tieredctl, crash: Path, store: str, words: tuple[str, ...], said: str
) -> None:
    outcome = tieredctl(
        *("orphans", "scan", "--store", store, "--layout", "local", "--log-dir", crash / "data", *words)
    )
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_listing_that_may_be_resumed_is_the_same(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    assert scan(tieredctl, crash, "--resume", checkpoint) == scan(tieredctl, crash)
    assert not checkpoint.exists()


def test_a_checkpoint_of_another_store_is_wrong_usage(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    ListingCheckpoint(tmp_path / "checkpoint", "s3://other", now_ms(None)).close()

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data"),
        *("--resume", tmp_path / "checkpoint"),
    )

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "belongs to a listing of s3://other" in outcome.err


def test_filters_choose_what_is_reported(tieredctl: Tieredctl, crash: Path) -> None:
    _, everything = scan(tieredctl, crash)
    segment_id = everything[7]["segmentId"]

    _, of_segment = scan(tieredctl, crash, "--segment-id", segment_id)
    _, of_topic = scan(tieredctl, crash, "--topic", "orders33", "--partition", "1")

    assert of_segment == [document for document in everything if document["segmentId"] == segment_id]
    assert of_topic == [d for d in everything if d["key"].startswith("tiered/orders33-") and d["partition"] == 1]


def test_the_summary_counts_by_status_and_cause(tieredctl: Tieredctl, crash: Path) -> None:
    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{crash / 'bucket'}", "--layout", "aiven"),
        *("--log-dir", crash / "data", "--min-age", "0s", "-o", "json"),
    )

    document = json.loads(outcome.out)

    assert document["kind"] == "RemoteObjects"
    summary = document["summary"]
    assert summary["objects"] == len(document["items"]) == 499
    assert summary["status"]["owned"]["objects"] == 306
    assert summary["causes"]["delete-never-finished"] == {"objects": 73, "bytes": 38257}
    assert summary["complete"] is True


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"G4i52LJdRBel-FDnehx_Kw\nhalf-an-i", "not a topic id"),
        (b"\xff\xfe", "it is not a text file"),
    ],
)
def test_live_topic_ids_that_are_none_are_refused(
    tieredctl: Tieredctl, crash: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "topic-ids"
    if content is not None:
        file.write_bytes(content)

    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{crash / 'bucket'}", "--log-dir", crash / "data"),
        *("--live-topic-ids", file),
    )

    assert said in outcome.err
    assert outcome.out == ""
    assert outcome.exit_code in (1, 2)


def test_a_list_of_keys_that_is_not_there_is_refused(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    outcome = tieredctl(
        *("orphans", "scan", "--store", f"file:{crash / 'bucket'}", "--log-dir", crash / "data"),
        *("--key-list", tmp_path / "missing"),
    )
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "There is no file" in outcome.err


def latest_snapshot(crash: Path) -> Path:
    """Its last moment is before the topic was deleted."""
    return max((crash / "data" / "__cluster_metadata-0").glob("*.checkpoint"))


def test_topics_of_a_snapshot_are_live_whatever_became_of_them_later(tieredctl: Tieredctl, crash: Path) -> None:
    _, documents = scan(tieredctl, crash, "--kraft-snapshot", latest_snapshot(crash))

    assert {document["topicLive"] for document in documents} == {True}
    assert "topic-gone" not in {document["cause"] for document in documents}


def test_a_topic_that_was_there_before_a_snapshot_without_it_is_gone(
    tieredctl: Tieredctl, crash: Path, record: dict[str, Any], tmp_path: Path
) -> None:
    live = {one["topic_id"] for one in record["segments"].values() if one["topic"] != DELETED_TOPIC}
    snapshot = write_snapshot(tmp_path, LATER_MS, *map(topic_record, sorted(live)))

    code, documents = scan(tieredctl, crash, "--kraft-snapshot", snapshot, "--now", str(LATER_MS))

    found = {(document["key"], document["status"], document["cause"]) for document in documents}
    assert found == set(expected(record, crash, topics_are_known=True))
    assert code == 3


def test_a_snapshot_of_the_future_proves_nothing(
    tieredctl: Tieredctl, crash: Path, record: dict[str, Any], tmp_path: Path
) -> None:
    """The controller's clock ran ahead when it was written."""
    live = {one["topic_id"] for one in record["segments"].values() if one["topic"] != DELETED_TOPIC}
    snapshot = write_snapshot(tmp_path, LATER_MS, *map(topic_record, sorted(live)))

    code, documents = scan(tieredctl, crash, "--kraft-snapshot", snapshot, "--now", str(LATER_MS - 10_001))

    assert "topic-gone" not in {document["cause"] for document in documents}
    assert code == ExitCode.INCOMPLETE


@pytest.mark.parametrize("path", ["data", "data/__cluster_metadata-0"])
def test_the_log_after_the_snapshot_knows_what_was_deleted_since(
    tieredctl: Tieredctl, crash: Path, record: dict[str, Any], path: str
) -> None:
    code, documents = scan(tieredctl, crash, "--kraft-snapshot", crash / path)

    found = {(document["key"], document["status"], document["cause"]) for document in documents}
    assert found == set(expected(record, crash, topics_are_known=True))
    assert code == 3


def test_a_snapshot_of_another_cluster_is_refused(tieredctl: Tieredctl, crash: Path, captures: Path) -> None:
    snapshot = latest_snapshot(captures / "kafka-4.3.1")
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")

    outcome = tieredctl("orphans", "scan", *where, "--kraft-snapshot", snapshot)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "cluster" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--live-topic-ids", "ids"), "exclude each other"),
        (("--bootstrap-server", "localhost:1"), "--log-dir"),
    ],
)
def test_a_snapshot_beside_another_source_of_topics_is_refused(
    tieredctl: Tieredctl, crash: Path, options: tuple[str, str], said: str
) -> None:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")

    outcome = tieredctl("orphans", "scan", *where, "--kraft-snapshot", latest_snapshot(crash), *options)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert said in outcome.err


def test_the_source_tells_who_said_which_topics_there_are(tieredctl: Tieredctl, crash: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{crash / 'bucket'}", "--layout", "aiven", "--log-dir", crash / "data")
    snapshot = latest_snapshot(crash)

    outcome = tieredctl("orphans", "scan", *where, "--kraft-snapshot", snapshot, "-o", "json")

    source = json.loads(outcome.out)["source"]
    assert source["clusterId"] == source["liveTopics"]["clusterId"]
    assert source["liveTopics"]["kind"] == "kraft-snapshot"
    assert source["liveTopics"]["kraftSnapshot"] == str(snapshot)
