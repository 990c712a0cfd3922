"""A cluster's life in fast motion: everything that leaves a trace in tiered storage happens to one broker once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from .broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from .remote_segments import COPIED, DELETED, RemoteSegments
from .topics import TO_THE_END, create_topics, delete_topic, topic_ids
from .waiting import wait_until

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ROUNDS_BEFORE_RESTART = 7
ROUNDS_AFTER_RESTART = 3
# longer than segment.ms below, so that the next round begins with a roll
PAUSE_BETWEEN_ROUNDS_SECONDS = 0.5
SETTLE_SECONDS = 60
EXPIRED_AGE_MS = 48 * 3600 * 1000
RECORDS_A_BURST = 12

ORDERS, PAYMENTS, CLICKS, LEDGER, RETIRED, UNTIERED = (
    *("orders", "payments", "clicks.eu-west_1", "ledger", "retired", "untiered"),
)
_PARTITIONS = {ORDERS: 3, PAYMENTS: 2, CLICKS: 1, LEDGER: 1, RETIRED: 2, UNTIERED: 1}
_TIERED_WHOLE = (ORDERS, PAYMENTS, CLICKS)
_TIERED_QUICKLY = {"remote.storage.enable": "true", "segment.ms": "400", "local.retention.ms": "1000"}
_TOPIC_SETTINGS: Mapping[str, dict[str, str]] = {
    ORDERS: _TIERED_QUICKLY | {"retention.ms": "-1"},
    PAYMENTS: _TIERED_QUICKLY | {"retention.ms": "-1"},
    CLICKS: _TIERED_QUICKLY | {"retention.ms": str(EXPIRED_AGE_MS // 2)},
    # rolls by size only, thus across the restart: its first segment has two leader epochs
    LEDGER: {"remote.storage.enable": "true", "segment.bytes": str(1 << 20), "local.retention.ms": "-2"},
    RETIRED: _TIERED_QUICKLY | {"retention.ms": "-1"},
    UNTIERED: {},
}


@dataclass(frozen=True)
class DrivenTopic:
    """What was done to one topic. Counts are of records, control records not among them."""

    name: str
    topic_id: str
    partitions: int
    tiered: bool
    deleted: bool
    committed_records: Mapping[int, int]
    aborted_records: Mapping[int, int]


@dataclass(frozen=True)
class DrivenCluster:
    """What was done to a broker, and how its remote segments stood when nothing moved any more."""

    topics: Mapping[str, DrivenTopic]
    restarts: int
    segments_by_state: Mapping[str, int]


@dataclass
class _Tally:
    committed: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in _PARTITIONS})
    aborted: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in _PARTITIONS})


def drive(broker: KafkaBroker) -> DrivenCluster:
    """Put a fresh, running broker through a life, and return when it has come to rest; some 30 seconds.

    Rolls, the five compressions, plain and idempotent and transactional producers, transactions committed, aborted and
    open across several segments, tombstones and headers, retention in the remote store, local retention, a restart
    with a segment on either side of it, a deleted topic, one that was never tiered, and a consumer that reads what is
    remote. At rest every segment is copied or deleted for good, `orders`, `payments` and `clicks.eu-west_1` are in the
    remote store up to their ends and nowhere else, and the end of `ledger` is not.

    Raises DeadlineMissed when the broker does not get there. Kafka 3.8.1, 3.9.1 and 4.3.1 do; 3.6.2 does not.
    """
    topic_ids = _create_topics(broker)
    tally = _Tally()
    _live_through_rounds(broker, tally, ROUNDS_BEFORE_RESTART, expired_clicks=True)
    _fill_ledger(broker, tally, byte_count=400_000)
    _await_segments(broker, "all is tiered", lambda known: _settled(broker, known, *_TIERED_WHOLE, RETIRED))
    delete_topic(broker.bootstrap_server, RETIRED)
    # a copy that a restart interrupts stays in COPY_SEGMENT_STARTED for ever, so nothing may be under way
    _await_segments(broker, "retired is deleted", lambda known: _all_deleted(known, RETIRED) and _no_change_due(known))
    broker.restart()
    _live_through_rounds(broker, tally, ROUNDS_AFTER_RESTART, expired_clicks=False)
    _fill_ledger(broker, tally, byte_count=1_200_000)
    segments_by_state = _await_segments(broker, "the cluster is at rest", lambda known: _at_rest(broker, known))
    for topic in (ORDERS, PAYMENTS):
        _read_back(broker, topic, tally.committed[topic])
    topics = {
        name: DrivenTopic(
            name=name,
            topic_id=topic_ids[name],
            partitions=_PARTITIONS[name],
            tiered=name != UNTIERED,
            deleted=name == RETIRED,
            committed_records=dict(tally.committed[name]),
            aborted_records=dict(tally.aborted[name]),
        )
        for name in _PARTITIONS
    }
    return DrivenCluster(topics, restarts=1, segments_by_state=segments_by_state)


def _create_topics(broker: KafkaBroker) -> dict[str, str]:
    made = [
        NewTopic(name, num_partitions=count, replication_factor=1, config=_TOPIC_SETTINGS[name])
        for name, count in _PARTITIONS.items()
    ]
    create_topics(broker.bootstrap_server, *made)
    return topic_ids(broker.bootstrap_server, _PARTITIONS)


def _live_through_rounds(broker: KafkaBroker, tally: _Tally, rounds: int, *, expired_clicks: bool) -> None:
    producers = [
        _producer(broker, compression, idempotent=position % 2 == 1)
        for position, compression in enumerate(COMPRESSIONS)
    ]
    brief = _transactional_producer(broker, "brief")
    lasting = _transactional_producer(broker, "lasting")
    lasting_records: Counter[int] = Counter()
    lasting.begin_transaction()
    for number in range(rounds):
        last = number == rounds - 1
        for partition in range(_PARTITIONS[ORDERS]):
            # one compression a segment, and in the last segment all of them
            chosen = producers if last else [producers[(number + partition) % len(producers)]]
            for producer in chosen:
                tally.committed[ORDERS][partition] += _burst(producer, ORDERS, partition)
        timestamp_ms = int(time.time() * 1000) - (EXPIRED_AGE_MS if expired_clicks and not last else 0)
        tally.committed[CLICKS][0] += _burst(producers[4], CLICKS, 0, timestamp_ms)
        tally.committed[UNTIERED][0] += _burst(producers[0], UNTIERED, 0)
        if expired_clicks:
            for partition in range(_PARTITIONS[RETIRED]):
                tally.committed[RETIRED][partition] += _burst(producers[2], RETIRED, partition)
        for producer in producers:
            producer.flush(30)
        lasting_records[0] += _burst(lasting, PAYMENTS, 0)
        lasting.flush(30)
        _transaction(brief, tally, commit=number % 3 != 1)
        time.sleep(PAUSE_BETWEEN_ROUNDS_SECONDS)
    lasting.abort_transaction(30)
    tally.aborted[PAYMENTS] += lasting_records


def _transaction(producer: Producer, tally: _Tally, *, commit: bool) -> None:
    outcome = tally.committed if commit else tally.aborted
    producer.begin_transaction()
    for partition in range(_PARTITIONS[PAYMENTS]):
        outcome[PAYMENTS][partition] += _burst(producer, PAYMENTS, partition)
    # unflushed records of an aborted transaction never reach the broker
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def _fill_ledger(broker: KafkaBroker, tally: _Tally, *, byte_count: int) -> None:
    # batches so small that one fits behind what an earlier leader wrote
    producer = _producer(broker, "none", idempotent=True, batch_bytes=1 << 15)
    value = bytes(range(256)) * 16
    for position in range(byte_count // len(value)):
        producer.produce(LEDGER, value, key=str(position), partition=0)
        producer.poll(0)
        tally.committed[LEDGER][0] += 1
    producer.flush(30)


def _burst(producer: Producer, topic: str, partition: int, timestamp_ms: int = 0) -> int:
    """Queue records of several shapes, and give their number; with `timestamp_ms` 0 they carry the present time."""
    for position in range(RECORDS_A_BURST):
        producer.produce(
            topic,
            value=None if position == 5 else f"{topic}/{partition}/{position} ".encode() * (position + 1),
            key=None if position % 4 == 3 else f"key-{position}",
            partition=partition,
            timestamp=timestamp_ms,
            headers=[("round", b"\x00\x01"), ("empty", None)] if position == 7 else [],
        )
    return RECORDS_A_BURST


def _client_settings(broker: KafkaBroker) -> dict[str, str | int | float | bool]:
    """Where the broker is, and silence about retries, which are no news here."""
    return {"bootstrap.servers": broker.bootstrap_server, "log_level": 2}


def _consumer(broker: KafkaBroker) -> Consumer:
    return Consumer(
        {
            **_client_settings(broker),
            "group.id": "rig",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **TO_THE_END,
        }
    )


def _producer(broker: KafkaBroker, compression: str, *, idempotent: bool, batch_bytes: int = 1_000_000) -> Producer:
    return Producer(
        {
            **_client_settings(broker),
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "batch.size": batch_bytes,
            "linger.ms": 5,
        }
    )


def _transactional_producer(broker: KafkaBroker, name: str) -> Producer:
    producer = Producer(
        {
            **_client_settings(broker),
            "compression.type": "lz4",
            "transactional.id": name,
            "linger.ms": 5,
        }
    )
    producer.init_transactions(60)
    return producer


def _await_segments(
    broker: KafkaBroker, description: str, condition: Callable[[RemoteSegments], bool]
) -> dict[str, int]:
    """Wait for a condition on the remote segments, and give their number in each state."""
    with RemoteSegments(broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

        def holds() -> bool:
            known.refresh()
            return condition(known)

        wait_until(holds, description, SETTLE_SECONDS, lambda: f"remote segments: {known.counts()}")
        return known.counts()


def _tiered_whole(broker: KafkaBroker, known: RemoteSegments, topic: str) -> bool:
    """Whether the remote store has every partition of `topic` up to its end."""
    tiered_ends = {
        partition: max(
            (
                segment.end_offset + 1
                for segment in known.of_topic(topic)
                if segment.partition == partition and segment.state == COPIED
            ),
            default=0,
        )
        for partition in range(_PARTITIONS[topic])
    }
    return tiered_ends == _end_offsets(broker, topic)


def _all_deleted(known: RemoteSegments, topic: str) -> bool:
    segments = known.of_topic(topic)
    return bool(segments) and all(segment.state == DELETED for segment in segments)


def _at_rest(broker: KafkaBroker, known: RemoteSegments) -> bool:
    return (
        _settled(broker, known, *_TIERED_WHOLE)
        and len(known.of_topic(LEDGER)) >= 1
        and all(_is_only_remote(broker, topic) for topic in _TIERED_WHOLE)
    )


def _settled(broker: KafkaBroker, known: RemoteSegments, *topics: str) -> bool:
    """Whether `topics` are tiered whole, what is past retention is gone, and no copy or deletion is under way."""
    expired = sum(segment.state == DELETED for segment in known.of_topic(CLICKS))
    return (
        _no_change_due(known)
        and expired >= ROUNDS_BEFORE_RESTART - 1
        and all(_tiered_whole(broker, known, topic) for topic in topics)
    )


def _no_change_due(known: RemoteSegments) -> bool:
    counts = known.counts()
    return counts["COPY_SEGMENT_STARTED"] == counts["DELETE_SEGMENT_STARTED"] == 0


def _end_offsets(broker: KafkaBroker, topic: str) -> dict[int, int]:
    with closing(_consumer(broker)) as consumer:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
            for number in range(_PARTITIONS[topic])
        }


def _read_back(broker: KafkaBroker, topic: str, expected: Counter[int]) -> None:
    """Consume a topic from its beginning, thus from the remote store, and see that every committed record is there."""
    read: Counter[int | None] = Counter()
    with closing(_consumer(broker)) as consumer:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(_PARTITIONS[topic])])

        def all_read() -> bool:
            read.update(message.partition() for message in consumer.consume(500, 0.2) if message.error() is None)
            return read == expected

        wait_until(all_read, f"{topic} reads back as {expected}", SETTLE_SECONDS, lambda: f"read: {read}")


def _is_only_remote(broker: KafkaBroker, topic: str) -> bool:
    """Whether local retention has taken all of a topic off the broker's disk, some time after it was copied."""
    try:
        return not any(log.stat().st_size for log in broker.log_dir.glob(f"{topic}-[0-9]*/*.log"))
    except FileNotFoundError:  # it takes one
        return False
