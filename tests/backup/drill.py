"""Three brokers whose disks are lost and come back from the bucket: what is in them before and after."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome, this_process
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC
from tests.rigs.driven_brokers import jars_of
from tests.rigs.remote_segments import COPIED, RemoteSegments
from tests.rigs.three_brokers import Node, ThreeBrokers, three_brokers
from tests.rigs.topics import admin_client, answered, create_topics, delete_topic
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode

SECONDS = 60
ORDERS, LEDGER, CLICKS, NOTES = "orders", "ledger", "clicks", "notes"
GONE, TRIMMED = "gone", "trimmed"
GROUPS = ("billing", "grüße")
FAR = 1_000_000
_TIERED = {"remote.storage.enable": "true", "segment.ms": "400", "local.retention.ms": "500", "retention.ms": "-1"}
_EXPIRES = _TIERED | {"retention.ms": "6000"}
Topics = Mapping[str, tuple[int, Mapping[str, str]]]
"""By name, how many partitions a topic has, and its settings."""
FOUR: Topics = {ORDERS: (2, _TIERED), LEDGER: (1, _TIERED), CLICKS: (1, _EXPIRES), NOTES: (1, {})}
TWELVE: Topics = {
    **FOUR,
    **dict.fromkeys(("payments", "returns", f"{LEDGER}-audit", f"{LEDGER}-fees", GONE, TRIMMED), (1, _TIERED)),
    "views": (2, _EXPIRES),
    "drafts": (1, {"cleanup.policy": "compact"}),
}
"""With two from which something is deleted while it lives: GONE as a whole, of TRIMMED its first records."""
Rows = dict[tuple[str, int], tuple[int, int, list[tuple[Any, ...]]]]
"""By partition: where its log begins and ends, and the records that a consumer gets, in order."""


def expires(topics: Topics, name: str) -> bool:
    """Whether the first records of a topic go, by retention or at a word."""
    return name == TRIMMED or ("retention.ms" in topics[name][1] and topics[name][1]["retention.ms"] != "-1")


def rows(server: str, topics: Topics, isolation: str) -> Rows:
    settings: dict[str, Any] = {"bootstrap.servers": server, "group.id": "reader", "isolation.level": isolation}
    settings["auto.offset.reset"] = "earliest"  # retention goes on
    with closing(Consumer(settings | {"enable.auto.commit": False, "enable.partition.eof": True})) as consumer:
        places = [TopicPartition(topic, number) for topic, (count, _) in topics.items() for number in range(count)]
        ends = {(one.topic, one.partition): consumer.get_watermark_offsets(one, timeout=30) for one in places}
        found: dict[tuple[str, int], list[tuple[Any, ...]]] = {place: [] for place in ends}
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in ends])
        left = set(ends)

        def all_read() -> bool:
            for message in consumer.consume(500, 0.2):
                place = str(message.topic()), int(message.partition() or 0)
                if (error := message.error()) is None:
                    content = (message.key(), message.value(), message.timestamp(), message.headers())
                    found[place].append((message.offset(), *content))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(place)
                else:  # what expired after the set was made, until a restored broker's retention has seen it
                    assert (expires(topics, place[0]), error.code()) == (True, KafkaError.UNKNOWN), error
            return not left

        wait_until(all_read, "a consumer has read everything", SECONDS)
    return {place: (*ends[place], found[place]) for place in ends}


def both(drill: Drill) -> dict[str, Rows]:
    kinds = ("read_uncommitted", "read_committed")
    return {isolation: rows(drill.server, drill.topics, isolation) for isolation in kinds}


def produce_until(server: str, topics: Topics, stop: Event) -> None:
    """Plain records, and transactions over all ledgers, of which every other is aborted."""
    ledgers = [name for name in topics if name.startswith(LEDGER)]
    plain = Producer({"bootstrap.servers": server, "enable.idempotence": True, "linger.ms": 0})
    transactional = Producer({"bootstrap.servers": server, "transactional.id": "ledger", "linger.ms": 0})
    transactional.init_transactions(SECONDS)
    turn = 0
    while not stop.wait(0.12):
        turn += 1
        for topic in topics.keys() - ledgers:
            for partition in range(topics[topic][0]):
                plain.produce(topic, f"{topic} {turn}", str(turn), partition=partition, headers={"turn": str(turn)})
        plain.flush(SECONDS)
        transactional.begin_transaction()
        for ledger in ledgers:
            transactional.produce(ledger, f"entry {turn}", str(turn), partition=0)
        transactional.flush(SECONDS)
        (transactional.commit_transaction if turn % 2 else transactional.abort_transaction)(SECONDS)


def member(server: str, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": server, "group.id": group, "enable.auto.commit": False})


def commit(server: str, **offsets: int) -> None:
    for group in GROUPS:
        with closing(member(server, group)) as consumer:
            places = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
            consumer.commit(offsets=places, asynchronous=False)


def committed(server: str, *topics: str) -> list[dict[str, int]]:
    """Of each group."""
    found = []
    for group in GROUPS:
        with closing(member(server, group)) as consumer:
            places = consumer.committed([TopicPartition(topic, 0) for topic in topics], timeout=SECONDS)
            found.append({one.topic: one.offset for one in places})
    return found


def objects(bucket: Path) -> dict[str, str]:
    files = (path for path in bucket.rglob("*") if path.is_file())
    return {str(path.relative_to(bucket)): sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass
class Drill:
    brokers: ThreeBrokers
    sets: Path
    topics: Topics
    without_backup: bool = False

    @property
    def server(self) -> str:
        return self.brokers.bootstrap_servers

    @property
    def first(self) -> Node:
        return self.brokers.nodes[1]

    def backup(self) -> Outcome:
        return this_process(
            "backup", "run", "--bootstrap-server", self.server, "--to", f"file:{self.sets}", "-o", "json"
        )

    def restore(self, verb: str, *more: str) -> Outcome:
        nodes = [word for one in self.brokers.nodes.values() for word in _node_words(one)]
        source: tuple[str, ...] = ("--from", f"file:{self.sets}")
        if self.without_backup:
            source = ("--without-backup", "--metadata-partitions", str(METADATA_PARTITIONS))
        places = ("--store", f"file:{self.first.remote_dir}", "--cluster-id", self.first.cluster_id, "-o", "json")
        return this_process("restore", verb, *source, *places, *nodes, *more)

    def lose_disks(self) -> None:
        for node in self.brokers.nodes.values():
            node.kill()
        for node in self.brokers.nodes.values():
            for folder in node.folders:
                shutil.rmtree(folder)

    def come_back(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Restores and starts all nodes; the plan's items by partition."""
        before = objects(self.first.remote_dir)
        confirmed = ("--yes", "--accept-unknown") if self.without_backup else ("--yes",)
        expected = ExitCode.INCOMPLETE if self.without_backup else ExitCode.FINDINGS
        planned = self.restore("plan")
        assert planned.exit_code == expected, planned.err
        done = self.restore("apply", *confirmed)
        assert done.exit_code == expected, done.err
        again = self.restore("apply", *confirmed)
        assert again.document()["items"] == done.document()["items"] == planned.document()["items"]
        assert objects(self.first.remote_dir) == before
        for node in self.brokers.nodes.values():
            node.launch()
        for node in self.brokers.nodes.values():
            node.await_ready()
        self.brokers.await_whole()
        return {(one["topic"], one["partition"]): one for one in planned.document()["items"]}

    def tiered(self) -> set[str]:
        """The topics whose segments are copied."""
        return {name for name, (_, settings) in self.topics.items() if "remote.storage.enable" in settings}

    def are_all_tiered(self) -> bool:
        """Whether each of them has copied segments, and all together several."""
        copied = self.copied()
        return len(copied) > 6 and {topic for topic, _, _ in copied} >= self.tiered()

    def produce_into(self, *topics: str) -> None:
        """Returns once two segments of each are copied."""
        producer = Producer({"bootstrap.servers": self.server, "linger.ms": 0})

        def are_copied() -> bool:
            for topic in topics:
                producer.produce(topic, b"early", b"early", partition=0)
            producer.flush(SECONDS)
            seen = [topic for topic, _, _ in self.copied()]
            return all(seen.count(topic) > 1 for topic in topics)

        wait_until(are_copied, "segments are copied that will be deleted", SECONDS)

    def delete_topic_and_records(self) -> None:
        """Deletes GONE, and the records of TRIMMED's first segment."""
        first = min(end for topic, _, end in self.copied() if topic == TRIMMED)
        beginning = TopicPartition(TRIMMED, 0, first + 1)
        admin = admin_client(self.server)  # which has to live until it has an answer
        admin.delete_records([beginning])[beginning].result(SECONDS)
        delete_topic(self.server, GONE)

    def end_expiry(self) -> None:
        """Has no record expire any more, and returns once each partition has segments since: a log of which remote
        storage lost all that a set promises does not come back by itself. Something has to be produced meanwhile."""
        known = self.copied()
        for topic in self.topics:
            if expires(self.topics, topic):
                alter_topic(self.server, topic, "retention.ms", "-1")
        places = {(topic, number) for topic in self.tiered() for number in range(self.topics[topic][0])}

        def all_copied() -> bool:
            return {place[:2] for place in self.copied() - known} >= places

        wait_until(all_copied, "segments are copied that do not expire", SECONDS)

    def copied(self) -> set[tuple[str, int, int]]:
        with RemoteSegments(self.server, METADATA_TOPIC, METADATA_PARTITIONS) as segments:
            return {(one.topic, one.partition, one.end_offset) for one in segments.refresh() if one.state == COPIED}


