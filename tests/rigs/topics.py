"""Topics as the rigs make them and look at them: a connection that is lost meanwhile is not an outcome.

librdkafka drops its connection to a bootstrap server for one to a broker that it has learned of, and fails what was
under way there; so does a broker that dies or comes back. What a rig asks is asked again then, until a deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata, TopicMetadata
from confluent_kafka.cimpl import NewTopic

from .waiting import wait_until

SECONDS = 60
TO_THE_END: dict[str, bool | int] = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
"""A consumer is told where a partition ends, without the half second for which a broker waits for more."""
_ANSWER_SECONDS = 10
_PASSING = (KafkaError.NOT_CONTROLLER, KafkaError.REQUEST_TIMED_OUT, KafkaError.BROKER_NOT_AVAILABLE)

T = TypeVar("T")


def admin_client(bootstrap_servers: str) -> AdminClient:
    """A client that says nothing of its own."""
    return AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})


def create_topics(bootstrap_servers: str, *topics: NewTopic) -> None:
    """Makes topics, and returns once every broker that is named knows them and who leads their partitions.

    Raises KafkaException where the cluster refuses one, and DeadlineMissed.
    """
    servers = bootstrap_servers.split(",")
    wait_until(lambda: all(_live_brokers(one) >= len(servers) for one in servers), "all brokers are alive", SECONDS)
    admin, left, answer_lost = admin_client(bootstrap_servers), {topic.topic: topic for topic in topics}, False

    def all_made() -> bool:
        nonlocal answer_lost
        for name, created in admin.create_topics(list(left.values())).items():
            try:
                created.result(SECONDS)
            except KafkaException as refused:
                if is_passing(refused):
                    answer_lost = True
                    continue
                if not (answer_lost and _code(refused) == KafkaError.TOPIC_ALREADY_EXISTS):
                    raise
            del left[name]
        return not left

    wait_until(all_made, "the cluster makes the topics", SECONDS, lambda: f"left: {sorted(left)}")
    names = [topic.topic for topic in topics]
    wait_until(
        lambda: all(_has_leaders(known_topics(one), names) for one in servers),
        f"every broker knows {', '.join(names)}",
        SECONDS,
    )


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Deletes a topic, and returns once no broker that is named knows it; nothing happens where it is gone."""
    admin = admin_client(bootstrap_servers)

    def is_gone() -> bool:
        try:
            admin.delete_topics([name])[name].result(SECONDS)
        except KafkaException as refused:
            if is_passing(refused):
                return False
            if _code(refused) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        return True

    wait_until(is_gone, f"the cluster deletes {name}", SECONDS)
    # Until then a topic that is made again under this name would be taken for the one that is deleted.
    servers = bootstrap_servers.split(",")
    wait_until(
        lambda: all(name not in known_topics(one) for one in servers), f"every broker has forgotten {name}", SECONDS
    )


def known_topics(bootstrap_server: str) -> Mapping[str, TopicMetadata]:
    """The topics that a broker knows, internal ones among them."""
    return cluster_metadata(bootstrap_server).topics


def topic_ids(bootstrap_servers: str, names: Iterable[str]) -> dict[str, str]:
    """The topics' ids as Kafka spells them; librdkafka does it in the other base64."""
    admin, wanted = admin_client(bootstrap_servers), TopicCollection(list(names))
    described = answered(lambda: {name: told.result(SECONDS) for name, told in admin.describe_topics(wanted).items()})
    return {name: str(told.topic_id).replace("+", "-").replace("/", "_") for name, told in described.items()}


def cluster_metadata(bootstrap_server: str) -> ClusterMetadata:
    """The brokers and topics that a broker knows."""
    admin = admin_client(bootstrap_server)
    return answered(lambda: admin.list_topics(timeout=_ANSWER_SECONDS))


def answered(ask: Callable[[], T]) -> T:
    """The answer to a question that may be put twice.

    Raises KafkaException where the cluster refuses to answer, and DeadlineMissed.
    """
    answers: list[T] = []
    failures: list[str] = []

    def has_answer() -> bool:
        try:
            answers.append(ask())
        except KafkaException as refused:
            if not is_passing(refused):
                raise
            failures.append(str(refused))
        return bool(answers)

    wait_until(has_answer, "the cluster answers", SECONDS, lambda: f"last: {failures[-1]}")
    return answers[0]


def is_passing(refused: KafkaException) -> bool:
    """Whether it is the client's own failure, whose codes are negative, or that of a cluster that is not whole yet."""
    return _code(refused) < 0 or _code(refused) in _PASSING


def _code(refused: KafkaException) -> int:
    return int(refused.args[0].code())


def _live_brokers(server: str) -> int:
    return len(cluster_metadata(server).brokers)


def _has_leaders(known: Mapping[str, TopicMetadata], names: Iterable[str]) -> bool:
    return all(
        name in known
        and bool(known[name].partitions)
        and all(partition.leader >= 0 for partition in known[name].partitions.values())
        for name in names
    )
