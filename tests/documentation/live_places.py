"""Servers on which the commands of the documentation are run."""

from __future__ import annotations

import shlex
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.documentation.places import SERVER, STORE, Place
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.inkless import Inkless
from tests.rigs.maven import QUICK_JAVA, java_command

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
"""What pages call that of the live cluster."""
_TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
}


def broker_place(broker: KafkaBroker, folder: Path) -> Place:
    """A running broker: pages name it broker:9092 (its controller controller-1:9093), its log directory
    /var/lib/kafka/data, and its store file:/mnt/tiered/kafka-tiered-storage or s3://kafka-tiered/prod."""
    store = f"file:{broker.remote_dir}"
    names = {
        "controller-1:9093": broker.controller_address,
        SERVER: broker.bootstrap_server,
        "/var/lib/kafka/data": str(broker.log_dir),
        "/var/log/kafka/server.log": str(broker.server_log),
        "/var/lib/kafka/server.properties": str(broker.work_dir / "server.properties"),
        STORE: store,
        "file:/mnt/tiered/kafka-tiered-storage": store,
        "/mnt/tiered/kafka-tiered-storage": str(broker.remote_dir),
        CLUSTER_ID: broker.cluster_id,
        # On a busy machine a consumer's first record takes longer than a page waits for it; after the last, none waits.
        "--timeout-ms 3000": f"--timeout-ms 10000 --max-messages {events_of(broker)}",
        "--timeout-ms 5000": "--timeout-ms 20000",
    }
    options = (*QUICK_JAVA, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    java = shlex.join([java_command(), *options, "-cp", broker.jars.class_path])
    tools = {name: f"{java} {class_name}" for name, class_name in _TOOLS.items()}
    scripts = tools | {f"{name}.sh": command for name, command in tools.items()}
    return Place(folder, names, scripts, cluster_id=broker.cluster_id, lives=True)


def events_of(broker: KafkaBroker) -> int:
    """How many there are in the metadata topic."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": "rig", "enable.auto.commit": False})
    try:
        partitions = [TopicPartition(METADATA_TOPIC, number) for number in range(METADATA_PARTITIONS)]
        ends = [consumer.get_watermark_offsets(partition, timeout=30) for partition in partitions]
    finally:
        consumer.close()
    return sum(end - begin for begin, end in ends)


def diskless_place(inkless: Inkless, folder: Path) -> Place:
    """A control plane that pages name service=inkless, with its bucket s3://bucket."""
    names = {
        "postgresql://inkless_reader@db.example.com/inkless": inkless.control_plane[1],
        "service=inkless": inkless.control_plane[1],
        "s3://bucket": f"file:{inkless.bucket}",
    }
    return Place(folder, names, lives=True)