def _node_words(node: Node) -> Iterator[str]:
    yield from ("--node", f"{node.node_id}={','.join(map(str, node.log_dirs))}")
    if node.metadata_log_dir is not None:
        yield from ("--metadata-log-dir", f"{node.node_id}={node.metadata_log_dir}")


@contextmanager
def producing(drill: Drill) -> Iterator[None]:
    """Meanwhile something is produced into every topic."""
    stop = Event()
    thread = Thread(target=produce_until, args=(drill.server, drill.topics, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def new_drill(
    release: str, topics: Topics, folder: Path, *, log_dirs: int = 1, with_metadata_log_dir: Collection[int] = ()
) -> Iterator[Drill]:
    """Three brokers with these topics; sets are to be in `folder`."""
    with three_brokers(
        jars_of(release),
        {"offsets.topic.num.partitions": "7"},
        log_dirs=log_dirs,
        with_metadata_log_dir=with_metadata_log_dir,
    ) as brokers:
        new = [
            NewTopic(name, partitions, replication_factor=3, config=dict(config))
            for name, (partitions, config) in topics.items()
        ]
        create_topics(brokers.bootstrap_servers, *new)
        yield Drill(brokers, folder, topics)


def alter_topic(server: str, topic: str, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    answered(partial(_altered, admin_client(server), resource))


def _altered(admin: AdminClient, resource: ConfigResource) -> None:
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def demand_same_rows(
    topics: Topics, before: dict[str, Rows], after: dict[str, Rows], plan: Mapping[tuple[str, int], Mapping[str, Any]]
) -> None:
    tiered_for_ever = {name for name in topics if "retention.ms" in topics[name][1] and not expires(topics, name)}
    for isolation, then in before.items():
        for place, (start, _, records) in then.items():
            start_now, end_now, records_now = after[isolation][place]
            assert end_now == plan[place]["nextOffset"], (isolation, place)
            if place[0] in tiered_for_ever:
                assert start_now == start == 0, (isolation, place)
            elif records_now:
                start_now = records_now[0][0]
            else:
                start_now = end_now
            wanted = [one for one in records if start_now <= one[0] < end_now]
            if expires(topics, place[0]):  # also while the restored brokers are read: the reader goes on after a gap
                offsets_now = {one[0] for one in records_now}
                wanted = [one for one in wanted if one[0] in offsets_now]
            assert records_now == wanted, (isolation, place)


def produce_one_each(drill: Drill) -> dict[tuple[str, int], int]:
    producer = Producer({"bootstrap.servers": drill.server, "enable.idempotence": True})
    offsets: dict[tuple[str, int], int] = {}

    def note(error: KafkaError | None, message: Any) -> None:
        assert error is None
        offsets[message.topic(), message.partition()] = message.offset()

    for topic, (partitions, _) in drill.topics.items():
        for partition in range(partitions):
            producer.produce(topic, b"new", b"new", partition=partition, on_delivery=note)
    producer.flush(SECONDS)
    return offsets
