"""KIP-630, "Topic configuration" and "Snapshot Format": what Kafka has of it."""

from __future__ import annotations

import pytest

from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.formats.file_names import parse_kraft_snapshot_name
from tieredctl.kafka.live_cluster import LiveCluster

SEVEN_DAYS_MS = 7 * 24 * 3_600_000


@pytest.mark.integration
def test_topic_configuration_kafka_has_one_of_three_settings_and_retention_instead(kafka_4: DrivenBroker) -> None:
    cluster = LiveCluster(kafka_4.broker.bootstrap_server, None)
    try:
        settings = cluster.broker_configs()[1]
    finally:
        cluster.close()

    assert "metadata.log.max.record.bytes.between.snapshots" in settings
    assert "metadata.snapshot.min.changed_records.ratio" not in settings
    assert "metadata.start.offset.lag.time.max.ms" not in settings
    assert settings["metadata.max.retention.ms"].value == str(SEVEN_DAYS_MS)


def test_snapshot_format_kafkas_name_of_the_example_has_ten_digits_for_the_epoch() -> None:
    """End offset 5120793, epoch 2; the KIP writes the epoch with 20 digits."""
    assert parse_kraft_snapshot_name("00000000000005120793-0000000002.checkpoint") == (5120793, 2, None)
    assert parse_kraft_snapshot_name("00000000000005120793-00000000000000000002.checkpoint") is None
