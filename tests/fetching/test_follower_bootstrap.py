"""A real follower begins where `explain` says, copies what `estimate` says, and waits where they say that it waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.joining_broker import NODE_ID, JoiningBroker
from tests.rigs.topics import admin_client, answered, create_topics, known_topics
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

SEGMENT_METADATA = "org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata"
SEGMENT_BYTES = 1 << 20
TIERED = {"remote.storage.enable": "true", "retention.ms": "-1", "segment.bytes": str(SEGMENT_BYTES)}
PARTLY_LOCAL, ALL_UPLOADED, NEVER_UPLOADED = "partly-local", "all-uploaded", "never-uploaded"
LOCAL_BYTES = 5 * SEGMENT_BYTES // 2
TOPICS = {
    PARTLY_LOCAL: TIERED | {"local.retention.bytes": str(LOCAL_BYTES)},
    ALL_UPLOADED: TIERED | {"segment.ms": "400", "local.retention.ms": "1000"},
    NEVER_UPLOADED: TIERED | {"segment.bytes": str(1 << 28)},
}
SECONDS = 90


class Cluster(NamedTuple):
    """A leader, a follower that just came, and what was said before it came."""

    leader: KafkaBroker
    follower: JoiningBroker
    explained: dict[str, dict[str, Any]]
    estimated: dict[str, int]

    def replicates(self, topic: str) -> None:
        """Waits until the follower is in sync."""

        def in_sync() -> bool:
            return NODE_ID in known_topics(self.leader.bootstrap_server)[topic].partitions[0].isrs

        wait_until(in_sync, f"the follower of {topic} is in sync", SECONDS)

    def complains(self, words: str) -> None:
        """Waits until the follower's own log says something."""
        log = self.follower.server_log
        wait_until(lambda: words in log.read_text(errors="replace"), f"the follower says {words!r}", SECONDS)

    def local_log(self, topic: str) -> tuple[int, int]:
        """The follower's first local offset, and the bytes of its log."""
        segments = sorted((self.follower.log_dir / f"{topic}-0").glob("*.log"))
        return int(segments[0].stem), sum(segment.stat().st_size for segment in segments)


