"""`recover indexes` and `heal` on real brokers: a consumer fails, or reads what was aborted; afterwards it reads what
it did before. What the command says of the brokers' caches is true."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.cli.command_line import Outcome
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.topics import TO_THE_END, answered
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

RELEASES = ("kafka_4", pytest.param("kafka_3", marks=pytest.mark.exhaustive))
CACHE_SIZE = "remote.log.index.file.cache.total.size.bytes"
BROKER_ID = "1"
WRONG_OFFSET_INDEX = struct.pack(">ii", 2, 1_000_000)
"""It passes a broker's own checks, and points after the end of every segment here."""
BEHIND_THE_FIRST_ENTRY = 3
DAMAGED = ("orders-0-*/*", "payments-0-*/*")
READ_SECONDS = 30
_ABORTED = struct.Struct(">hqqqq")
"""An entry of a transaction index: version, producer id, first and last offset, last stable offset."""

Record = tuple[int | None, bytes | None, bytes | None]


class ReadFailed(Exception):
    """A consumer got an error instead of a record."""


@dataclass(frozen=True)
class TieredSegment:
    """A segment of partition 0 of a topic, of which no broker has the log any more."""

    driven: DrivenBroker
    log: Path
    first_read: int
    """Where readers begin."""

    @property
    def segment_id(self) -> str:
        return self.log.name[21:43]

    def part(self, suffix: str) -> Path:
        return self.log.with_name(self.log.name.removesuffix("log") + suffix)

    def cached(self) -> list[str]:
        """The file names that a broker's cache has for it."""
        cache = self.driven.broker.log_dir / "remote-log-index-cache"
        return sorted(path.name for path in cache.glob(f"*_{self.segment_id}.*index"))


@pytest.fixture(params=RELEASES)
def driven(request: pytest.FixtureRequest) -> Iterator[DrivenBroker]:
    """What is damaged of its remote store is the same afterwards, and its cache empty."""
    found: DrivenBroker = request.getfixturevalue(request.param)
    store = found.broker.remote_dir
    # Not all of it: the broker may still be removing another test's topic, whose objects must not come back.
    files = {path: path.read_bytes() for pattern in DAMAGED for path in store.glob(pattern)}
    noted = (store / ".tieredctl").exists()
    yield found
    if not noted:
        shutil.rmtree(store / ".tieredctl", ignore_errors=True)
    for path, data in files.items():
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    forget_cache(found)


@pytest.fixture
def orders(driven: DrivenBroker) -> TieredSegment:
    return segment(driven, "orders-0-*/*.log", number=1)


@pytest.fixture
def payments(driven: DrivenBroker) -> TieredSegment:
    """One that says that a transaction was aborted, read with its records: those may lie in the segment before."""
    index = segment(driven, "payments-0-*/*.txnindex", number=0).log
    _, _, first_aborted, *_ = _ABORTED.unpack_from(index.read_bytes())
    return TieredSegment(driven, index.with_name(index.name.removesuffix("txnindex") + "log"), first_aborted)


def segment(driven: DrivenBroker, pattern: str, number: int) -> TieredSegment:
    """A segment that is not cached."""
    forget_cache(driven)
    log = sorted(driven.broker.remote_dir.glob(pattern))[number]
    return TieredSegment(driven, log, int(log.name[:20]) + BEHIND_THE_FIRST_ENTRY)


def forget_cache(driven: DrivenBroker) -> None:
    """What the command advises for a broker that runs."""
    admin = AdminClient({"bootstrap.servers": driven.broker.bootstrap_server, "log_level": 0})
    cache = driven.broker.log_dir / "remote-log-index-cache"
    normal = cache_size(admin)
    alter_cache_size(admin, AlterConfigOpType.SET)
    wait_until(lambda: cache_size(admin) == "1", "the cache has no room", 30)
    wait_until(lambda: not any(cache.glob("*index")), "the cache is empty", 30)
    alter_cache_size(admin, AlterConfigOpType.DELETE)
    # Until then Kafka 3.9 evicts an index before it can be used.
    wait_until(lambda: cache_size(admin) == normal, "the cache has its size again", 30)


def cache_size(admin: AdminClient) -> str | None:
    """What is in force."""
    asked = ConfigResource(ResourceType.BROKER, BROKER_ID)
    told = answered(lambda: admin.describe_configs([asked])[asked].result(timeout=30))
    value: str | None = told[CACHE_SIZE].value
    return value


def alter_cache_size(admin: AdminClient, operation: AlterConfigOpType) -> None:
    entry = ConfigEntry(CACHE_SIZE, "1", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, BROKER_ID, incremental_configs=[entry])
    answered(lambda: admin.incremental_alter_configs([resource])[resource].result(timeout=30))


