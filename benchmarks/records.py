"""The suite `records`: a topic's records read from remote storage, against consumers of the same records on a local
broker. A consumer's CPU time is its own and the broker's."""

from __future__ import annotations

import json
import os
import random
import shutil
import string
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from benchmarks.distant_server import DistantServer, distant
from benchmarks.measure import Contender, python, race
from benchmarks.remote_segment import BENCH_TOPIC, remote_segments
from benchmarks.results import Row, compared, within
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.maven import KafkaJars, java_command
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, versitygw
from tests.rigs.remote_segments import COPIED, RemoteSegments
from tests.rigs.segment_generator import generate_segment
from tests.rigs.tools import console_consumer_class
from tests.rigs.topics import admin_client, answered, create_topics
from tests.rigs.waiting import wait_until

RECORDS = 250_000
VALUE_BYTES = 1_024
_VALUES = 10_007
_REPETITIONS = 3
_CODECS = ("none", "lz4", "zstd")
_BATCH_BYTES = 16_384
"""A producer's default."""
_WITH_BOTH = "with-keys-and-headers"
_HEADERS: list[tuple[str, str | bytes | None]] = [
    ("trace-id", b"4bf92f3577b34da6a3ce929d0e0e4736"),
    ("content-type", b"application/json"),
]
_GOAL_OF_CPU, _GOAL_OF_CONSOLE, _GOAL_OF_HEADERS = 0.8, 10.0, 0.75
_GOAL_FROM_AFAR = 0.8
SEGMENT_BYTES, DISTANCE_SECONDS, MOST_MEGABYTES = 1 << 30, 0.03, 300
_SECONDS = 120
_CALM = {"remote.log.manager.task.interval.ms": "5000", "log.retention.check.interval.ms": "300000"}
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class _Broker(KafkaBroker):
    """With the compiler and the collector of a broker that serves, not of one that starts quickly."""

    java_options = ("-XX:+UseG1GC",)


@dataclass
class _OfBroker(Contender):
    """A consumer: what the broker took meanwhile counts as its own."""

    broker: int = field(kw_only=True)
    """The broker's process."""

    def run(self) -> None:
        before = _cpu_of(self.broker)
        super().run()
        self.runs[-1] = replace(self.runs[-1], cpu=self.runs[-1].cpu + _cpu_of(self.broker) - before)


@dataclass(frozen=True)
class _Starts:
    """What each takes for a single record."""

    perf: Contender
    console: Contender
    ours: Contender


def records_rows(folder: Path, jars: KafkaJars) -> list[Row]:
    """All rows; the topics are made one after the other."""
    rows = [*_from_afar(folder)]
    with _Broker(jars, properties=_CALM) as broker:
        topic = _filled(broker, _CODECS[0], with_both=False)
        starts = _Starts(_perf_test(broker, topic, 1), _console(broker, topic, 1), _ours(broker, topic, 1))
        race(starts.perf, starts.console, starts.ours, repetitions=_REPETITIONS)
        for codec in _CODECS:
            topic = topic if codec == _CODECS[0] else _filled(broker, codec, with_both=False)
            rows += _against_consumers(broker, topic, _filled(broker, codec, with_both=True), starts)
    return rows


