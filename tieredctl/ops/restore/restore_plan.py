"""What comes back of a cluster, what is lost, and the files of its new nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.kraft_snapshot import encode_kraft_snapshot
from tieredctl.kraft.image import METADATA_VERSION
from tieredctl.model.counted import counted
from tieredctl.model.events import MetadataEvent
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.backup.manifests import WITHOUT_SET, Manifest, NamedSecret
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata_recovery.recovery_plan import Recovery
from tieredctl.ops.restore.metadata_logs import RESTORED_EPOCH, WrittenLog, event_logs, group_logs, new_events
from tieredctl.ops.restore.node_files import DirectoryWriter, demand_usable, in_segments, new_nodes
from tieredctl.ops.restore.placement import NewNode, Placement
from tieredctl.ops.restore.restored_logs import Origin, RestoredLog, RestoredLogRow, not_below_logs, unknown_logs
from tieredctl.ports.cluster import CommittedOffset
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.process.progress import note

GROUPS_TOPIC = "__consumer_offsets"
_SEGMENT_BYTES = 64 << 20
_ANOTHER_SET = "The topic was made or deleted while the set was: restore from another set with --set."


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A plan, made of a set and a store."""

    manifest: Manifest
    set_sha256: str
    store_url: str
    nodes: Sequence[NewNode]
    placement: Placement
    state: ClusterState
    """As the new nodes begin with it."""
    logs: Mapping[TopicIdPartition, RestoredLog]
    committed: Sequence[CommittedOffset]
    """The committed offsets of groups, cut to where logs go on."""
    recovery: Recovery | None
    """The recovery of the store's segments; None where the set knows none."""
    accepts_unknown: bool = True
    """Whether what no backup set says may be unknown; where there is a set, nothing is to be accepted."""
    secrets: Sequence[NamedSecret] | None = None
    """The set's encrypted secrets that come back; None where they stay closed."""

    def source(self) -> Document:
        """What it is about."""
        return {"clusterId": self.manifest.cluster_id, "set": self.manifest.number or None, "store": self.store_url}

    def rows(self) -> list[RestoredLogRow]:
        """One for each partition whose log does not begin at 0, or that loses something."""
        return [one.row() for _, one in sorted(self.logs.items()) if one.origin is not Origin.INTERNAL]

    def summary(self) -> Document:
        """Totals."""
        logs = [one for one in self.logs.values() if one.origin is not Origin.INTERNAL]
        return {
            "topics": len({one.partition.topic_id for one in logs}),
            "partitions": len(logs),
            "segments": sum(one.segments for one in logs),
            "recovered": sum(one.recovered for one in logs),
            "bytes": sum(one.bytes for one in logs),
            "lostOffsets": sum(last - first + 1 for one in logs for first, last in one.lost),
            "unknown": len(unknown_logs(self.logs)),
            "groupOffsets": len(self.committed),
            "nodes": [node.node_id for node in self.nodes],
            "mark": self.mark,
            "createdMs": None if self.is_without_backup else self.manifest.created_ms,
            "leftOut": self.manifest.to_give_again(is_opened=self.secrets is not None),
            "encrypted": len(self.manifest.encrypted),
            "secrets": [one._asdict() for one in self.secrets or ()],
            "unread": list(self.manifest.unread),
            "findings": [finding.document() for finding in self.findings()],
        }

    def findings(self) -> list[Finding]:
        """About segments that are left out, and gaps before and between them."""
        of_logs = [finding for _, one in sorted(self.logs.items()) for finding in one.findings()]
        of_groups = []
        if self.committed and all(one.topic != GROUPS_TOPIC for one in self.logs):
            message = f"groups' offsets do not come back: when the set was begun, there was no {GROUPS_TOPIC}"
            evidence = {"what": GROUPS_TOPIC, "groupOffsets": len(self.committed)}
            of_groups = [Finding(FindingCode.BACKUP_INCOMPLETE, GROUPS_TOPIC, message, evidence)]
        of_segments = () if self.recovery is None else self.recovery.all_findings()
        return [*not_below_logs(of_segments, self.logs), *of_logs, *of_groups]

    @property
    def is_without_backup(self) -> bool:
        """Whether the cluster is derived from the keys of its objects alone."""
        return self.manifest.number == WITHOUT_SET

    def nodes_here(self) -> list[NewNode]:
        """Those that are restored on this machine."""
        return [node for node in self.nodes if node.folders]

    @property
    def mark(self) -> str:
        """What is restored, as one word: the same plan has the same. Nodes with another do not fit together."""
        rows = [one.document() for one in self.rows()]
        identity = [self.set_sha256, sorted(self.placement.directories.items()), rows, [*map(list, self.committed)]]
        if self.secrets is not None:
            identity.append([*map(list, self.secrets)])
        return sha256(json.dumps(identity).encode()).hexdigest()

    def demand_applicable(self) -> None:
        """Raises TieredctlError where what is unknown is not accepted, where a log's beginning is not known, and where
        a folder cannot take a node."""
        if not self.accepts_unknown:
            message = f"Without a backup, {counted(len(self.manifest.unread), 'kind')} of facts stay unknown."
            hint = "See `restore plan`; if no backup set is left, take them as lost with --accept-unknown."
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=hint)
        unknown = unknown_logs(self.logs)
        if unknown:
            one = unknown[0]
            others = f" and of {len(unknown) - 1} more" if len(unknown) > 1 else ""
            message = (
                f"Nothing says where the log of {one.topic}-{one.partition}{others} went on; it is not begun at 0."
            )
            hint = f"Give --begin-at {one.topic}:{one.partition}=OFFSET, beyond every offset that it had."
            if self.logs[one].promised:
                message = f"{message[:-1]}: {next(self.logs[one].findings()).message}."
                hint = f"Check --store first: brokers delete what is below a log's start. Only if it is gone: {hint}"
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        mark = self.mark
        for directory in self.placement.written:
            demand_usable(directory.folder, mark)


