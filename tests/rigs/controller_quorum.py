"""A broker whose cluster has three controllers, of which any may die."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from .broker import KafkaBroker
from .maven import KafkaJars
from .ports import accepts_connections, free_ports
from .waiting import wait_until

_BROKER_ID = 1
_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
_SECONDS = 60


class Controller(KafkaBroker):
    """A node that is a controller, and no broker."""

    def __init__(self, jars: KafkaJars, node_id: int, port: int, cluster_id: str, voters: str) -> None:
        listener = f"CONTROLLER://localhost:{port}"
        super().__init__(
            jars,
            controller_port=port,
            properties={
                "process.roles": "controller",
                "node.id": str(node_id),
                "listeners": listener,
                "advertised.listeners": listener,
                "controller.quorum.voters": voters,
            },
        )
        self.cluster_id = cluster_id
        self._port = port

    def _is_ready(self) -> bool:
        return self.running and accepts_connections(self._port)


@dataclass(frozen=True)
class Quorum:
    """A broker, which votes, and two controllers next to it."""

    broker: KafkaBroker
    controllers: Mapping[int, Controller]

    def active_controller(self) -> int:
        """The node id of the controller that leads."""
        said = self.broker.tool(_QUORUM, "--bootstrap-server", self.broker.bootstrap_server, "describe", "--status")
        found = re.search(r"LeaderId:\s+(\d+)", said.stdout)
        assert found is not None, said
        return int(found[1])


@contextmanager
def controller_quorum(jars: KafkaJars) -> Iterator[Quorum]:
    """Led by one of the two controllers: they vote before the broker is there."""
    ports = dict(zip((_BROKER_ID, 2, 3), free_ports(3), strict=True))
    voters = ",".join(f"{node_id}@localhost:{port}" for node_id, port in ports.items())
    broker = KafkaBroker(jars, controller_port=ports[_BROKER_ID], properties={"controller.quorum.voters": voters})
    controllers = {
        node_id: Controller(jars, node_id, port, broker.cluster_id, voters)
        for node_id, port in ports.items()
        if node_id != _BROKER_ID
    }
    try:
        for controller in controllers.values():
            controller.start()
        with broker:
            quorum = Quorum(broker, controllers)
            wait_until(lambda: quorum.active_controller() in controllers, "a controller leads", _SECONDS)
            yield quorum
    finally:
        for controller in controllers.values():
            controller.dispose()