@pytest.fixture(scope="module")
def with_kip_1023() -> Iterator[Cluster]:
    """Kafka 4.3.1, whose follower begins at the last tiered offset."""
    yield from _cluster("4.3.1", {"follower.fetch.last.tiered.offset.enable": "true"})


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.1", marks=pytest.mark.exhaustive)])
def with_kip_405(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Releases as they come."""
    yield from _cluster(request.param, {})


def _cluster(version: str, properties: dict[str, str]) -> Iterator[Cluster]:
    with KafkaBroker(jars_of(version)) as leader:
        _fill(leader)
        explained = {topic: _said(leader, "explain", f"{topic}:0@0")[0] for topic in TOPICS}
        estimate = _said(leader, "estimate", "follower-bootstrap", f"{PARTLY_LOCAL}:0")
        with JoiningBroker(leader, properties) as follower:
            follower.follow(*TOPICS)
            yield Cluster(leader, follower, explained, {row["way"]: row["bytes"] for row in estimate})


def _said(broker: KafkaBroker, *words: str | Path) -> list[dict[str, Any]]:
    outcome = this_process(*words, "--bootstrap-server", broker.bootstrap_server, "-o", "json")
    items: list[dict[str, Any]] = outcome.document()["items"]
    return items


def _fill(broker: KafkaBroker) -> None:
    """Brings each topic into the state that its name says."""
    admin = admin_client(broker.bootstrap_server)
    wanted = [
        NewTopic(topic, num_partitions=1, replication_factor=1, config=settings) for topic, settings in TOPICS.items()
    ]
    create_topics(broker.bootstrap_server, *wanted)
    _produce(broker, PARTLY_LOCAL, 6 * SEGMENT_BYTES)
    _produce(broker, ALL_UPLOADED, 100_000)
    _produce(broker, NEVER_UPLOADED, 400_000)
    until = TopicPartition(NEVER_UPLOADED, 0, 50)
    answered(lambda: admin.delete_records([until])[until].result(SECONDS))

    def at_rest() -> bool:
        rows = {topic: _said(broker, "offsets", topic)[0] for topic in TOPICS}
        partly, uploaded = rows[PARTLY_LOCAL], rows[ALL_UPLOADED]
        return bool(
            0 < partly["earliestLocal"] < (partly["latestTiered"] or 0)
            and partly["notTiered"] * 4096 < SEGMENT_BYTES
            and _is_trimmed(broker)
            and uploaded["earliestLocal"] == uploaded["latest"]
            and rows[NEVER_UPLOADED]["earliest"] == 50
        )

    wait_until(at_rest, "each topic is as its name says", SECONDS)


def _is_trimmed(broker: KafkaBroker) -> bool:
    """Whether local retention, which goes by whole segments, has nothing left to delete: it comes after the uploads."""
    logs = sorted((broker.log_dir / f"{PARTLY_LOCAL}-0").glob("*.log"))
    try:
        sizes = [log.stat().st_size for log in logs]
    except FileNotFoundError:  # it deletes one
        return False
    return sum(sizes) - LOCAL_BYTES < sizes[0]


def _produce(broker: KafkaBroker, topic: str, size: int) -> None:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.bootstrap_server,
        "batch.size": 1 << 15,
        "log_level": 2,
    }
    value = bytes(range(256)) * 16
    producer = Producer(settings)
    for _ in range(size // len(value)):
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0


def test_a_follower_begins_at_the_local_log_start(with_kip_405: Cluster) -> None:
    with_kip_405.replicates(PARTLY_LOCAL)

    expected = with_kip_405.explained[PARTLY_LOCAL]
    assert expected["emptyFollower"]["error"] == "OFFSET_MOVED_TO_TIERED_STORAGE"
    assert with_kip_405.local_log(PARTLY_LOCAL) == (
        expected["emptyFollower"]["fetchOffset"],
        with_kip_405.estimated["local"],
    )


def test_a_followers_cache_has_as_many_segments_as_are_estimated(with_kip_405: Cluster) -> None:
    with_kip_405.replicates(PARTLY_LOCAL)
    with_kip_405.replicates(ALL_UPLOADED)

    rows = {row["brokerId"]: row for row in _said(with_kip_405.leader, "estimate", "metadata")}
    assert rows[NODE_ID]["segments"] == with_kip_405.follower.objects_on_heap(SEGMENT_METADATA)


def test_a_follower_begins_at_the_end_of_a_log_that_is_uploaded_whole(with_kip_405: Cluster) -> None:
    with_kip_405.replicates(ALL_UPLOADED)

    begins = with_kip_405.explained[ALL_UPLOADED]["emptyFollower"]["fetchOffset"]
    assert with_kip_405.local_log(ALL_UPLOADED) == (begins, 0)


def test_a_follower_begins_at_the_last_tiered_offset(with_kip_1023: Cluster) -> None:
    with_kip_1023.replicates(PARTLY_LOCAL)

    expected = with_kip_1023.explained[PARTLY_LOCAL]
    begins = expected["emptyFollowerFromLastTieredOffset"]["fetchOffset"]
    assert begins > expected["log"]["localLogStartOffset"]
    assert with_kip_1023.local_log(PARTLY_LOCAL) == (begins, with_kip_1023.estimated["pending-upload"])


def test_a_follower_waits_where_nothing_is_uploaded_and_the_log_begins_later(with_kip_1023: Cluster) -> None:
    with_kip_1023.complains(f"Couldn't build the state from remote store for partition: {NEVER_UPLOADED}-0")

    expected = with_kip_1023.explained[NEVER_UPLOADED]
    assert expected["emptyFollowerFromLastTieredOffset"]["wait"] == "remote-segment-unknown"


def test_a_follower_waits_for_a_record_where_all_is_uploaded(with_kip_1023: Cluster) -> None:
    with_kip_1023.complains("the leader does not know the earliest pending upload offset")

    expected = with_kip_1023.explained[ALL_UPLOADED]
    assert expected["emptyFollowerFromLastTieredOffset"]["wait"] == "pending-upload-unknown"
    _produce(with_kip_1023.leader, ALL_UPLOADED, 4096)
    with_kip_1023.replicates(ALL_UPLOADED)
