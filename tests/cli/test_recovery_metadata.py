"""`recover metadata` without a cluster: what it shows of captured stores, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    PARTITION,
    metadata_batches,
    segment_id,
    started,
    updated,
    write_events,
    write_log,
)
from tieredctl.model.events import MetadataEvent
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.rlmm.partitioner import metadata_partition

ORDERS_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
NEW_ID = "ABEiM0RVZneImaq7zN3u_w"
METADATA_PARTITIONS = 4


@pytest.fixture
def forgotten(tmp_path: Path) -> Path:
    """A log directory whose metadata topic is empty."""
    for number in range(METADATA_PARTITIONS):
        write_log(tmp_path / "data", number, [])
    return tmp_path / "data"


def store_of(capture: Path) -> tuple[str, str]:
    return "--store", f"file:{capture / 'remote' / 'kafka-tiered-storage'}"


def test_whole_metadata_lacks_nothing(tieredctl: Tieredctl, capture: Path) -> None:
    outcome = tieredctl("recover", "metadata", "--log-dir", capture / "data", *store_of(capture), "-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["inMetadata"], summary["toRecover"], summary["steps"]) == (0, 172, 0, [])


def test_what_an_earlier_run_left_promised_without_objects_needs_attention(
    tieredctl: Tieredctl, capture: Path, forgotten: Path
) -> None:
    events: list[MetadataEvent] = [updated(1, state) for state in (DELETING, DELETED)]
    events += [started(1, 0, 9, author=NO_BROKER), updated(1, COPIED, author=NO_BROKER)]
    place = metadata_partition(PARTITION.topic_id, PARTITION.partition, METADATA_PARTITIONS)
    write_log(forgotten, place, metadata_batches(events))
    words = ("recover", "metadata", "--log-dir", forgotten, *store_of(capture))

    outcome = tieredctl(*words, "-o", "json")

    document = outcome.document()
    found = [one for one in document["summary"]["findings"] if one["code"] == "object-missing"]
    counted = {item["topic"]: item["toTakeBack"] for item in document["items"] if item["toTakeBack"]}
    assert (outcome.exit_code, document["summary"]["toTakeBack"], counted) == (3, 1, {"t": 1}), outcome.err
    assert [one["evidence"]["segmentId"] for one in found] == [segment_id(1)]


def test_what_empty_metadata_lacks_is_shown_with_the_steps(
    tieredctl: Tieredctl, capture: Path, forgotten: Path
) -> None:
    where = ("recover", "metadata", "--log-dir", forgotten, *store_of(capture))
    outcome = tieredctl(*where, "-o", "json")
    (item,) = tieredctl(*where, "--topic", "orders7", "--partition", "2", "-o", "jsonl").lines()

    document = outcome.document()
    assert (outcome.exit_code, document["summary"]["toRecover"]) == (3, 172)
    assert "do not restart brokers" in document["summary"]["steps"][0]
    assert {item["metadataPartition"] for item in document["items"]} <= set(range(METADATA_PARTITIONS))
    assert (item["topic"], item["partition"], item["toRecover"]) == ("orders7", 2, 25)


def test_crashes_leave_partial_copies_that_are_named_and_gaps_where_deletions_were_under_way(
    tieredctl: Tieredctl, captures: Path, forgotten: Path
) -> None:
    bucket = f"file:{captures / 'aiven-crash-4.3.1' / 'bucket'}"

    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, "--store", bucket, "-o", "json")

    reasons = [one["evidence"].get("reason") for one in outcome.document()["summary"]["findings"]]
    assert (outcome.exit_code, reasons.count("partial")) == (4, 18)


def test_what_cannot_be_recovered_is_refused(
    tieredctl: Tieredctl, capture: Path, captures: Path, forgotten: Path, tmp_path: Path
) -> None:
    write_events(tmp_path / "undecodable", b"no event")
    store, metadata = store_of(capture), ("--log-dir", forgotten)
    fields = ("--layout", "aiven", "--layout-option", "custom-metadata-fields=REMOTE_SIZE,SIZE")
    refused: dict[str, tuple[str | Path, ...]] = {
        "objects lie under the old id": (*metadata, *store, "--map-topic-id", f"{ORDERS_ID}={NEW_ID}"),
        "an id that the store does not have": (*metadata, *store, "--map-topic-id", f"{NEW_ID}={ORDERS_ID}"),
        "no live cluster": (*metadata, *store, "--apply"),
        "no source": store,
        "no store": metadata,
        "no field of the plugin": (*metadata, "--store", f"file:{captures / 'aiven-plain-4.3.1/bucket'}", *fields),
        "a topic that the store does not have": (*metadata, *store, "--topic", "ordres"),
    }
    for case, words in refused.items():
        outcome = tieredctl("recover", "metadata", *words)

        assert (outcome.exit_code, outcome.out) == (2, ""), (case, outcome.err)

    undecodable = tieredctl("recover", "metadata", "--log-dir", tmp_path / "undecodable", *store)
    assert (undecodable.exit_code, "event-undecodable" in undecodable.err) == (5, True)


def test_a_mapped_topic_id_whose_objects_were_copied_is_recovered_as_the_new_one(
    tieredctl: Tieredctl, capture: Path, forgotten: Path, tmp_path: Path
) -> None:
    folder = capture / "remote" / "kafka-tiered-storage" / f"orders7-0-{ORDERS_ID}"
    for topic_id in (ORDERS_ID, NEW_ID):
        shutil.copytree(folder, tmp_path / "store" / f"orders7-0-{topic_id}")
    words = ("--store", f"file:{tmp_path / 'store'}", "--map-topic-id", f"{ORDERS_ID}={NEW_ID}", "-o", "json")

    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, *words)

    counted = {item["topicId"]: item["toRecover"] for item in outcome.document()["items"]}
    assert (outcome.exit_code, counted) == (3, {ORDERS_ID: 30, NEW_ID: 30}), outcome.err
