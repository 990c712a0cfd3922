"""A cluster of three nodes, each broker and controller in one, of which any one may die."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from .broker import KafkaBroker
from .maven import KafkaJars
from .ports import free_ports
from .topics import cluster_metadata, known_topics
from .waiting import wait_until

NODE_IDS = (1, 2, 3)
_WHOLE_SECONDS = 90


class Node(KafkaBroker):
    """One of the three. All share the first one's remote storage."""

    heap = "-Xmx512m"

    def __init__(
        self,
        jars: KafkaJars,
        node_id: int,
        controller_ports: Mapping[int, int],
        first: Node | None,
        properties: Mapping[str, str],
        extra_class_path: Sequence[Path],
        *,
        log_dirs: int,
        has_metadata_log_dir: bool,
    ) -> None:
        voters = ",".join(f"{node}@localhost:{port}" for node, port in controller_ports.items())
        super().__init__(
            jars,
            properties={"node.id": str(node_id), "controller.quorum.voters": voters, **properties},
            extra_class_path=extra_class_path,
            controller_port=controller_ports[node_id],
        )
        self.node_id = node_id
        self.log_dirs = [self.log_dir, *(self.work_dir / f"data-{number}" for number in range(2, log_dirs + 1))]
        self.metadata_log_dir = self.work_dir / "metadata" if has_metadata_log_dir else None
        self._extra_properties["log.dirs"] = ",".join(map(str, self.log_dirs))
        if self.metadata_log_dir is not None:
            self._extra_properties["metadata.log.dir"] = str(self.metadata_log_dir)
        if first is not None:
            self.cluster_id = first.cluster_id
            self._extra_properties["rsm.config.dir"] = str(first.remote_dir.parent)

    @property
    def folders(self) -> list[Path]:
        """All that it has on disks."""
        return [*self.log_dirs, *([] if self.metadata_log_dir is None else [self.metadata_log_dir])]

    def _is_ready(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_server, "log_level": 0})
        try:
            return self.node_id in admin.list_topics(timeout=5).brokers
        except KafkaException:
            return False


@dataclass(frozen=True)
class ThreeBrokers:
    """The running nodes by id."""

    nodes: Mapping[int, Node]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.bootstrap_server for node in self.nodes.values())

    def leader_of(self, topic: str, partition: int) -> int:
        """By a node that runs."""
        server = next(node.bootstrap_server for node in self.nodes.values() if node.running)
        return int(known_topics(server)[topic].partitions[partition].leader)

    def await_whole(self) -> None:
        """Returns once each node knows all of them, and that every partition's replicas are in sync."""
        for node in self.nodes.values():
            wait_until(partial(_knows_all_in_sync, node.bootstrap_server), "the cluster is whole", _WHOLE_SECONDS)


def _knows_all_in_sync(server: str) -> bool:
    cluster = cluster_metadata(server)
    partitions = (partition for topic in cluster.topics.values() for partition in topic.partitions.values())
    return cluster.brokers.keys() == set(NODE_IDS) and all(
        partition.leader >= 0 and set(partition.isrs) == set(partition.replicas) for partition in partitions
    )


@contextmanager
def three_brokers(
    jars: KafkaJars,
    properties: Mapping[str, str] | None = None,
    extra_class_path: Sequence[Path] = (),
    *,
    log_dirs: int = 1,
    with_metadata_log_dir: Collection[int] = (),
) -> Iterator[ThreeBrokers]:
    """Fresh nodes with so many log directories each, of which some have a folder of its own for the cluster's metadata.
    Internal topics and the metadata topic have three replicas."""
    replicas = {
        "offsets.topic.replication.factor": "3",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
        # So that brokers show how far they apply what the controllers write.
        "metadata.max.idle.interval.ms": "500",
    }
    ports = dict(zip(NODE_IDS, free_ports(len(NODE_IDS)), strict=True))
    nodes: dict[int, Node] = {}
    try:
        for node_id in NODE_IDS:
            nodes[node_id] = Node(
                *(jars, node_id, ports, nodes.get(NODE_IDS[0]), {**replicas, **(properties or {})}, extra_class_path),
                log_dirs=log_dirs,
                has_metadata_log_dir=node_id in with_metadata_log_dir,
            )
        for node in nodes.values():
            node.launch()
        for node in nodes.values():
            node.await_ready()
        brokers = ThreeBrokers(nodes)
        brokers.await_whole()
        yield brokers
    finally:
        for node in nodes.values():
            node.dispose()
