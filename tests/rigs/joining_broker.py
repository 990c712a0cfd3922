"""More brokers, which join the cluster of a running one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from .broker import KafkaBroker
from .maven import java_command
from .tools import ToolFailed

NODE_ID = 2
_REASSIGNMENT = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class JoiningBroker(KafkaBroker):
    """A broker of another's cluster, the second unless its id is given, without a controller. It shares the other's
    remote storage, and holds nothing."""

    def __init__(self, first: KafkaBroker, properties: Mapping[str, str] | None = None, node_id: int = NODE_ID) -> None:
        super().__init__(first.jars)
        self.cluster_id = first.cluster_id
        self.node_id = node_id
        self._first = first
        self._extra_properties = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": first.controller_quorum_voters,
            "listeners": f"PLAINTEXT://{self.bootstrap_server}",
            "rsm.config.dir": str(first.remote_dir.parent),
            **(properties or {}),
        }

    def follow(self, *topics: str) -> None:
        """Becomes the second replica of each topic's partition 0, which the first broker leads."""
        wanted = [{"topic": topic, "partition": 0, "replicas": [1, NODE_ID]} for topic in topics]
        plan = self.work_dir / "reassignment.json"
        plan.write_text(json.dumps({"version": 1, "partitions": wanted}), encoding="utf-8")
        done = self._first.tool(_REASSIGNMENT, "--reassignment-json-file", str(plan), "--execute")
        if done.returncode:
            raise ToolFailed(f"{_REASSIGNMENT} ended with {done.returncode}: {done.stderr or done.stdout}")

    def objects_on_heap(self, class_name: str) -> int:
        """How many objects of a class are alive in the broker's JVM, by its own histogram."""
        assert self._process is not None
        asked = [java_command("jcmd"), str(self._process.pid), "GC.class_histogram"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        lines = (line.split() for line in told.splitlines())
        return next((int(words[1]) for words in lines if class_name in words), 0)

    def _is_ready(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self._first.bootstrap_server, "log_level": 0})
        try:
            return self.node_id in admin.list_topics(timeout=5).brokers
        except KafkaException:
            return False
