"""Which nodes a restored cluster has, and which log directories they have (KIP-858).

What the cluster's metadata says of directories is the same on every machine, and a machine knows the folders of its own
nodes alone: so it is decided by what is known of the old cluster. A folder more than that begins empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import MIGRATING_DIRECTORY, ClusterImage
from tieredctl.model.counted import counted
from tieredctl.model.ids import uuid_text


class NewNode(NamedTuple):
    """A node to restore; without folders one on another machine, where the same command is run."""

    node_id: int
    folders: Sequence[Path] = ()
    """Its `log.dirs`. The first has the cluster's metadata, too."""
    metadata_folder: Path | None = None
    """Unless this has it: a `metadata.log.dir` that is none of those."""


class LogDirectory(NamedTuple):
    """A folder of a node, with what becomes of it: logs, the cluster's metadata, or both."""

    node_id: int
    folder: Path
    directory_id: str
    has_logs: bool
    has_metadata: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """Which nodes there are, and what their directories are called."""

    directories: Mapping[int, Sequence[str]]
    """The ids of each node's log directories, but for those that begin empty."""
    brokers: Sequence[int]
    written: Sequence[LogDirectory]
    """On this machine."""

    @classmethod
    def of(cls, nodes: Sequence[NewNode], image: ClusterImage, seed: str) -> Placement:
        """The same on every machine: ids that the cluster knew are kept, others follow from `seed`. Raises
        TieredctlError `usage` without a broker, where none of the voters in the metadata log is among the nodes, and
        for a node with fewer folders than it had directories."""
        ids = sorted(node.node_id for node in nodes)
        brokers = [one for one in ids if one in image.brokers or one not in image.controllers]
        if not brokers:
            raise TieredctlError(ErrorCode.USAGE, "None of the nodes is a broker.", hint="Give each with --node.")
        if image.kraft_version and not set(image.voters or ()) & set(ids):
            known = ", ".join(map(str, sorted(image.voters or ())))
            raise TieredctlError(ErrorCode.USAGE, f"None of the nodes is a voter: {known} are.", hint="Keep their ids.")
        directories = {node.node_id: _KnownDirectories.of(node.node_id, image, seed) for node in nodes}
        for node in nodes:
            directories[node.node_id].demand_folders(node)
        written = [one for node in nodes for one in directories[node.node_id].written(node)]
        return cls({node_id: one.ids for node_id, one in directories.items()}, brokers, written)

    def replicas(self, wanted: Sequence[int], number: int) -> list[int]:
        """The replicas of a partition: those that it had, and others in the place of nodes that are no more."""
        kept = [one for one in wanted if one in self.brokers]
        others = [one for one in self.brokers if one not in kept]
        turn = number % len(others) if others else 0
        lacking = min(len(wanted), len(self.brokers)) - len(kept)
        return [*kept, *(others[turn:] + others[:turn])[:lacking]]

    def directory(self, broker: int, topic: str, number: int, partition: Values) -> str:
        """The id of the directory in which a broker's replica of a partition is: the one that it was in, where the
        broker has that yet."""
        ids = self.directories[broker]
        was_in = dict(zip(partition["Replicas"], partition["Directories"], strict=False)).get(broker)
        if was_in is not None and uuid_text(was_in) in ids:
            return uuid_text(was_in)
        return ids[crc32(f"{topic}-{number}".encode()) % len(ids)]


@dataclass(frozen=True, slots=True)
class _KnownDirectories:
    """What is known of the directories of a node."""

    node_id: int
    ids: Sequence[str]
    """The ids of its log directories; where one of them has to have the cluster's metadata, it is the first."""
    voter: str | None
    """The directory by which voters in the metadata log know it."""
    is_registered: bool
    """Whether the cluster had this broker, and knew its directories."""
    seed: str

    @classmethod
    def of(cls, node_id: int, image: ClusterImage, seed: str) -> _KnownDirectories:
        values = (image.voters or {}).get(node_id)
        voter = None
        if values is not None and values["VoterDirectoryId"] != MIGRATING_DIRECTORY:
            voter = uuid_text(values["VoterDirectoryId"])
        registered = sorted(map(uuid_text, image.brokers.get(node_id, {}).get("LogDirs") or []))
        registered.sort(key=lambda one: one != voter)
        ids = registered or [voter or derived_id(f"{seed} {node_id}")]
        return cls(node_id, ids, voter, bool(registered), f"{seed} {node_id}")

    def demand_folders(self, node: NewNode) -> None:
        """Raises TieredctlError `usage` where a broker would not find all that its metadata says that it has."""
        if not node.folders:
            return
        if len(node.folders) < len(self.ids):
            named = f"--node names {len(node.folders)} of them"
            message = f"Node {self.node_id} had {counted(len(self.ids), 'log directory', 'log directories')}: {named}."
            hint = f"Give as many as its log.dirs has, --node {self.node_id}=DIR,DIR; they may be on one disk."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if self.voter is None or not self.is_registered:
            return
        if self.voter not in self.ids and node.metadata_folder is None:
            message = f"Node {self.node_id} had the cluster's metadata in a directory of its own (metadata.log.dir)."
            hint = f"Give it with --metadata-log-dir {self.node_id}=DIR."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if self.voter in self.ids and node.metadata_folder is not None:
            message = f"Node {self.node_id} had the cluster's metadata in one of its log.dirs, by which voters know it."
            hint = "Leave out --metadata-log-dir, and name that directory first with --node."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)

    def written(self, node: NewNode) -> Iterator[LogDirectory]:
        """Its folders on this machine."""
        own_id = self.voter or derived_id(f"{self.seed} metadata.log.dir")
        has_own = node.metadata_folder is not None
        known = (one for one in self.ids if not (has_own and one == own_id))
        ids = chain(known, (derived_id(f"{self.seed} log.dirs {place}") for place in count()))
        for place, (folder, directory_id) in enumerate(zip(node.folders, ids, strict=False)):
            yield LogDirectory(self.node_id, folder, directory_id, True, not has_own and place == 0)
        if node.metadata_folder is not None:
            yield LogDirectory(self.node_id, node.metadata_folder, own_id, False, True)


def derived_id(seed: str) -> str:
    """An id that is the same wherever it is made of the same seed, and that no option's name looks like."""
    texts = (uuid_text(sha256(f"{seed} {number}".encode()).digest()[:16]) for number in range(1000))
    return next(text for text in texts if not text.startswith("-"))
