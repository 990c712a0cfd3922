"""`recover metadata` without a cluster: what it shows of captured stores, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import write_events, write_log

ORDERS_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
NEW_ID = "ABEiM0RVZneImaq7zN3u_w"
METADATA_PARTITIONS = 4


@pytest.fixture
def capture(captures: Path) -> Path:
    return captures / "kafka-4.3.1"


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


def test_what_empty_metadata_lacks_is_shown_with_the_steps(
    tieredctl: Tieredctl, capture: Path, forgotten: Path
) -> None:
    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, *store_of(capture), "-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, document["summary"]["toRecover"]) == (3, 172)
    assert "do not restart brokers" in document["summary"]["steps"][0]
    assert {item["metadataPartition"] for item in document["items"]} <= set(range(METADATA_PARTITIONS))
    assert "172 to recover" in outcome.err


def test_one_topic_may_be_chosen(tieredctl: Tieredctl, capture: Path, forgotten: Path) -> None:
    words = ("--log-dir", forgotten, *store_of(capture), "--topic", "orders7", "--partition", "2", "-o", "jsonl")

    (item,) = tieredctl("recover", "metadata", *words).lines()

    assert (item["topic"], item["partition"], item["toRecover"]) == ("orders7", 2, 25)


def test_an_encrypted_store_needs_no_key_and_copies_that_kafka_made_again_stay_out(
    tieredctl: Tieredctl, captures: Path, forgotten: Path
) -> None:
    bucket = f"file:{captures / 'aiven-zstd-encrypted-4.3.1' / 'bucket'}"

    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, "--store", bucket, "-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["toRecover"], summary["leftOut"]) == (3, 129, 3), outcome.err


def test_crashes_leave_partial_copies_that_are_named_and_gaps_where_deletions_were_under_way(
    tieredctl: Tieredctl, captures: Path, forgotten: Path
) -> None:
    bucket = f"file:{captures / 'aiven-crash-4.3.1' / 'bucket'}"

    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, "--store", bucket, "-o", "json")

    reasons = [one["evidence"].get("reason") for one in outcome.document()["summary"]["findings"]]
    assert (outcome.exit_code, reasons.count("partial")) == (4, 18)


def test_a_mapped_topic_id_whose_objects_lie_under_the_old_one_is_refused(
    tieredctl: Tieredctl, capture: Path, forgotten: Path
) -> None:
    words = ("--log-dir", forgotten, *store_of(capture), "--map-topic-id", f"{ORDERS_ID}={NEW_ID}")

    outcome = tieredctl("recover", "metadata", *words)

    assert outcome.exit_code == 2
    assert f"brokers look for objects under orders7-0-{NEW_ID}/" in outcome.err


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


def test_an_id_that_the_store_does_not_have_is_not_mapped(tieredctl: Tieredctl, capture: Path, forgotten: Path) -> None:
    words = ("--log-dir", forgotten, *store_of(capture), "--map-topic-id", f"{NEW_ID}={ORDERS_ID}")

    outcome = tieredctl("recover", "metadata", *words)

    assert (outcome.exit_code, "no segment of a topic with id" in outcome.err) == (2, True)


def test_events_are_written_to_a_live_cluster_alone(tieredctl: Tieredctl, capture: Path, forgotten: Path) -> None:
    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, *store_of(capture), "--apply")

    assert (outcome.exit_code, "give --bootstrap-server" in outcome.err) == (2, True)


def test_a_source_is_demanded_before_the_store_is_listed(tieredctl: Tieredctl, capture: Path) -> None:
    outcome = tieredctl("recover", "metadata", *store_of(capture))

    assert (outcome.exit_code, "nothing to read metadata from" in outcome.err) == (2, True)


def test_a_store_is_demanded(tieredctl: Tieredctl, forgotten: Path) -> None:
    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten)

    assert (outcome.exit_code, "--store" in outcome.err) == (2, True)


def test_a_field_of_custom_metadata_that_the_plugin_does_not_have_is_refused(
    tieredctl: Tieredctl, captures: Path, forgotten: Path
) -> None:
    bucket = f"file:{captures / 'aiven-plain-4.3.1' / 'bucket'}"
    words = ("--layout", "aiven", "--layout-option", "custom-metadata-fields=REMOTE_SIZE,SIZE")

    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, "--store", bucket, *words)

    assert (outcome.exit_code, "no field 'SIZE'" in outcome.err) == (2, True)


def test_metadata_that_brokers_cannot_read_to_its_end_is_refused(
    tieredctl: Tieredctl, capture: Path, tmp_path: Path
) -> None:
    write_events(tmp_path / "data", b"no event")

    outcome = tieredctl("recover", "metadata", "--log-dir", tmp_path / "data", *store_of(capture))

    assert (outcome.exit_code, "event-undecodable" in outcome.err) == (5, True)


def test_a_topic_that_the_store_does_not_have_is_a_mistake_of_usage(
    tieredctl: Tieredctl, capture: Path, forgotten: Path
) -> None:
    outcome = tieredctl("recover", "metadata", "--log-dir", forgotten, *store_of(capture), "--topic", "ordres")

    assert (outcome.exit_code, "has no segment of topic ordres" in outcome.err) == (2, True)
