"""A cluster as the metadata log of one of its nodes has it: what there is when no broker answers.

The controllers' log in the log directories that the metadata is read from: what it proves about topics.

Nobody named it, so it is believed only where it is of the metadata's own cluster, whole, and no older than what was
read. Otherwise it proves nothing, and topics are as unknown as without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from tieredctl.kraft.replica import SnapshotId
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.cluster.topic_settings import INHERITED
from tieredctl.ops.documents import Document
from tieredctl.ports.cluster import (
    BrokerFeatures,
    ConfigValue,
    ListedOffset,
    MetadataProgress,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
)
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource
from tieredctl.process.redaction import is_secret

CLOCK_SKEW_MS = 10_000
"""How far the clocks of one cluster's machines may differ."""


@dataclass(frozen=True, slots=True)
class OfflineCluster:
    """An image of the cluster, and how far it is certain.

    Which records the quorum committed is in no file. What a snapshot contains was committed, and in a log of a single
    voter all is; the end of any other log may yet be truncated.
    """

    path: Path
    """The snapshot, or the folder of snapshots and log."""
    image: ClusterImage
    """As of the end of what was read."""
    topic_ids: frozenset[str]
    """The ids of all topics then."""
    committed_ms: int
    """When the last record was written that is certainly committed, by the controller's clock; -1 for none, and where
    that clock was wrong."""
    withdrawn_topic_ids: frozenset[str]
    """Topics that certainly were there, and are removed by a record that may not be committed."""
    snapshot: SnapshotId | None
    """What the image began with."""
    snapshot_bytes: int
    log_bytes: int
    """The bytes of the log's records after the snapshot."""
    cluster_id: str | None
    """From the `meta.properties` of the log directory, if there is one."""
    voters: Sequence[int] = ()
    """The node ids of the controllers that vote; empty where no file has them."""
    in_transaction: bool = False
    """Whether the last records belong to a transaction that has not ended: they are not in the image."""
    clock_error_ms: int = 0
    """By how much a controller's clock was certainly wrong: times in the log fall by this much, or are after now."""
    is_confirmed: bool = True
    """Whether the log before the end of the snapshot gives the same cluster. If not, nothing but the file itself says
    what it says."""

    @property
    def lone_witness(self) -> str | None:
        """A sentence that says so where nothing but the file itself confirms what it says."""
        if self.is_confirmed:
            return None
        return f"Only {self.path} says which topics are gone: no log from before its end confirms it."

    @property
    def has_all_topics(self) -> bool:
        """Whether a topic that is not in the image was certainly not there."""
        return self.image.is_certain and not self.withdrawn_topic_ids

    def describe(self) -> Document:
        """The description for the `source` of a document."""
        image = self.image
        return {
            "kind": "kraft-snapshot",
            "kraftSnapshot": str(self.path),
            "clusterId": self.cluster_id,
            "snapshotId": None if self.snapshot is None else str(self.snapshot),
            "endOffset": image.end_offset,
            "lastContainedLogTimestamp": image.as_of_ms,
            "snapshotBytes": self.snapshot_bytes,
            "logBytes": self.log_bytes,
            "topics": len(image.topics),
            "unknownRecords": image.unknown_records.total(),
            "refusedRecords": len(image.refused),
            "openTransaction": self.in_transaction,
            "confirmedByLog": self.is_confirmed,
        }

    def findings(self) -> Iterator[Finding]:
        """What makes the image incomplete."""
        for name, count in sorted(self.image.unknown_records.items()):
            message = (
                f"records that this release of tieredctl does not know, {count} of them: what they change is unknown"
            )
            yield Finding(
                FindingCode.KRAFT_RECORD_UNKNOWN, f"{self.path}: {name}", message, {"type": name, "records": count}
            )
        for offset, name, reason in self.image.refused:
            evidence: dict[str, object] = {"type": name, "offset": offset}
            yield Finding(FindingCode.KRAFT_RECORD_REFUSED, f"{self.path}@{offset}: {name}", reason, evidence)
        if self.clock_error_ms > CLOCK_SKEW_MS:
            message = f"a controller's clock was wrong by {self.clock_error_ms} ms: when topics were removed is unknown"
            evidence = {"clockErrorMs": self.clock_error_ms}
            yield Finding(FindingCode.KRAFT_CLOCK_WRONG, str(self.path), message, evidence)

    def by_the_clock(self, now_ms: int) -> OfflineCluster:
        """The same, held against the time now: no record was written later."""
        error_ms = max(self.clock_error_ms, self.image.as_of_ms - now_ms)
        committed_ms = min(self.committed_ms, now_ms) if error_ms <= CLOCK_SKEW_MS else -1
        return replace(self, clock_error_ms=error_ms, committed_ms=committed_ms)