def records(segment: TieredSegment, topic: str) -> list[Record]:
    """What a consumer with read_committed gets of partition 0, from there to the end."""
    settings = {
        "bootstrap.servers": segment.driven.broker.bootstrap_server,
        "group.id": "recover-indexes",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        **TO_THE_END,
        "log_level": 0,
    }
    read: list[Record] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, segment.first_read)])
        while True:
            message = consumer.poll(READ_SECONDS)
            assert message is not None
            error = message.error()
            if error is None:
                read.append((message.offset(), message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                return read
            else:
                raise ReadFailed(str(error))


def recover(segment: TieredSegment, capfd: pytest.CaptureFixture[str], *words: str) -> Outcome:
    broker = segment.driven.broker
    where = ("--bootstrap-server", broker.bootstrap_server, "--store", f"file:{broker.remote_dir}", "-o", "json")
    code = run(["recover", "indexes", segment.segment_id, *where, *words])
    return Outcome(code, *capfd.readouterr())


def mend(segment: TieredSegment, capfd: pytest.CaptureFixture[str]) -> Outcome:
    return recover(segment, capfd, "--apply", "--yes", "--cluster-id", segment.driven.broker.cluster_id)


def test_a_wrong_index_that_a_broker_has_cached_is_mended_and_forgotten(
    orders: TieredSegment, capfd: pytest.CaptureFixture[str]
) -> None:
    expected, index = records(orders, "orders"), orders.part("index").read_bytes()
    forget_cache(orders.driven)
    orders.part("index").write_bytes(WRONG_OFFSET_INDEX)
    with pytest.raises(ReadFailed):
        records(orders, "orders")

    planned, outcome = recover(orders, capfd), mend(orders, capfd)

    assert (planned.exit_code, outcome.exit_code) == (3, 0), outcome.err
    assert orders.part("index").read_bytes() == index
    assert outcome.document()["summary"]["brokerCache"]["files"] == orders.cached()
    with pytest.raises(ReadFailed):  # the broker continues with what it has cached
        records(orders, "orders")
    for name in outcome.document()["summary"]["brokerCache"]["files"]:
        (orders.driven.broker.log_dir / "remote-log-index-cache" / name).unlink()
    with pytest.raises(ReadFailed):  # deleting the files while it runs does nothing
        records(orders, "orders")
    forget_cache(orders.driven)
    assert records(orders, "orders") == expected


def test_an_index_that_is_missing_is_put_back_and_read_at_once(
    orders: TieredSegment, capfd: pytest.CaptureFixture[str]
) -> None:
    expected, index = records(orders, "orders"), orders.part("timeindex").read_bytes()
    forget_cache(orders.driven)
    orders.part("timeindex").unlink()
    with pytest.raises(ReadFailed):
        records(orders, "orders")

    outcome = mend(orders, capfd)

    assert outcome.exit_code == 0, outcome.err
    assert orders.part("timeindex").read_bytes() == index
    assert records(orders, "orders") == expected


@pytest.mark.parametrize(
    "left", [pytest.param(None, id="missing"), pytest.param(31, id="cut", marks=pytest.mark.exhaustive)]
)
def test_without_its_transaction_index_aborted_records_are_read_until_it_is_mended(
    payments: TieredSegment, capfd: pytest.CaptureFixture[str], left: int | None
) -> None:
    expected, index = records(payments, "payments"), payments.part("txnindex").read_bytes()
    forget_cache(payments.driven)
    payments.part("txnindex").unlink()
    if left is not None:
        payments.part("txnindex").write_bytes(index[:left])
    assert len(records(payments, "payments")) > len(expected)  # and the broker says nothing

    outcome = mend(payments, capfd)

    assert outcome.exit_code == 0, outcome.err
    assert payments.part("txnindex").read_bytes() == index
    assert len(records(payments, "payments")) > len(expected)
    forget_cache(payments.driven)
    assert records(payments, "payments") == expected


def test_producer_snapshots_are_rebuilt_from_those_before(
    payments: TieredSegment, capfd: pytest.CaptureFixture[str]
) -> None:
    snapshot = payments.part("snapshot").read_bytes()
    payments.part("snapshot").unlink()

    outcome = mend(payments, capfd)

    assert outcome.exit_code == 0, outcome.err
    assert payments.part("snapshot").read_bytes() == snapshot
    assert recover(payments, capfd).exit_code == 0


def test_a_log_that_was_lost_is_served_again_after_it_came_back_from_a_replicas_disk(
    orders: TieredSegment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And its index and leader epochs, which were lost with it: nothing of what Kafka wrote is other afterwards."""
    broker = orders.driven.broker
    expected = records(orders, "orders")
    parts = [orders.log, orders.part("index"), orders.part("leader_epoch_checkpoint")]
    written = {path: path.read_bytes() for path in parts}
    replica = tmp_path / "replica" / "orders-0"
    replica.mkdir(parents=True)
    shutil.copy(broker.log_dir / "orders-0" / "partition.metadata", replica)
    (replica / f"{orders.log.name[:20]}.log").write_bytes(written[orders.log])
    forget_cache(orders.driven)
    for path in parts:
        path.unlink()
    with pytest.raises(ReadFailed):
        records(orders, "orders")

    where = ("--bootstrap-server", broker.bootstrap_server, "--store", f"file:{broker.remote_dir}", "-o", "json")
    confirmed = ("--apply", "--yes", "--cluster-id", broker.cluster_id)
    code = run(["heal", "--segment-id", orders.segment_id, *where, "--from-log-dir", str(replica.parent), *confirmed])

    assert code == 0, capfd.readouterr().err
    assert {path: path.read_bytes() for path in parts} == written
    assert records(orders, "orders") == expected
