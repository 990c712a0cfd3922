"""One real Kafka broker on this machine, with tiered storage on a local folder."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from .class_archives import archive_options, run_archiver
from .maven import JAVA_SOURCES, QUICK_JAVA, KafkaJars, compile_java, java_command
from .ports import accepts_connections, free_ports
from .secure_listeners import LISTENER_COUNT, SecureListeners, open_secure_listeners, scram_arguments
from .tools import METADATA_FORMATTER, console_consumer_class, run_tool, tool_output
from .waiting import DeadlineMissed, wait_until

METADATA_TOPIC = "__remote_log_metadata"
METADATA_PARTITIONS = 4
START_SECONDS = 90
STOP_SECONDS = 60
LOG_TAIL_LINES = 40
LOG_ERROR_LINES = 10

# what makes segments small, tiering quick and KRaft snapshots frequent
_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.storage.manager.class.path": "",
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.class.name": (
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    ),
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
    "remote.log.manager.task.interval.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.idle.interval.ms": "0",
}

OUTLASTS_PAUSES = {"broker.session.timeout.ms": "600000"}
"""For a broker that is paused: after 9 s its controller, which was paused too, would take it for dead, and every
partition would have no leader for a moment and another leader epoch. One that is killed starts again after so long."""


class BrokerFailed(Exception):
    """The broker did not start, did not stop, or is not running; the text ends with the tail of its log."""


class KafkaBroker:
    """A KRaft node, broker and controller in one, as a context manager.

    `with KafkaBroker(kafka_jars("4.3.1")) as broker:` starts it and, at the end, kills it and removes its folder. A
    `work_dir` that the caller gives stays. `properties` override the broker's own; `extra_class_path` adds folders or
    jars, for a RemoteStorageManager of the test's. With `secure=True` (Kafka 3.5 and later) the listeners SSL,
    SASL_PLAINTEXT and SASL_SSL stand next to the plain one: see `secure_listeners`.

    However the test process ends, the broker ends with it.
    """

    heap = "-Xmx1G"
    java_options: Sequence[str] = QUICK_JAVA

    def __init__(
        self,
        jars: KafkaJars,
        *,
        secure: bool = False,
        properties: Mapping[str, str] | None = None,
        extra_class_path: Sequence[Path] = (),
        work_dir: Path | None = None,
        controller_port: int | None = None,
    ) -> None:
        self.jars = jars
        self.cluster_id = _random_cluster_id()
        self.work_dir = work_dir or Path(tempfile.mkdtemp(prefix=f"kafka-{jars.version}-"))
        self.log_dir = self.work_dir / "data"
        self.remote_dir = self.work_dir / "remote" / "kafka-tiered-storage"
        self.server_log = self.work_dir / "server.log"
        self._remove_folder = weakref.finalize(self, shutil.rmtree, self.work_dir, ignore_errors=True)
        if work_dir is not None:
            self._remove_folder.detach()
            work_dir.mkdir(parents=True, exist_ok=True)
        self._secure = secure
        self._secure_listeners: SecureListeners | None = None
        self._extra_properties = dict(properties or {})
        self._extra_class_path = tuple(extra_class_path)
        self._process: subprocess.Popen[bytes] | None = None
        self._plain_port, self._controller_port, *self._secure_ports = free_ports(2 + LISTENER_COUNT * secure)
        self._controller_port = controller_port or self._controller_port

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.dispose()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dispose()

    @property
    def bootstrap_server(self) -> str:
        """The address of the plain listener."""
        return f"localhost:{self._plain_port}"

    @property
    def controller_address(self) -> str:
        """The address of the controller's listener."""
        return f"localhost:{self._controller_port}"

    @property
    def controller_quorum_voters(self) -> str:
        """Kafka's setting of that name, for brokers that join this one's cluster."""
        return f"1@localhost:{self._controller_port}"

    @property
    def secure_listeners(self) -> SecureListeners:
        """The guarded listeners, once a broker made with `secure=True` has been started."""
        if self._secure_listeners is None:
            raise BrokerFailed("this broker has no guarded listeners: make it with secure=True, and start it")
        return self._secure_listeners

    @property
    def running(self) -> bool:
        """Whether the broker's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def process_id(self) -> int:
        """The broker's, while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the broker, the first time on a freshly formatted folder, and wait until every partition has a leader.

        Raises BrokerFailed with the tail of its log.
        """
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start it without waiting, as nodes of one cluster that need each other are."""
        if self.running:
            raise BrokerFailed("the broker is running already")
        settings = self.work_dir / "server.properties"
        formatting = [] if settings.exists() else self._formatting(settings)
        guard = compile_java([JAVA_SOURCES / "GuardedBroker.java"], self.jars.class_path)
        class_path = os.pathsep.join([self.jars.class_path, str(guard), *map(str, self._extra_class_path)])
        with self.server_log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(java_command(), self.heap, *self.java_options, *self._class_options()),
                    *("-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", class_path, "GuardedBroker", str(settings)),
                    *formatting,
                ],
                cwd=self.work_dir,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        weakref.finalize(self, _end_process_group, self._process)

    def _class_options(self) -> list[str]:
        return _shared_classes(self.jars)

    def await_ready(self) -> None:
        """Wait until every partition has a leader. Raises BrokerFailed with the tail of its log."""
        try:
            wait_until(self._is_ready, "the broker serves every partition", START_SECONDS)
        except DeadlineMissed as missed:
            self.kill()
            raise BrokerFailed(f"Kafka {self.jars.version}: {missed}\n{self.log_tail()}") from missed

    def stop(self) -> None:
        """Shut the broker down in good order; raises BrokerFailed when it takes too long, and kills it then."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as expired:
            raise BrokerFailed(f"the broker did not stop in {STOP_SECONDS} s\n{self.log_tail()}") from expired
        finally:
            self.kill()

    def kill(self) -> None:
        """End the broker at once, as a crash would; nothing happens when it is not running."""
        if self._process is not None:
            _end_process_group(self._process)
            self._process = None

    def pause(self) -> None:
        """Let the broker hang: it accepts connections, and answers nothing until `go_on`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # Until then a thread of it may still answer.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        """End a pause; nothing happens where there was none."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop in good order and start again in the same place: every partition enters a new leader epoch."""
        self.stop()
        self.start()

    def dispose(self) -> None:
        """Kill the broker and remove its folder, unless the caller named the folder."""
        self.kill()
        self._remove_folder()

    def tool(self, class_name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of this Kafka version's command-line tools with `--bootstrap-server` of this broker put first."""
        return run_tool(self.jars, class_name, "--bootstrap-server", self.bootstrap_server, *arguments)

    def console_formatter(self, metadata_partition: int) -> str:
        """What Kafka's console consumer and RemoteLogMetadataFormatter print for a partition of the metadata topic.

        From its beginning to the end offset at the time of the call.
        """
        partition = TopicPartition(METADATA_TOPIC, metadata_partition)
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_server, "group.id": "rig", "enable.auto.commit": False}
        )
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=30)
        finally:
            consumer.close()
        if low == high:
            return ""
        return tool_output(
            self.jars,
            console_consumer_class(self.jars),
            *("--bootstrap-server", self.bootstrap_server, "--topic", METADATA_TOPIC),
            *("--partition", str(metadata_partition), "--offset", "earliest"),
            *("--max-messages", str(high - low), "--timeout-ms", "30000", "--formatter", METADATA_FORMATTER),
        )

    def log_tail(self) -> str:
        """The last lines of the broker's own log, and before them the last errors, which a shutdown pushes far up."""
        if not self.server_log.exists():
            return "(the broker wrote no log)"
        lines = self.server_log.read_text(errors="replace").splitlines()
        errors = [line for line in lines[:-LOG_TAIL_LINES] if " ERROR " in line or line.startswith("Caused by:")]
        return "\n".join([*errors[-LOG_ERROR_LINES:], *lines[-LOG_TAIL_LINES:]])

    def _formatting(self, settings: Path) -> list[str]:
        """Writes the settings; gives the arguments of Kafka's StorageTool that format a folder for them."""
        properties = dict(_PROPERTIES)
        listeners = [f"PLAINTEXT://{self.bootstrap_server}", f"CONTROLLER://localhost:{self._controller_port}"]
        arguments = ["format", "-t", self.cluster_id, "-c", str(settings)]
        if self._secure:
            self._secure_listeners, additions = open_secure_listeners(self._secure_ports, self.work_dir)
            listeners += self._secure_listeners.listeners
            properties |= additions
            arguments += scram_arguments()
        names = [listener.partition(":")[0] for listener in listeners]
        properties |= {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(
                f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in names
            ),
            "controller.quorum.voters": self.controller_quorum_voters,
            "log.dirs": str(self.log_dir),
            "rsm.config.dir": str(self.remote_dir.parent),
        }
        properties |= self._extra_properties
        settings.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
        return arguments

    def _is_ready(self) -> bool:
        if not self.running:
            raise BrokerFailed(f"Kafka {self.jars.version} ended while starting\n{self.log_tail()}")
        if not accepts_connections(self._plain_port):
            return False
        admin = AdminClient({"bootstrap.servers": self.bootstrap_server, "log_level": 0})
        try:
            cluster = admin.list_topics(timeout=5)
        except KafkaException:
            return False
        leaders = [partition.leader for topic in cluster.topics.values() for partition in topic.partitions.values()]
        return len(cluster.brokers) == 1 and all(leader >= 0 for leader in leaders)


def _random_cluster_id() -> str:
    """A random id as Kafka spells them: 22 characters of URL-safe base64, the first of them no dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _end_process_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


class _ListingBroker(KafkaBroker):
    """One that writes a list of the classes that it loads."""

    def __init__(self, jars: KafkaJars, classes: Path) -> None:
        super().__init__(jars)
        self._classes = classes

    def _class_options(self) -> list[str]:
        return [f"-XX:DumpLoadedClassList={self._classes}"]


@cache
def _shared_classes(jars: KafkaJars) -> list[str]:
    """Java's options for an archive of a broker's classes."""

    def make(archive: Path) -> None:
        classes = archive.with_name("classes.txt")
        with _ListingBroker(jars, classes):
            pass
        whole_lines = classes.read_text(encoding="utf-8").rpartition("\n")[0]  # it was killed while it wrote
        classes.write_text(f"{whole_lines}\n", encoding="utf-8")
        files = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}")
        words = [java_command(), "-Xshare:dump", *QUICK_JAVA, "-Xlog:disable", *files, "-cp", jars.class_path]
        run_archiver(words)

    return archive_options(f"kafka-{jars.version}", jars.class_path, make)