def _against_consumers(broker: KafkaBroker, topic: str, full_topic: str, starts: _Starts) -> Iterator[Row]:
    perf, console, ours = (make(broker, topic, RECORDS) for make in (_perf_test, _console, _ours))
    kcat = [_kcat(broker, topic)] if shutil.which("kcat") else []
    full = _ours(broker, full_topic, RECORDS)
    full.name += ", with keys and headers"
    race(perf, console, *kcat, ours, full, repetitions=_REPETITIONS)
    whole = [perf, console, *kcat, ours, full]
    notes = {one.name: f"{one.median('megabytes'):.0f} MB" for one in whole}
    title = f"{RECORDS:,} records of 1 KB, {topic}"
    yield from compared(f"{title}: user and system time, start and all", whole, "cpu", "s", {}, notes)
    sizes = {one.name: _log_bytes(broker, topic) for one in whole} | {full.name: _log_bytes(broker, full_topic)}
    later = [_after(starts.perf, perf), _after(starts.console, console), *kcat]
    later += [_after(starts.ours, ours), _after(starts.ours, full)]
    perf, console, *kcat, ours, full = later
    title += ": user and system time after the start"
    notes = {one.name: _rate(one, sizes[one.name]) for one in later}
    if not kcat:
        notes[console.name] += "; kcat is not on the PATH"
    goals = {ours.name: _GOAL_OF_CPU}
    yield from compared(title, [perf, console, *kcat, ours], "cpu", "s", goals, notes)
    yield from compared(f"{title}, against the console", [console, ours], "cpu", "s", {ours.name: _GOAL_OF_CONSOLE}, {})
    goals = {full.name: _GOAL_OF_HEADERS}
    yield from compared(f"{title}, of keys and headers", [ours, full], "cpu", "s", goals, notes)


def _after(start: Contender, contender: Contender) -> Contender:
    """The same without what a single record takes."""
    wall, cpu = start.median("wall"), start.median("cpu")
    runs = [replace(run, wall=run.wall - wall, cpu=run.cpu - cpu) for run in contender.runs]
    return Contender(contender.name, contender.command, runs=runs)


