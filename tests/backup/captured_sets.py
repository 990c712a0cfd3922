"""Backup sets of a captured cluster: what `backup run` reads of a live one is read from its files here."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.local_logs import log_dir_owner
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.kafka.metadata_log import MetadataLog, logged_records, snapshot_records
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.image_records import note_versions
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.model.ids import uuid_text
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.backup.key_pairs import read_recipients
from tieredctl.ops.backup.run import Backup, BackupRun
from tieredctl.ops.backup.sets import ClusterSets
from tieredctl.ports.cluster import CommittedOffset, ConfigValue, ListedOffset, OffsetSpec, TopicDescription
from tieredctl.storage.registry import open_writable_store

EPOCH = 2
CREATED_MS = 1_795_000_000_000
GROUP, COMMITTED = "billing", 5
LogEndsByPartition = Mapping[int, tuple[int | None, int | None]]
"""Where logs begin and end; None where their leaders do not say."""


def captured_state(data: Path) -> ClusterState:
    """The cluster by a node's metadata log."""
    log, replay, versions = MetadataLog.opened(data / "__cluster_metadata-0"), MetadataReplay(), dict[int, int]()
    start = 0
    if log.snapshots:
        newest = max(log.snapshots, key=lambda one: one.end_offset)
        replay.load_snapshot(note_versions(snapshot_records(newest), versions), newest.end_offset)
        start = newest.end_offset
    for batch in log.batches(start):
        replay.load_log(note_versions(logged_records(batch), versions))
    return ClusterState(replay.image, EPOCH, versions)


@dataclass
class CapturedCluster:
    """What a live cluster answers of its logs, groups and settings; `denied` are topics that the user may not see."""

    ids: Mapping[str, str]
    ends: Mapping[str, LogEndsByPartition]
    denied: Sequence[str] = ()
    has_groups: bool = False
    """Though the captured cluster had no topic of theirs."""

    def topic(self, name: str) -> TopicDescription:
        if name in self.denied:
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"The user may not look at topic {name}.")
        return TopicDescription(name, self.ids[name], ())

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        ends = self.ends.get(topic.topic, {})
        return {number: ListedOffset(one[timestamp == OffsetSpec.LATEST]) for number, one in ends.items()}

    def quorum(self) -> None:
        """May be asked."""

    def committed_offsets(self) -> Sequence[CommittedOffset]:
        if not self.has_groups:
            return []
        return [CommittedOffset(GROUP, name, 0, COMMITTED * (1 + 1000 * place)) for place, name in enumerate(self.ends)]

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        settings = {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.impl.prefix": "rsm.config.",
            "rsm.config.storage.s3.bucket.name": None,
        }
        return {1: {name: ConfigValue(value, "STATIC_BROKER_CONFIG") for name, value in settings.items()}}


def _place(image: ClusterImage, log_dirs: Sequence[bytes]) -> None:
    """Has broker 1 these directories, and in turn in each a replica."""
    image.brokers[1] = {**image.brokers[1], "LogDirs": [*log_dirs]}
    partitions = [(topic, number) for topic in image.topics.values() for number in topic.partitions]
    for turn, (topic, number) in enumerate(partitions):
        directory = log_dirs[turn % len(log_dirs)]
        topic.partitions[number] = {**topic.partitions[number], "Directories": [directory]}


@dataclass
class CapturedSets:
    """Sets of a captured cluster in a folder, and its remote store."""

    folder: Path
    store: Path
    data: Path
    """Of the captured node."""
    denied: Sequence[str] = ()
    has_groups: bool = False
    recipients: Sequence[Path] = ()
    """Files with public keys."""
    ends: dict[str, LogEndsByPartition] = field(default_factory=dict)
    """By topic, where not one partition is from 0 to 500."""
    secrets: ClusterImage | None = None
    """What the captured cluster is given besides."""
    log_dirs: Sequence[bytes] = ()
    """The directories that the captured broker is said to have had, where it is not the one of its own."""

    @classmethod
    def of(cls, captures: Path, folder: Path, denied: Sequence[str] = ()) -> CapturedSets:
        """One set, of a capture whose topics are named with a 7."""
        capture = captures / "kafka-4.3.1"
        (folder / "sets").mkdir(parents=True)
        shutil.copytree(capture / "remote/kafka-tiered-storage", folder / "remote")
        made = cls(folder / "sets", folder / "remote", capture / "data", denied)
        made.add()
        return made

    @property
    def cluster_id(self) -> str:
        cluster_id = log_dir_owner(self.data).cluster_id
        assert cluster_id is not None
        return cluster_id

    def add(self, *, full: bool = False) -> Backup:
        """One set more."""
        sets = ClusterSets(open_writable_store(f"file:{self.folder}", {}), self.cluster_id)
        state = captured_state(self.data)
        if self.log_dirs:
            _place(state.image, self.log_dirs)
        if self.secrets is not None:
            state = state.with_secrets(ClusterState(self.secrets, EPOCH, {}))
        ids = {topic.name: uuid_text(topic_id) for topic_id, topic in state.image.topics.items()}
        ends: dict[str, LogEndsByPartition] = {name: {0: (0, 500)} for name in ids if not name.startswith("__")}
        cluster = CapturedCluster(ids, ends | self.ends, self.denied, self.has_groups)
        with TemporaryDirectory() as folder:
            run = BackupRun(sets, Path(folder), lambda: CREATED_MS, full, recipients=read_recipients(self.recipients))
            events = LogDirectories([self.data])
            for number in events.metadata_partitions():
                deque(events.chunks(number), maxlen=0)  # until then it does not know its ends, which a live topic does
            return run.run(state, events, cluster)  # type: ignore[arg-type]

    def words(self, *nodes: str) -> list[str]:
        """The places of a restore."""
        given = [word for node in nodes for word in ("--node", node)]
        return ["--from", f"file:{self.folder}", "--store", f"file:{self.store}", *given]

    @property
    def confirmed(self) -> list[str]:
        return ["--yes", "--cluster-id", self.cluster_id]

    def files(self) -> list[Path]:
        """Of all sets, manifests included."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())