@dataclass(frozen=True, slots=True)
class MetadataLogBeside:
    """A `__cluster_metadata-0` that lies beside `__remote_log_metadata`."""

    found: OfflineCluster | str
    """What it says, or a sentence why it cannot be read."""

    def why_unproven(
        self, metadata: MetadataSource, topic_ids: Collection[str], read_until_ms: int | None
    ) -> str | None:
        """Why it does not prove which topics are gone; None where it does.

        `topic_ids` are those that the metadata names, `read_until_ms` is the time of its last record.
        """
        offline = self.found
        if isinstance(offline, str):
            return offline
        if offline.cluster_id is None or offline.cluster_id != metadata.cluster_id:
            return f"{offline.path} is not known to be of the metadata's cluster."
        if metadata.metadata_topic_id not in offline.topic_ids:
            return f"{offline.path} does not have {METADATA_TOPIC}: it is of another cluster, or not whole."
        if not offline.image.is_certain:
            return f"{offline.path} has records that are not understood."
        if offline.committed_ms < 0:
            return f"Nothing in {offline.path} is certainly committed, or a controller's clock was wrong."
        if read_until_ms is None or offline.image.as_of_ms < read_until_ms - CLOCK_SKEW_MS:
            return f"{offline.path} ends before {METADATA_TOPIC} does."
        if offline.topic_ids.isdisjoint(topic_ids):
            return f"{offline.path} has none of the topics in {METADATA_TOPIC}."
        return None


@dataclass(frozen=True, slots=True)
class UnprovenTopics:
    """No topic is known to be there or gone, though a metadata log was there to tell."""

    reason: str

    def is_live(self, topic_id: str) -> bool | None:  # noqa: ARG002 - the protocol's
        return None

    def describe(self) -> Document | None:
        return {"kind": "kraft-snapshot", "unproven": self.reason}


_OWN, _DEFAULT, _UNKNOWN = "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "UNKNOWN"
_NO_BROKER = "BROKER_NOT_AVAILABLE"