@dataclass(slots=True, kw_only=True)
class RestoreOutcome(Outcome):
    """What became of a plan; done are nodes."""


def apply_restore(plan: RestorePlan, stream: EventStream, *, is_cut: bool) -> RestoreOutcome:
    """Writes the nodes' files; `stream` has the set's events, or some topics' where `is_cut`.

    Raises TieredctlError, and then no node has anything."""
    plan.demand_applicable()
    with new_nodes(plan.placement.written, plan.mark) as writers:
        if writers:
            _Writing(plan, writers).write(stream, is_cut=is_cut)
    nodes = len(plan.nodes_here())
    return RestoreOutcome(planned=nodes, done=nodes)


@dataclass(frozen=True, slots=True)
class _Writing:
    plan: RestorePlan
    writers: Mapping[str, DirectoryWriter]
    """By the directory's id."""

    def write(self, stream: EventStream, *, is_cut: bool) -> None:
        self._demand_same_metadata_topic()
        self._write_cluster()
        for number, written in event_logs(stream, self._new_events(), is_cut=is_cut):
            self._write_log(METADATA_TOPIC, number, written)
            note("metadata partitions", number + 1)
        for number, written in self._group_logs().items():
            self._write_log(GROUPS_TOPIC, number, written)
        logs = [one for one in self.plan.logs.values() if one.next_offset]
        for done, log in enumerate(logs, 1):
            for writer in self._writers_of(log.partition):
                writer.empty_log(log.partition, log.log_start_offset, log.next_offset, log.leader_epochs)
            note("partitions", done, len(logs))

    def _write_cluster(self) -> None:
        state = self.plan.state
        name = kraft_snapshot_name(state.image.end_offset, state.epoch)
        level = {"Name": METADATA_VERSION, "FeatureLevel": state.image.features[METADATA_VERSION]}
        values = [encode_kraft_record(KraftRecordType.FEATURE_LEVEL, 0, level)]
        bootstrap = b"".join(encode_kraft_snapshot(values, [], epoch=0, last_contained_ms=0))
        snapshot = state.checkpoint()
        for writer in self.writers.values():
            broker = state.image.brokers.get(writer.directory.node_id)
            writer.identity(self.plan.manifest.cluster_id, None if broker is None else broker["BrokerEpoch"])
            if writer.directory.has_metadata:
                writer.cluster_metadata(name, snapshot, bootstrap, has_secrets=bool(self.plan.secrets))

    def _demand_same_metadata_topic(self) -> None:
        ids = {one.topic_id for one in self.plan.logs if one.topic == METADATA_TOPIC}
        if self.plan.manifest.metadata_topic_id not in (None, *ids):
            message = f"The set's events are of another {METADATA_TOPIC} than its topics have."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=_ANOTHER_SET)

    def _new_events(self) -> Mapping[int, Sequence[MetadataEvent]]:
        return {} if self.plan.recovery is None else new_events(self.plan.recovery.partitions)

    def _group_logs(self) -> Mapping[int, WrittenLog]:
        partitions = sum(one.topic == GROUPS_TOPIC for one in self.plan.logs)
        if not partitions:
            return {}
        return group_logs(self.plan.committed, partitions, self.plan.manifest.created_ms)

    def _write_log(self, topic: str, number: int, log: WrittenLog) -> None:
        partition = next((one for one in self.plan.logs if (one.topic, one.partition) == (topic, number)), None)
        if partition is None:
            message = f"The set has no partition {topic}-{number} for what it has of it."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=_ANOTHER_SET)
        segments = in_segments(log.batches, log.start_offset, _SEGMENT_BYTES)
        for writer in self._writers_of(partition):
            writer.log(partition, segments, log.end_offset, RESTORED_EPOCH)

    def _writers_of(self, partition: TopicIdPartition) -> list[DirectoryWriter]:
        topic = self.plan.state.image.topics[uuid_bytes(partition.topic_id)]
        directories = map(uuid_text, topic.partitions[partition.partition]["Directories"])
        return [self.writers[one] for one in directories if one in self.writers]
