"""The live topic as a source of metadata: the same answers as any other, and clear words where there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.metadata_logs import copied
from tests.refusals import refused_with
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker, jars_of
from tests.rigs.topics import answered, create_topics, known_topics
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_chunks import MetadataRecord
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.live_topic import LiveTopic
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.platforms import demand_metadata_here
from tieredctl.ports.metadata_source import MetadataSource

pytestmark = pytest.mark.integration

BEYOND_PATIENCE_SECONDS = 900
"""Longer than a test may take: what waits for it does not end."""

EVENTS = [encode_event(event) for number in range(1, 200) for event in copied(number, number, number)]
TRUNCATED, TRANSACTIONS, GROWING, DAMAGED = range(4)
"""What happens to which metadata partition of the bare broker."""


def records_of(source: MetadataSource, metadata_partition: int) -> tuple[list[MetadataRecord], list[Finding]]:
    chunks = list(source.chunks(metadata_partition))
    records = [record for chunk in chunks for record in chunk.records()]
    return records, [finding for chunk in chunks for finding in chunk.findings]


@pytest.fixture(params=["4.3.1", pytest.param("3.9.1", marks=pytest.mark.exhaustive)])
def driven(request: pytest.FixtureRequest) -> KafkaBroker:
    """A broker of each version that lived through rolls, restarts, retention and a deleted topic."""
    fixture = {"4.3.1": "kafka_4", "3.9.1": "kafka_3"}[request.param]
    shared: DrivenBroker = request.getfixturevalue(fixture)
    return shared.broker


@pytest.fixture
def output(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., bytes]:
    """What `tieredctl metadata` with these words prints, on its way to a clean end."""

    def output(*words: str) -> bytes:
        code = run(["metadata", *words])
        out, err = capfdbinary.readouterr()
        assert code == 0, err
        return out

    return output


def test_live_log_directory_export_and_kafkas_own_tool_agree(
    driven: KafkaBroker, output: Callable[..., bytes], tmp_path: Path
) -> None:
    version = ("--kafka-version", "3.9" if driven.jars.version.startswith("3.") else "4.0")
    live = ("--bootstrap-server", driven.bootstrap_server)
    output("export", str(tmp_path / "live.parquet"), *live)
    output("export", str(tmp_path / "live.jsonl"), *live)
    sources = [live, ("--log-dir", str(driven.log_dir))]
    sources += [("--export", str(tmp_path / name)) for name in ("live.parquet", "live.jsonl")]

    printed = "".join(driven.console_formatter(number) for number in range(METADATA_PARTITIONS)).encode()

    assert printed.count(b"\n") > 100
    for source in sources:
        assert output("format", *version, *source) == printed
    for words in (["segments", "--all"], ["stats"], ["epochs", "ledger:0"], ["stuck"]):
        documents = [json.loads(output(*words, *source, "-o", "json")) for source in sources]
        for document in documents:
            assert without_keys(document) == without_keys(documents[0])


def without_keys(document: dict[str, Any]) -> dict[str, Any]:
    """A document but for its source, and for how many records have no key, which the live topic alone tells."""
    items = [{name: value for name, value in item.items() if name != "unkeyed"} for item in document["items"]]
    summary = {name: value for name, value in document["summary"].items() if name != "unkeyed"}
    return document | {"source": None, "items": items, "summary": summary}


def test_the_source_says_which_cluster_it_is_and_how_far_it_was_read(driven: KafkaBroker) -> None:
    source = LiveTopic(driven.bootstrap_server)

    described = source.describe()

    lengths = {str(number): len(records_of(source, number)[0]) for number in source.metadata_partitions()}
    assert described == {
        "kind": "topic",
        "bootstrapServer": driven.bootstrap_server,
        "clusterId": driven.cluster_id,
        "metadataTopicId": LogDirectories([driven.log_dir]).metadata_topic_id,
        "metadataPartitions": METADATA_PARTITIONS,
        "topicPartitions": METADATA_PARTITIONS,
        "endOffsets": lengths,
    }
    assert source.findings() == []


def command_config(folder: Path, broker: KafkaBroker, password: str, mechanism: str) -> Path:
    """Client properties as Kafka's own tools take them."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required \\\n"
        f'  username="{broker.secure_listeners.username}" password="{password}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={broker.secure_listeners.certificate}\n"
        "key.deserializer=org.apache.kafka.common.serialization.ByteArrayDeserializer\n"
    )
    return file


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_tls_and_a_right_password(
    driven: KafkaBroker, output: Callable[..., bytes], tmp_path: Path, mechanism: str
) -> None:
    secure = driven.secure_listeners
    config = command_config(tmp_path, driven, secure.password, mechanism)

    found = output("segments", "--bootstrap-server", secure.sasl_ssl, "--command-config", str(config), "-o", "csv")

    assert found == output("segments", "--bootstrap-server", driven.bootstrap_server, "-o", "csv")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_at_once_and_not_repeated(
    driven: KafkaBroker, capfd: pytest.CaptureFixture[str], tmp_path: Path, mechanism: str
) -> None:
    config = command_config(tmp_path, driven, "wrong-and-secret", mechanism)
    with config.open("a") as properties:
        properties.write(f"request.timeout.ms={BEYOND_PATIENCE_SECONDS * 1000}\n")

    code = run(
        [
            *("metadata", "segments", "--bootstrap-server", driven.secure_listeners.sasl_ssl),
            *("--command-config", str(config)),
        ]
    )

    out, err = capfd.readouterr()
    assert (code, out) == (1, "")
    assert "refused" in err
    assert "--command-config" in err
    assert "wrong-and-secret" not in err


