"""`explain` on real brokers: what it says of an offset is what consumers, replicas and Kafka's own tools meet."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.cli.command_line import Outcome, this_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.replica_fetch import replica_fetch_error
from tests.rigs.tools import tool_output

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Case:
    """An offset, and what is to be said of it."""

    topic: str
    offset: int
    place: str
    consumer: str
    exit_code: int


REMOTE_ONLY = Case("orders", 100, "remote", "remote-read", 0)
CASES = (
    REMOTE_ONLY,
    Case("ledger", 100, "remote-and-local", "local-read", 0),
    Case("ledger", 300, "local", "local-read", 0),
    Case("untiered", 5, "local", "local-read", 0),
    Case("clicks.eu-west_1", 5, "below-log-start", "OFFSET_OUT_OF_RANGE", 3),
    Case("ledger", 100_000, "above-end", "OFFSET_OUT_OF_RANGE", 3),
)


def explain(driven: DrivenBroker, where: str, *words: str | Path) -> Outcome:
    return this_process("explain", where, "--bootstrap-server", driven.broker.bootstrap_server, "-o", "json", *words)


def explained(driven: DrivenBroker, where: str, *words: str | Path) -> dict[str, Any]:
    (item,) = explain(driven, where, *words).document()["items"]
    return dict(item)


def consumed(driven: DrivenBroker, topic: str, offset: int) -> int | str:
    """The offset of the first record that a consumer gets from `offset` on, or the error that it gets."""
    settings = {
        "bootstrap.servers": driven.broker.bootstrap_server,
        "group.id": "explain",
        "auto.offset.reset": "error",
        "enable.auto.commit": False,  # of the cluster that others look at, groups and all
        "log_level": 0,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        if error is None:
            found = message.offset()
            assert found is not None
            return found
        assert error.code() == KafkaError._AUTO_OFFSET_RESET
        return "OFFSET_OUT_OF_RANGE"


def test_where_an_offset_is_and_what_a_consumer_and_a_replica_get_of_it(driven: DrivenBroker) -> None:
    for case in CASES:
        outcome = explain(driven, f"{case.topic}:0@{case.offset}")

        (item,) = outcome.document()["items"]
        assert outcome.exit_code == case.exit_code, case
        assert (item["place"], item["consumerFetch"]["outcome"]) == (case.place, case.consumer), case
        got = consumed(driven, case.topic, case.offset)
        assert got == (case.consumer if case.exit_code else case.offset), case
        answer = replica_fetch_error(driven.broker.bootstrap_server, item["topicId"], 0, case.offset)
        assert item["followerFetch"]["error"] == answer, case


def test_the_segment_and_its_objects_are_in_the_store(driven: DrivenBroker) -> None:
    remote = driven.broker.remote_dir

    item = explained(driven, "orders:0@100", "--store", f"file:{remote}", "--layout", "local")

    assert item["segment"]["startOffset"] <= 100 <= item["segment"]["endOffset"]
    assert item["segment"]["state"] == "COPY_SEGMENT_FINISHED"
    assert {stored["part"] for stored in item["objects"]} >= {"log", "offset-index", "time-index", "leader-epoch"}
    assert all((remote / stored["key"]).stat().st_size == stored["size"] for stored in item["objects"])


def test_the_leader_epochs_are_those_of_the_brokers_own_checkpoint(driven: DrivenBroker) -> None:
    item = explained(driven, "orders:0@100")

    lines = (driven.broker.log_dir / "orders-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    assert [f"{entry['leaderEpoch']} {entry['offset']}" for entry in item["log"]["leaderEpochs"]] == lines


def test_the_first_offset_of_a_time_is_the_one_that_get_offset_shell_says(driven: DrivenBroker) -> None:
    first = explained(driven, "orders:0", "--timestamp", "0")
    later = explained(driven, "orders:0@150")["segment"]["maxTimestampMs"]

    for moment in (first["timestampMs"], first["timestampMs"] + 1, later):
        said = tool_output(
            driven.broker.jars,
            "org.apache.kafka.tools.GetOffsetShell",
            *("--bootstrap-server", driven.broker.bootstrap_server),
            *("--topic-partitions", "orders:0", "--time", str(moment)),
        )
        assert f"orders:0:{explained(driven, 'orders:0', '--timestamp', str(moment))['offset']}" in said.splitlines()


def test_a_time_after_the_last_record_has_no_offset(driven: DrivenBroker) -> None:
    outcome = explain(driven, "orders:0", "--timestamp", str(int(time.time() * 1000) + 3_600_000))

    assert outcome.exit_code == 3
    assert outcome.document()["items"] == []
    assert "orders-0 has no record at or after that time" in outcome.err


def test_where_all_is_uploaded_a_follower_cannot_begin_at_the_last_tiered_offset(kafka_4: DrivenBroker) -> None:
    item = explained(kafka_4, "orders:0@100")

    assert item["log"]["earliestPendingUploadOffset"] is None
    assert item["emptyFollowerFromLastTieredOffset"]["wait"] == "pending-upload-unknown"
    assert item["emptyFollower"]["fetchOffset"] == item["log"]["localLogStartOffset"]


@pytest.mark.parametrize("driven", ["kafka_3"], indirect=True)
def test_a_release_without_the_earliest_pending_upload_offset_has_no_last_tiered_start(driven: DrivenBroker) -> None:
    item = explained(driven, "orders:0@100")

    assert item["emptyFollowerFromLastTieredOffset"] is None
    assert item["emptyFollower"]["error"] == "OFFSET_MOVED_TO_TIERED_STORAGE"


def test_a_topic_that_is_not_tiered_has_no_last_tiered_start(kafka_4: DrivenBroker) -> None:
    assert explained(kafka_4, "untiered:0@5")["emptyFollowerFromLastTieredOffset"] is None


def test_a_follower_of_a_live_partition_would_copy_what_is_local(driven: DrivenBroker) -> None:
    where = ("--bootstrap-server", driven.broker.bootstrap_server)

    outcome = this_process("estimate", "follower-bootstrap", "ledger:0", *where, "-o", "json")

    log_bytes = sum(file.stat().st_size for file in (driven.broker.log_dir / "ledger-0").glob("*.log"))
    assert {row["way"]: row["bytes"] for row in outcome.document()["items"]} == {
        "everything": log_bytes,
        "local": log_bytes,
        "pending-upload": log_bytes,
    }


def test_a_partition_that_the_topic_does_not_have_is_a_mistake_of_usage(kafka_4: DrivenBroker) -> None:
    outcome = explain(kafka_4, "orders:9@1")

    assert outcome.exit_code == 2
    assert "has 3 partitions, but no partition 9" in outcome.err


def test_the_partition_is_drawn_with_the_offset_marked(kafka_4: DrivenBroker) -> None:
    for where, said in (
        ("orders:0@100", "100: tiered only"),
        ("ledger:0@100", "100: both tiered and local"),
        ("ledger:0@300", "300: local only"),
        ("clicks.eu-west_1:0@5", "5: below the log start"),
        ("ledger:0@100000", "100000: not written yet"),
    ):
        shown = this_process("explain", where, "--bootstrap-server", kafka_4.broker.bootstrap_server)

        drawn = shown.out.split("\n\n")[0].splitlines()
        assert drawn[0].startswith("copied"), where
        assert any(said in line for line in drawn), shown.out
        assert any(line.startswith("offset") for line in drawn), where


def test_a_timeline_has_what_leaders_have(kafka_4: DrivenBroker) -> None:
    log = explained(kafka_4, "ledger:0@100")["log"]

    where = ("--bootstrap-server", kafka_4.broker.bootstrap_server, "--topic", "ledger")
    shown = this_process("metadata", "segments", "--timeline", *where, "-o", "json").document()

    (found,) = shown["summary"]["timelines"]
    names = ("logStartOffset", "localLogStartOffset", "endOffset")
    assert [found[name] for name in names] == [log[name] for name in names]
    assert found["leaderEpochs"] == log["leaderEpochs"]
    assert (found["gaps"], found["missing"], found["unreached"]) == ([], [], [])
