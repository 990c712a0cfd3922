"""Each rule of examples/alerts.yaml fires where a real broker, its store or its metadata has that trouble, and no
other time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.cli.running_exporter import RunningExporter, Samples, exporter, is_up, is_without_broker
from tests.metadata_logs import DELETED, DELETING, copied, segment_id, started, updated
from tests.monitoring.alerts import firing, rule_names
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import SEGMENT_BYTES, OwnTopic
from tests.rigs.topics import admin_client, answered, create_topics
from tests.rigs.waiting import wait_until
from tieredctl.formats.metadata_records import encode_event
from tieredctl.kafka.metadata_producer import MetadataProducer
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.rlmm.partitioner import metadata_partition

pytestmark = pytest.mark.integration
GONE = TopicIdPartition(segment_id(1 << 100), "gone", 0)
TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "retention.ms": "-1",
    "local.retention.bytes": "1",
}
LAG = "tieredctl_lag_segment_sizes", "topic=orders"
CRITICAL = "tieredctl_last_verification_findings", "severity=critical"
HOURS_8 = 8 * 3600
SECONDS = 60
_STATE = RemoteLogSegmentState


class Watched:
    """A broker with a tiered topic, and the exporter that watches it."""

    def __init__(self, broker: KafkaBroker, topic: OwnTopic, running: RunningExporter, folder: Path) -> None:
        self.broker, self.topic, self.running, self.folder = broker, topic, running, folder
        self.scan, self.verification = folder / "scan.json", folder / "verification.json"
        self.places = ("--bootstrap-server", broker.bootstrap_server, *self.store)

    @property
    def store(self) -> tuple[str, ...]:
        return "--store", f"file:{self.broker.remote_dir}", "--layout", "local"

    def look(self, *verify: str) -> None:
        """Scans and verifies, as jobs do every night."""
        for file, words in (
            (self.scan, ("orphans", "scan", "--min-age", "0s")),
            (self.verification, ("verify", "--level", "full", *verify)),
        ):
            self.replace(file, this_process(*words, *self.places, "-o", "json").out)
        self.awaited(is_up)

    @staticmethod
    def replace(file: Path, text: str) -> None:
        """In one step, as jobs should."""
        written = file.with_suffix(".new")
        written.write_text(text)
        written.replace(file)

    def awaited(self, condition: Callable[[Samples], bool]) -> Samples:
        """The samples that are as they should be, of the results as they are now."""
        results = {"last_scan": self.scan, "last_verification": self.verification}

        def holds(seen: Samples) -> bool:
            ended = {name: seen.get((f"tieredctl_{name}_timestamp_seconds",)) for name in results}
            said = {name: ended_seconds(json.loads(file.read_text())) for name, file in results.items()}
            return ended == said and condition(seen)

        return self.running.awaited(holds)

    def awaited_up(self, condition: Callable[[Samples], bool]) -> Samples:
        """The same, where every part answers: one look that fails is a trouble of its own."""
        return self.awaited(lambda seen: is_up(seen) and condition(seen))

    def segment(self) -> dict[str, Any]:
        """One that is tiered."""
        listed = this_process("metadata", "segments", *self.places[:2], "--topic", "orders", "-o", "json")
        return dict(listed.document()["items"][0])

    def firing(self, *scrapes: Samples, up: int = 1) -> set[str]:
        return firing(scrapes, time.time(), self.folder, up=up)


def ended_seconds(document: dict[str, Any]) -> float:
    """When the run ended that left a document, since the epoch."""
    return datetime.fromisoformat(document["source"]["at"]).timestamp()


def total(samples: Samples, name: str) -> float:
    return sum(value for key, value in samples.items() if key[0] == f"tieredctl_{name}")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with KafkaBroker(jars_of("4.3.1")) as broker:
        create_topics(broker.bootstrap_server, NewTopic("orders", 1, 1, config=TIERED))
        topic = OwnTopic(broker, "orders")
        topic.write(5, (int(time.time()) - HOURS_8) * 1000)
        wait_until(lambda: len(topic.copied()) == 4, "closed segments are tiered", SECONDS)
        scan, verification = folder / "scan.json", folder / "verification.json"
        words = ("--bootstrap-server", broker.bootstrap_server, "--store", f"file:{broker.remote_dir}")
        results = ("--result", scan, "--result", verification)
        with exporter(*words, "--layout", "local", "--older-than", "1s", *results) as running:
            found = Watched(broker, topic, running, folder)
            found.look()
            yield found


def test_rules_fire_in_their_trouble_and_no_other_time(watched: Watched) -> None:
    fired: dict[str, set[str]] = {}
    running = watched.running

    healthy = watched.awaited_up(lambda seen: seen["tieredctl_last_scan_complete",] == 1)
    fired["healthy"] = watched.firing(healthy)

    fired["results"] = _old_and_shallow_results(watched)
    fired["orphans"] = _orphans(watched)
    fired["corruption"] = _corruption(watched)
    fired["stuck copy"] = _stuck_copy(watched)
    fired["stuck deletion"] = _stuck_deletion(watched)
    fired["store gone"] = _store_that_takes_nothing(watched, healthy)
    fired["dead"] = _dead_events(watched)
    fired["truncated"] = _truncated(watched, healthy)
    fired["broker gone"] = _broker_that_does_not_answer(watched)
    assert running.stop() == 0
    fired["exporter gone"] = watched.firing({}, up=0)

    assert fired["healthy"] == set()
    assert fired["results"] == {"TieredVerificationOld", "TieredVerificationCoverageLow"}
    assert fired["orphans"] == {"TieredOrphans"}
    assert fired["corruption"] == {"TieredCorruption"}
    assert fired["stuck copy"] == {"TieredCopiesStuck"}
    assert fired["stuck deletion"] == {"TieredCopiesStuck", "TieredDeletionsStuck"}
    assert {"TieringBehindInTime", "TieringBehindInBytes"} <= fired["store gone"]
    assert "TieredMetadataMostlyDead" in fired["dead"]
    assert {"TieredMetadataIncomplete", "TieredMetadataLost"} <= fired["truncated"]
    assert "TieredMetadataUnreadable" in fired["broker gone"]
    assert fired["exporter gone"] == {"TieredctlExporterDown"}
    assert set().union(*fired.values()) == rule_names("tieredctl")


def _old_and_shallow_results(watched: Watched) -> set[str]:
    watched.look("--subset", "1/1000000")
    document = json.loads(watched.verification.read_text())
    document["source"]["at"] = (datetime.now(UTC) - timedelta(days=30)).isoformat(timespec="milliseconds")
    watched.replace(watched.verification, json.dumps(document))

    samples = watched.awaited_up(lambda seen: seen["tieredctl_last_verification_coverage",] < 0.05)

    return watched.firing(samples)


def _orphans(watched: Watched) -> set[str]:
    segment, strays = watched.segment(), []
    # Written while the metadata was: what is older than all of it may be of a topic that was lost.
    known, written = segment["segmentId"], segment["eventTimestampMs"] / 1000 + 0.001
    for file in watched.broker.remote_dir.glob(f"orders-0-*/*{known}*"):
        stray = file.with_name(file.name.replace(known, segment_id(7)))
        stray.write_bytes(file.read_bytes())
        os.utime(stray, (written, written))
        strays.append(stray)
    assert strays
    watched.look()

    samples = watched.awaited_up(lambda seen: total(seen, "orphaned_objects") == len(strays))

    for stray in strays:
        stray.unlink()
    return watched.firing(samples)


def _corruption(watched: Watched) -> set[str]:
    log = next(watched.broker.remote_dir.glob("orders-0-*/*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-1] + b"!")
    watched.look()

    samples = watched.awaited_up(lambda seen: seen[CRITICAL] > 0 and total(seen, "orphaned_objects") == 0)

    log.write_bytes(whole)
    watched.look()
    watched.awaited(lambda seen: total(seen, "last_verification_findings") == 0)
    return watched.firing(samples)


def _stuck_copy(watched: Watched) -> set[str]:
    """As a broker leaves it that ends in the middle of one."""
    one = watched.segment()
    partition = TopicIdPartition(one["topicId"], one["topic"], one["partition"])
    began_ms = time.time_ns() // 1_000_000 - 60_000
    _publish(watched, partition, [started(9, 0, 9, partition=partition, event_timestamp_ms=began_ms)])

    return watched.firing(watched.awaited_up(lambda seen: total(seen, "stuck_copies") == 1))


def _stuck_deletion(watched: Watched) -> set[str]:
    """As a broker leaves it that ends while it removes a deleted topic."""
    _publish(watched, GONE, life(5)[:3])

    return watched.firing(watched.awaited_up(lambda seen: total(seen, "stuck_deletions") == 1))


def _publish(watched: Watched, partition: TopicIdPartition, events: list[MetadataEvent]) -> None:
    number = metadata_partition(partition.topic_id, partition.partition, METADATA_PARTITIONS)
    with closing(MetadataProducer(watched.broker.bootstrap_server)) as producer:
        producer.publish(number, events)


def _delete_records(watched: Watched, topic: str, partition: int, offset: int) -> None:
    admin = admin_client(watched.broker.bootstrap_server)
    until = TopicPartition(topic, partition, offset)
    answered(lambda: admin.delete_records([until])[until].result(SECONDS))


def _store_that_takes_nothing(watched: Watched, before: Samples) -> set[str]:
    remote = watched.broker.remote_dir
    remote.rename(remote.with_name("elsewhere"))
    remote.touch()
    watched.topic.write(5)
    first = watched.awaited(lambda seen: seen.get(LAG, 0) > 2)
    watched.topic.write(5)
    second = watched.awaited(lambda seen: seen.get(LAG, 0) > 5)
    return watched.firing(before, first, second)


def _dead_events(watched: Watched) -> set[str]:
    """Segments that came and went, of a topic that is gone, in one metadata partition."""
    template = 1 << 90
    values = [encode_event(event).split(uuid_bytes(segment_id(template))) for event in life(template)]
    producer = Producer(
        {"bootstrap.servers": watched.broker.bootstrap_server, "log_level": 0, "queue.buffering.max.messages": 200_000}
    )
    for _ in range(26_000):
        own = uuid4().bytes
        for parts in values:
            producer.produce(METADATA_TOPIC, own.join(parts), partition=3)
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    where = ("tieredctl_metadata_dead_events", "metadata_partition=3")

    samples = watched.awaited(lambda seen: seen.get(where, 0) >= 104_000)

    assert samples["tieredctl_exporter_metadata_readings_total",] == 1
    return watched.firing(samples)


def _truncated(watched: Watched, before: Samples) -> set[str]:
    _delete_records(watched, METADATA_TOPIC, 3, 10)

    samples = watched.awaited(lambda seen: seen.get(("tieredctl_metadata_complete",)) == 0)

    assert samples["tieredctl_exporter_metadata_readings_total",] == 2
    assert not total(samples, "remote_bytes")
    return watched.firing(before, samples)


def _broker_that_does_not_answer(watched: Watched) -> set[str]:
    watched.broker.kill()

    samples = watched.awaited(is_without_broker)

    assert not any(key[0].startswith(("tieredctl_metadata", "tieredctl_lag", "tieredctl_stuck")) for key in samples)
    return watched.firing(samples)


def life(number: int) -> list[MetadataEvent]:
    """All that a segment of a topic that is gone may live through."""
    deleted = [updated(number, state, partition=GONE) for state in (DELETING, DELETED)]
    return [*copied(number, 0, 9, partition=GONE), *deleted]
