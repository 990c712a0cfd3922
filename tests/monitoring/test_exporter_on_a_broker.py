"""The exporter follows a real broker through what happens to it, without being started again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.cli.running_exporter import RunningExporter, Samples, exporter, is_up, is_without_broker
from tests.monitoring.alerts import firing
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, OUTLASTS_PAUSES, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import OwnTopic, own_topic
from tests.rigs.topics import admin_client, create_topics, delete_topic, known_topics
from tests.rigs.waiting import wait_until
from tests.shares import divided

pytestmark = pytest.mark.integration
SECONDS = 60
AT_ONCE = 50
TIERED = {"remote_storage_enable": "true", "retention_ms": "-1", "local_retention_bytes": "1"}
ALWAYS = ("tieredctl_exporter_", "tieredctl_build_info")
READINGS = ("tieredctl_exporter_metadata_readings_total",)
LOSSES = ("tieredctl_exporter_metadata_losses_total",)
LAST_SUCCESS = "tieredctl_exporter_last_success_timestamp_seconds"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(jars_of("4.3.1"), properties=OUTLASTS_PAUSES) as broker:
        yield broker


@pytest.fixture(scope="module")
def orders(broker: KafkaBroker) -> Iterator[OwnTopic]:
    with own_topic(broker, "orders", **TIERED) as topic:
        topic.write(3)
        wait_until(lambda: len(topic.copied()) == 2, "closed segments are tiered", SECONDS)
        yield topic


@pytest.fixture(scope="module")
def running(orders: OwnTopic) -> Iterator[RunningExporter]:
    """One for all tests: what happened before does not keep it from what comes then."""
    with exporter("--bootstrap-server", orders.broker.bootstrap_server) as running:
        said: list[str] = []
        reader = Thread(target=lambda: said.extend(running.process.stderr or ()))
        reader.start()
        yield running
        running.process.terminate()
        reader.join()
        assert "Traceback" not in "".join(said)


@pytest.fixture
def before(running: RunningExporter) -> Samples:
    return running.awaited(is_up_with_offsets)


def is_up_with_offsets(samples: Samples) -> bool:
    """Also with those of `orders`, whose leader may not answer yet, or not in time, where all else is known."""
    return is_up(samples) and ("tieredctl_lag_seconds", "topic=orders") in samples


def names(samples: Samples) -> set[str]:
    return {key[0] for key in samples if not key[0].startswith(ALWAYS)}


def segments(count: float, topic: str = "orders") -> Callable[[Samples], bool]:
    return lambda samples: samples.get(("tieredctl_remote_segments", f"topic={topic}")) == count


def test_a_broker_that_ends_and_comes_back_is_unknown_meanwhile_and_then_followed_on(
    orders: OwnTopic, tmp_path: Path
) -> None:
    broker, impatient = orders.broker, tmp_path / "client.properties"
    impatient.write_text("request.timeout.ms=2000\n")
    with exporter("--bootstrap-server", broker.bootstrap_server, "--command-config", impatient) as running:
        before = running.awaited(is_up_with_offsets)
        broker.stop()
        meanwhile = running.awaited(is_without_broker)
        broker.start()
        # A leader that does not answer yet leaves its topic's offsets unknown, and all else known.
        after = running.awaited(lambda samples: is_up(samples) and names(samples) == names(before))

    assert names(meanwhile) == set()
    assert segments(2)(after)
    assert (after[READINGS], after[LOSSES]) == (1, 0)


def test_while_a_broker_does_not_answer_all_scrapes_are_answered_with_what_was_seen_and_when(
    broker: KafkaBroker, running: RunningExporter, before: Samples
) -> None:
    broker.pause()
    try:
        with ThreadPoolExecutor(AT_ONCE) as scrapers:
            scraped = list(scrapers.map(lambda _: running.samples(), range(AT_ONCE)))
        asked = time.time()
    finally:
        broker.go_on()

    assert len(scraped) == AT_ONCE
    for samples in scraped:
        assert names(samples) == names(before)
        assert segments(2)(samples)
        assert before[LAST_SUCCESS, "part=metadata"] <= samples[LAST_SUCCESS, "part=metadata"] <= asked
    running.awaited(lambda samples: is_up(samples) and samples[LAST_SUCCESS, "part=metadata"] > asked)


@pytest.mark.parametrize("number", divided([signal.SIGTERM, signal.SIGINT]))
def test_a_signal_ends_it_cleanly_while_it_waits_for_a_broker(orders: OwnTopic, number: int) -> None:
    broker = orders.broker
    with exporter("--bootstrap-server", broker.bootstrap_server) as running:
        running.awaited(is_up)
        broker.pause()
        try:
            _await_a_look_that_hangs(running)
            code = running.stop(number)
        finally:
            broker.go_on()

    assert (code, "Traceback" in running.said) == (0, False)


def _await_a_look_that_hangs(running: RunningExporter) -> None:
    """Two intervals without a look that ended."""
    samples = running.samples()
    running.awaited(
        lambda seen: time.time() - seen[LAST_SUCCESS, "part=metadata"] > 3 and seen.keys() == samples.keys()
    )


def test_a_topic_that_is_recreated_is_one_topic_with_the_segments_of_the_new_one(
    broker: KafkaBroker, running: RunningExporter, before: Samples
) -> None:
    disk = ("tieredctl_local_bytes", "topic=again")
    with own_topic(broker, "again", **TIERED) as topic:
        topic.write(3)
        running.awaited(segments(2, "again"))
    running.awaited(lambda samples: disk not in samples and segments(0, "again")(samples))
    with own_topic(broker, "again", **TIERED) as topic:
        topic.write(2)
        after = running.awaited(lambda samples: disk in samples and segments(1, "again")(samples))

    assert is_up(after)
    assert (after[READINGS], after[LOSSES]) == (before[READINGS], before[LOSSES])


def test_a_partition_that_is_added_counts(broker: KafkaBroker, running: RunningExporter, before: Samples) -> None:
    with own_topic(broker, "wider", **TIERED) as topic:
        topic.write(2)
        lag = ("tieredctl_lag_offsets", "topic=wider")
        running.awaited(lambda samples: segments(1, "wider")(samples) and samples.get(lag) == 1)
        admin = admin_client(broker.bootstrap_server)
        admin.create_partitions([NewPartitions("wider", 2)])["wider"].result(SECONDS)
        # What is written to a partition that the broker does not know yet is lost.
        server = broker.bootstrap_server
        wait_until(lambda: len(known_topics(server)["wider"].partitions) == 2, "the broker knows of it", SECONDS)
        topic.write(3, partition=1)
        after = running.awaited(lambda samples: segments(3, "wider")(samples) and samples.get(lag) == 2)

    assert is_up(after)
    assert after[READINGS] == before[READINGS]


def test_metadata_that_is_replaced_is_dropped_and_the_loss_is_told(orders: OwnTopic, tmp_path: Path) -> None:
    server = orders.broker.bootstrap_server
    with exporter("--bootstrap-server", server) as running:
        before = running.awaited(lambda samples: is_up(samples) and segments(2)(samples))
        admin = admin_client(server)
        more = NewPartitions(METADATA_TOPIC, METADATA_PARTITIONS + 1)
        admin.create_partitions([more])[METADATA_TOPIC].result(SECONDS)
        wider = running.awaited(lambda samples: samples[LOSSES] == 1 and is_up(samples))

        delete_topic(server, METADATA_TOPIC)
        gone = running.awaited(lambda samples: samples["tieredctl_exporter_part_up", "part=metadata"] == 0)
        create_topics(server, NewTopic(METADATA_TOPIC, METADATA_PARTITIONS + 1, 1))
        replaced = running.awaited(lambda samples: samples[LOSSES] == 2 and is_up(samples))
        findings = running.awaited(
            lambda samples: ("tieredctl_current_findings", "code=local-remote-gap", "severity=critical") in samples
        )
        running.stop()

    assert {"TieredMetadataLost", "TieredCorruption"} <= firing([before, findings], time.time(), tmp_path)
    assert segments(2)(wider)
    assert not any(key[0].startswith(("tieredctl_metadata", "tieredctl_remote")) for key in gone)
    assert (replaced[READINGS], segments(2)(replaced)) == (3, False)
    assert (
        f"{METADATA_TOPIC} had {METADATA_PARTITIONS} partitions, and now has {METADATA_PARTITIONS + 1}" in running.said
    )
    assert "it is another topic" in running.said
    assert running.said.count("what was known is dropped") == 2