@dataclass(frozen=True, slots=True)
class ImageCluster:
    """A `Cluster` as of the end of a metadata log, for reading only.

    Offsets, bytes on disks and brokers' settings are in no metadata record.
    """

    offline: OfflineCluster

    @property
    def cluster_id(self) -> str | None:
        return self.offline.cluster_id

    def describe(self) -> dict[str, object]:
        return self.offline.describe()

    def findings(self) -> Sequence[Finding]:
        """What makes its answers incomplete."""
        return list(self.offline.findings())

    def topic(self, name: str) -> TopicDescription:
        image = self.offline.image
        topic_ids = image.topics_named(name)
        if not topic_ids and not self.offline.has_all_topics:
            message = f"It is unknown whether there is a topic {name}: {self.offline.path} does not say for certain."
            raise TieredctlError(ErrorCode.TOPIC_UNCLEAR, message, hint="Give --bootstrap-server once brokers are up.")
        if not topic_ids:
            message = f"There is no topic {name} in {self.offline.path}."
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=nearest_hint(name, self.topic_names()) or "")
        return TopicDescription(name, uuid_text(topic_ids[-1]), self._partitions(topic_ids[-1]))

    def topic_partitions(self) -> Mapping[str, Sequence[PartitionDescription]]:
        named = self.offline.image.topics_named
        return {name: self._partitions(named(name)[-1]) for name in self.topic_names()}

    def _partitions(self, topic_id: bytes) -> Sequence[PartitionDescription]:
        return tuple(_partition(one) for _, one in sorted(self.offline.image.topics[topic_id].partitions.items()))

    def topic_names(self) -> Sequence[str]:
        return sorted(topic.name for topic in self.offline.image.topics.values())

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        """The topics' own settings, and what of others the cluster's own defaults decide. The rest is in brokers'
        files, and has no value."""
        names_here, configs, inherited = set(self.topic_names()), self.offline.image.configs, self._inherited()
        return {
            name: inherited
            | {
                setting: ConfigValue(None if is_secret(setting) else value, _OWN)
                for setting, value in configs.get((TOPIC_RESOURCE, name), {}).items()
            }
            for name in names
            if name in names_here
        }

    def _inherited(self) -> dict[str, ConfigValue]:
        """By topic setting. The default of all brokers precedes their files, and each broker's own precedes that."""
        configs = self.offline.image.configs
        default = configs.get((BROKER_RESOURCE, ""), {})
        own = {name for (kind, node), of in configs.items() if kind == BROKER_RESOURCE and node for name in of}
        return {
            setting: ConfigValue(default[name], _DEFAULT)
            if name in default and name not in own
            else ConfigValue(None, _UNKNOWN)
            for setting, name in INHERITED.items()
        }

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        self._refuse("Brokers' settings")

    def broker_features(self) -> Mapping[int, BrokerFeatures]:
        finalized = dict(self.offline.image.features)
        return {node: BrokerFeatures(_supported(one), finalized) for node, one in self.offline.image.brokers.items()}

    def quorum(self) -> QuorumDescription:
        self._refuse("The quorum's leader and its nodes' progress")

    def metadata_progress(self) -> MetadataProgress:
        return MetadataProgress(self.offline.image.end_offset, dict.fromkeys(self.offline.image.brokers))

    def replica_bytes(self, names: Sequence[str]) -> Mapping[tuple[str, int], Mapping[int, int]]:  # noqa: ARG002
        self._refuse("Bytes on brokers' disks")

    def free_bytes(self, names: Sequence[str]) -> Mapping[int, int]:  # noqa: ARG002
        self._refuse("Free bytes on brokers' disks")

    def alter_topic_configs(
        self,
        name: str,
        changes: Mapping[str, str | None],  # noqa: ARG002
        *,
        validate_only: bool,  # noqa: ARG002
    ) -> None:
        self._refuse(f"Settings of topic {name}")

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:  # noqa: ARG002
        """No partition's leader answers."""
        return {one.partition: ListedOffset(None, error=_NO_BROKER) for one in topic.partitions}

    def epoch_end_offset(self, topic: TopicDescription, partition: int, leader_epoch: int) -> tuple[int, int] | None:
        self._refuse(f"Offsets of {topic.topic}-{partition}, epoch {leader_epoch},")

    def _refuse(self, what: str) -> NoReturn:
        message = f"{what} are not in {self.offline.path}, and no broker is asked."
        raise TieredctlError(ErrorCode.BROKER_REFUSED, message, hint="Give --bootstrap-server once brokers are up.")


def _partition(values: Values) -> PartitionDescription:
    leader = values["Leader"]
    return PartitionDescription(
        values["PartitionId"],
        None if leader < 0 else leader,
        values["LeaderEpoch"],
        tuple(values["Replicas"]),
        tuple(values["Isr"]),
    )


def _supported(broker: Values) -> dict[str, int]:
    return {feature["Name"]: feature["MaxSupportedVersion"] for feature in broker["Features"]}