def _from_afar(folder: Path) -> Iterator[Row]:
    """A segment in S3: on this machine, and as if it were 30 ms away."""
    os.environ.update(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    with versitygw() as server:
        segment = generate_segment(folder / "segment", SEGMENT_BYTES)
        remote = remote_segments(server.data, [segment])
        port = urlsplit(server.endpoint).port or 0
        with distant(port, 0) as near, distant(port, DISTANCE_SECONDS) as far:

            def reading(name: str, place: DistantServer, *words: str) -> Contender:
                where = (remote.log_dir, f"s3://{remote.store.name}", BENCH_TOPIC, "--endpoint", place.endpoint)
                return Contender(name, python("read_records", *where, *words))

            starts = [reading("start", place, "--end", "1") for place in (near, far)]
            beside, ahead = reading("on this machine", near), reading("30 ms a request", far)
            behind = reading("30 ms a request, none ahead", far, "--one-at-a-time")
            race(*starts, beside, ahead, behind, repetitions=_REPETITIONS)
    title = f"1 GiB of records in S3, {segment.records:,}"
    later = [_after(starts[0], beside), _after(starts[1], ahead), _after(starts[1], behind)]
    notes = {one.name: f"{remote.bytes / one.median('wall') / 1e6:,.0f} MB a second" for one in later}
    yield from compared(f"{title}: time after the start", later, "wall", "s", {ahead.name: _GOAL_FROM_AFAR}, notes)
    note = f"{starts[1].median('megabytes'):.0f} MB for a single record"
    yield within(f"{title}: peak memory, against {MOST_MEGABYTES} MB", ahead, "megabytes", "MB", MOST_MEGABYTES, note)


def _ours(broker: KafkaBroker, topic: str, records: int) -> Contender:
    words = (broker.log_dir, f"file:{broker.remote_dir}", topic, "--end", str(records))
    return Contender("tieredctl.records", python("read_records", *words))


def _perf_test(broker: KafkaBroker, topic: str, records: int) -> Contender:
    words = ("--topic", topic, "--num-records", str(records), "--bootstrap-server", broker.bootstrap_server)
    command = _tool(broker.jars, "org.apache.kafka.tools.ConsumerPerformance", *words)
    return _OfBroker("kafka-consumer-perf-test", command, broker=broker.process_id)


def _console(broker: KafkaBroker, topic: str, records: int) -> Contender:
    words = ("--topic", topic, "--from-beginning", "--max-messages", str(records))
    server = ("--bootstrap-server", broker.bootstrap_server)
    command = _tool(broker.jars, console_consumer_class(broker.jars), *words, *server)
    return _OfBroker("kafka-console-consumer", command, broker=broker.process_id)


def _kcat(broker: KafkaBroker, topic: str) -> Contender:
    words = ["kcat", "-C", "-q", "-b", broker.bootstrap_server, "-t", topic, "-o", "beginning", "-c", str(RECORDS)]
    return _OfBroker("kcat", words, broker=broker.process_id)


def _tool(jars: KafkaJars, class_name: str, *words: str) -> list[str]:
    """A consumer as Kafka's own scripts start it (kafka-consumer-perf-test.sh, kafka-run-class.sh)."""
    options = ("-Xmx512M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return [java_command(), *options, quiet, "-cp", jars.class_path, class_name, *words]


def _filled(broker: KafkaBroker, codec: str, *, with_both: bool) -> str:
    """Makes a topic, and its records, of which one segment in remote storage has all."""
    topic = f"{codec}-{_WITH_BOTH}" if with_both else codec
    config = {"remote.storage.enable": "true", "segment.bytes": str(1 << 30)}
    create_topics(broker.bootstrap_server, NewTopic(topic, 1, 1, config=config))
    settings: dict[str, str | int] = {"bootstrap.servers": broker.bootstrap_server, "compression.type": codec}
    producer = Producer(settings | {"batch.size": _BATCH_BYTES, "linger.ms": 20, "enable.idempotence": "true"})
    draw = random.Random(1)
    values = [_value(draw, number) for number in range(_VALUES)]
    for number in range(RECORDS):
        key = f"customer-{number % 7_919:08}".encode() if with_both else None
        while producer.poll(0) or len(producer) > 50_000:
            producer.poll(0.1)
        producer.produce(topic, values[number % _VALUES], key, headers=_HEADERS if with_both else None)
    producer.flush()
    _roll(broker, topic, producer)
    return topic


def _value(draw: random.Random, number: int) -> bytes:
    """The beginning of an order in JSON, which zstd compresses to about a third."""
    lines = [
        {"sku": f"{draw.getrandbits(40):010x}", "name": draw.choice(_NAMES), "quantity": draw.randint(1, 9)}
        for _ in range(16)
    ]
    order = {"order": number, "customer": f"{draw.getrandbits(64):016x}", "lines": lines}
    return json.dumps(order).encode()[:VALUE_BYTES]


_NAMES = ["".join(random.Random(number).choices(string.ascii_lowercase, k=12)) for number in range(500)]


def _roll(broker: KafkaBroker, topic: str, producer: Producer) -> None:
    """Lets the active segment end before one more record, and waits until it is in remote storage.

    A broker may take a record before it has the new setting: each look appends another one.
    """
    admin = admin_client(broker.bootstrap_server)
    entry = ConfigEntry("segment.bytes", str(1 << 20), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    answered(lambda: admin.incremental_alter_configs([resource])[resource].result(timeout=30))
    with RemoteSegments(broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as segments:

        def is_copied() -> bool:
            producer.produce(topic, b"")
            producer.flush()
            segments.refresh()
            return any(segment.state == COPIED for segment in segments.of_topic(topic))

        wait_until(is_copied, f"{topic} is in remote storage", _SECONDS)


def _log_bytes(broker: KafkaBroker, topic: str) -> int:
    """Of the topic's segments in remote storage."""
    return sum(log.stat().st_size for log in broker.remote_dir.glob(f"{topic}-0-*/*.log"))


def _rate(contender: Contender, size: int) -> str:
    seconds = contender.median("cpu")
    rate, megabytes = RECORDS / seconds, RECORDS * VALUE_BYTES / seconds / 1e6
    return f"{rate:,.0f} records and {megabytes:,.0f} MB of values a second of CPU, of {size / 1e6:,.0f} MB stored"


def _cpu_of(process: int) -> float:
    """Seconds of user and system time."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
