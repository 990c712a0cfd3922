"""What the doctor calls an error in settings, Kafka refuses; what it does not, Kafka takes."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.rigs.broker import BrokerFailed, KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker, jars_of
from tests.rigs.tools import ToolFailed
from tests.shares import divided
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import release
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.doctor.broker_rules import broker_findings
from tieredctl.ops.doctor.topic_rules import topic_findings

pytestmark = pytest.mark.integration

DAY, MONTH = "86400000", "2592000000"
TIERED = {"remote.storage.enable": "true"}
TOPICS = [
    {},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
    {"cleanup.policy": ""},
    {"retention.ms": DAY, "local.retention.ms": MONTH},
    {"retention.ms": MONTH, "local.retention.ms": DAY},
    {"retention.ms": MONTH, "local.retention.ms": "-1"},
    {"retention.ms": "-1", "local.retention.ms": "-1"},
    {"retention.ms": "-1", "local.retention.ms": MONTH},
    {"retention.bytes": "1000", "local.retention.bytes": "1001"},
    {"retention.bytes": "1000", "local.retention.bytes": "1000"},
    {"retention.bytes": "1000", "local.retention.bytes": "-1"},
    {"retention.bytes": "-1", "local.retention.bytes": "1000"},
    {"local.retention.ms": "-3"},
    {"local.retention.ms": "soon"},
    {"retention.ms": "-2"},
    {"segment.ms": "0"},
    {"remote.log.copy.disable": "perhaps"},
    {"remote.log.copy.disable": "true"},
    {"remote.log.copy.disable": "true", "retention.ms": MONTH, "local.retention.ms": MONTH},
    {"remote.log.copy.disable": "true", "retention.ms": MONTH, "local.retention.ms": DAY},
    {"remote.log.copy.disable": "true", "retention.bytes": "1000", "local.retention.bytes": "999"},
    {"remote.log.delete.on.disable": "true"},
]


def errors(findings: list[Finding]) -> list[str]:
    return [finding.message for finding in findings if finding.severity is Severity.ERROR]


def refusal(broker: KafkaBroker, settings: dict[str, str]) -> str | None:
    """Why the controller would not make such a topic, if it would not. Nothing is made."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    topic = NewTopic("never-made", num_partitions=1, replication_factor=1, config=settings)
    try:
        admin.create_topics([topic], validate_only=True)["never-made"].result(timeout=30)
    except KafkaException as error:
        return str(error)
    return None


def test_a_topic_is_refused_where_the_doctor_finds_an_error(driven: DrivenBroker) -> None:
    for settings in TOPICS:
        topic = TopicSettings("never-made", TIERED | settings, release(driven.broker.jars.version))

        said = refusal(driven.broker, TIERED | settings)

        assert (said is not None) == bool(errors(topic_findings(topic))), (settings, said)


FATAL = [
    ("remote.log.storage.manager.class.name", ""),
    ("remote.log.metadata.manager.listener.name", "SASL"),
    ("log.local.retention.ms", MONTH),
    ("remote.log.manager.task.interval.ms", "0"),
    ("rlmm.config.remote.log.metadata.topic.num.partitions", "0"),
]


def found(driven: DrivenBroker, **changes: str) -> list[str]:
    """The doctor's errors of the broker's own file."""
    lines = (driven.broker.work_dir / "server.properties").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines) | changes
    return errors(broker_findings(BrokerSettings("b", settings, release(driven.broker.jars.version))))


def test_a_broker_does_not_start_where_the_doctor_finds_an_error(kafka_4: DrivenBroker) -> None:
    assert [name for name, value in FATAL if not found(kafka_4, **{name: value})] == []
    for name, value in divided(FATAL):
        with (
            pytest.raises((BrokerFailed, ToolFailed)),
            KafkaBroker(jars_of(kafka_4.broker.jars.version), properties={name: value}),
        ):
            pytest.fail(f"it started with {name}={value}")


def test_a_broker_that_runs_has_no_error(driven: DrivenBroker) -> None:
    assert found(driven) == []