def test_a_certificate_that_nobody_vouches_for(driven: KafkaBroker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\n")

    with pytest.raises(TieredctlError, match="certificate") as refused:
        LiveTopic(driven.secure_listeners.ssl, config)

    assert refused.value.code == "broker-refused"


def test_a_listener_that_speaks_tls_to_a_client_that_does_not(driven: KafkaBroker) -> None:
    with pytest.raises(TieredctlError, match="speaks TLS, but the client does not use TLS") as refused:
        LiveTopic(driven.secure_listeners.ssl, request_timeout_seconds=BEYOND_PATIENCE_SECONDS)

    assert refused.value.exit_code == ExitCode.FAILURE


@pytest.fixture(scope="module")
def bare() -> Iterator[KafkaBroker]:
    """A broker that lets its plain listener do all, and other users what they are granted; nothing is tiered."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KafkaBroker(jars_of("4.3.1"), secure=True, properties=properties) as broker:
        wait_until(lambda: METADATA_TOPIC in topics_of(broker), "the metadata topic is there", 60)
        yield broker


def topics_of(broker: KafkaBroker) -> set[str]:
    return set(known_topics(broker.bootstrap_server))


def producer(broker: KafkaBroker, **properties: Any) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_server, "log_level": 0, **properties})


def produce(broker: KafkaBroker, metadata_partition: int, values: list[bytes], **properties: Any) -> None:
    made = producer(broker, **properties)
    for value in values:
        made.produce(METADATA_TOPIC, value, partition=metadata_partition)
    assert made.flush(30) == 0


def test_history_that_was_deleted_is_missed(bare: KafkaBroker, capfd: pytest.CaptureFixture[str]) -> None:
    produce(bare, TRUNCATED, EVENTS)
    admin = AdminClient({"bootstrap.servers": bare.bootstrap_server})
    until = TopicPartition(METADATA_TOPIC, TRUNCATED, 31)
    answered(lambda: admin.delete_records([until])[until].result(timeout=30))

    code = run(["metadata", "format", "--bootstrap-server", bare.bootstrap_server, "-o", "json"])

    document = json.loads(capfd.readouterr().out)
    assert code == 5
    assert [finding["code"] for finding in document["summary"]["findings"]] == ["metadata-truncated"]
    assert document["items"][0]["metadataOffset"] == 31


def end_offset(broker: KafkaBroker, number: int) -> int:
    """The one after a metadata partition's last record."""
    settings = {"bootstrap.servers": broker.bootstrap_server, "group.id": "test", "isolation.level": "read_uncommitted"}
    with closing(Consumer(settings)) as consumer:
        end: int = consumer.get_watermark_offsets(TopicPartition(METADATA_TOPIC, number), timeout=30)[1]
    return end


def test_control_records_take_offsets_and_are_no_events(bare: KafkaBroker) -> None:
    """An aborted transaction's events are read like a broker reads them: uncommitted. A marker ends the partition."""
    made = producer(bare, **{"transactional.id": "writer"})
    made.init_transactions(30)
    for commit in (True, False):
        made.begin_transaction()
        made.produce(METADATA_TOPIC, EVENTS[0], partition=TRANSACTIONS)
        made.flush(30)
        made.commit_transaction(30) if commit else made.abort_transaction(30)
    # A transaction ends before its markers are written.
    wait_until(lambda: end_offset(bare, TRANSACTIONS) == 4, "both markers are written", 30)
    source = LiveTopic(bare.bootstrap_server, request_timeout_seconds=BEYOND_PATIENCE_SECONDS)

    records, findings = records_of(source, TRANSACTIONS)

    assert [record.offset for record in records] == [0, 2]
    assert source.offset_range(TRANSACTIONS) == (0, 4)
    assert records == records_of(LogDirectories([bare.log_dir]), TRANSACTIONS)[0]
    assert not findings


def test_what_is_written_later_is_not_read(bare: KafkaBroker) -> None:
    produce(bare, GROWING, EVENTS[:5])
    source = LiveTopic(bare.bootstrap_server)
    produce(bare, GROWING, EVENTS[5:20])

    records, _ = records_of(source, GROWING)

    assert [record.value for record in records] == EVENTS[:5]
    assert source.offset_range(GROWING) == (0, 5)


def batch_positions(log: bytes | bytearray) -> list[int]:
    positions = [0]
    while positions[-1] < len(log):
        length_at = positions[-1] + 8
        positions.append(length_at + 4 + int.from_bytes(log[length_at : length_at + 4]))
    return positions


def test_a_damaged_batch_is_passed_over_as_in_a_log_directory(bare: KafkaBroker) -> None:
    for start in range(0, 60, 6):
        produce(bare, DAMAGED, EVENTS[start : start + 6], **{"linger.ms": 10_000})
    bare.stop()
    file = bare.log_dir / f"{METADATA_TOPIC}-{DAMAGED}" / f"{0:020d}.log"
    data = bytearray(file.read_bytes())
    batches = batch_positions(data)
    data[batches[4] - 1] ^= 1  # in what a CRC covers
    data[batches[7]] ^= 1  # in a base offset, which none does
    file.write_bytes(data)
    bare.start()

    by_topic, found = records_of(LiveTopic(bare.bootstrap_server), DAMAGED)
    by_log, expected = records_of(LogDirectories([bare.log_dir]), DAMAGED)

    assert by_topic == by_log
    assert len(by_topic) == 54
    assert [finding.code for finding in found] == ["batch-corrupt", "offsets-out-of-order"]
    assert [finding.code for finding in expected] == ["batch-corrupt", "offsets-out-of-order"]
    assert found[0].evidence["offsets"] == expected[0].evidence["offsets"]


def test_a_user_needs_describe_and_read_and_no_group(
    bare: KafkaBroker, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    secure = bare.secure_listeners
    config = command_config(tmp_path, bare, secure.password, "PLAIN")
    words = ["metadata", "format", "--bootstrap-server", secure.sasl_ssl, "--command-config", str(config)]

    nothing = run(words)
    grant(bare, AclOperation.DESCRIBE)
    description = run(words)
    grant(bare, AclOperation.READ)
    everything = run([*words, "--metadata-partition", str(GROWING)])

    out, err = capfd.readouterr()
    assert (nothing, description, everything) == (1, 1, 0)
    assert err.count("Describe and Read") == 2
    assert out.startswith(f"partition: {GROWING}, offset: 0, ")


def grant(broker: KafkaBroker, operation: AclOperation) -> None:
    user = f"User:{broker.secure_listeners.username}"
    words = (ResourceType.TOPIC, METADATA_TOPIC, ResourcePatternType.LITERAL, user, "*", operation)
    rule = AclBinding(*words, AclPermissionType.ALLOW)
    known = AclBindingFilter(*words, AclPermissionType.ALLOW)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    answered(lambda: admin.create_acls([rule])[rule].result(timeout=30))
    wait_until(lambda: bool(answered(lambda: admin.describe_acls(known).result(timeout=30))), "the rule is known", 30)


def test_no_offset_is_committed_whatever_the_properties_say(bare: KafkaBroker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("group.id=reader\nenable.auto.commit=true\nauto.commit.interval.ms=1\n")

    source = LiveTopic(bare.bootstrap_server, config)
    for number in (TRUNCATED, GROWING):
        assert records_of(source, number)[0]

    admin = AdminClient({"bootstrap.servers": bare.bootstrap_server})
    groups = answered(lambda: admin.list_consumer_groups().result(timeout=30))
    assert [group.group_id for group in groups.valid] == []


NEED_METADATA = [
    ["status"],
    ["doctor"],
    ["topic", "list"],
    ["metadata", "stats"],
    ["metadata", "stuck"],
    ["explain", "orders:0@0"],
    ["estimate", "metadata"],
    ["orphans", "scan", "--store", "memory:", "--layout", "local"],
    ["verify", "--store", "memory:", "--layout", "local"],
    ["recover", "metadata", "--store", "memory:", "--layout", "local"],
]


def test_a_cluster_without_the_topic_is_reported_and_left_without_it(capfd: pytest.CaptureFixture[str]) -> None:
    properties = {"remote.log.storage.system.enable": "false", "auto.create.topics.enable": "true"}
    with KafkaBroker(jars_of("4.3.1"), properties=properties) as broker:
        code = run(["metadata", "segments", "--bootstrap-server", broker.bootstrap_server])

        err = capfd.readouterr().err
        assert code == 2
        assert METADATA_TOPIC in err
        assert "remote.log.storage.system.enable" in err
        assert METADATA_TOPIC not in topics_of(broker)

        create_topics(broker.bootstrap_server, NewTopic("_confluent-tier-state", 1, 1), NewTopic("orders", 1, 1))
        for words in NEED_METADATA:
            code = run([*words, "--bootstrap-server", broker.bootstrap_server])

            first, *rest = capfd.readouterr().err.splitlines()
            assert (code, "_confluent-tier-state" in first, len(rest) <= 2) == (2, True, True), words
        with closing(LiveCluster(broker.bootstrap_server)) as cluster, refused_with(ErrorCode.METADATA_NOT_HERE):
            demand_metadata_here(cluster)
        assert run(["offsets", "orders", "--bootstrap-server", broker.bootstrap_server]) == 0
