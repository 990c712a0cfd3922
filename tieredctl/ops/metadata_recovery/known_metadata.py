"""What is left of the metadata. Unlike a deletion, a recovery accepts a topic whose beginning is gone.

Whether the metadata topic, which may have been recreated, is fit to recover into.

With another partition count than brokers expect, a broker exits at startup, and events would be where no broker looks
for them. With the brokers' default retention, or compaction, recovered metadata would be deleted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.uuid_columns import UuidSet, uuids_of_texts
from tieredctl.formats.windows import Ints
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.events import DELETION_STATES, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.broker_settings import METADATA_PARTITIONS, BrokerSettings, as_number
from tieredctl.ops.doctor.gathering import gather_settings
from tieredctl.ops.doctor.looking import METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS
from tieredctl.ops.doctor.metadata_topic_rules import metadata_topic_findings
from tieredctl.ops.metadata.completeness import BEGINNING_LOST, demand_whole, doubts_since_it_begins
from tieredctl.ops.metadata.coverage import MISSING
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata, FollowedReplay
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits
from tieredctl.ports.cluster import Cluster, ConfigValue
from tieredctl.ports.metadata_source import METADATA_TOPIC, NO_BROKER
from tieredctl.rlmm.cache import DeletedOffsets
from tieredctl.rlmm.segment_events import EventChunk

_TO_RECOVER = (BEGINNING_LOST, FindingCode.METADATA_EVENTS_LOST)
_WAY_OUT = "Delete the events up to the next sound one (kafka-delete-records.sh), and run the command again."


@dataclass(slots=True)
class KnownMetadata:
    """The existing events, read once, then only what was added since."""

    metadata: FollowedMetadata
    metadata_partitions: int = 0
    findings: list[Finding] = field(default_factory=list)
    """What is wrong: a beginning that is gone, events that cannot be read."""
    traits: BrokerTraits = field(default_factory=BrokerTraits)
    """How the cluster's brokers write, as far as the remaining events show it."""
    _replay: FollowedReplay = field(init=False)
    _deleted: UuidSet | None = None
    """The deleted segments by all events up to the last `refresh`; None until it is asked for."""

    def __post_init__(self) -> None:
        self._replay = FollowedReplay(self.metadata, note=self._note)

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does: `metadata-incomplete` if an event or a batch cannot be read.
        A broker's consumer stops there, and would never reach what is written after it.
        """
        self._replay.read(self._judge)

    def segments(self, partition: TopicIdPartition) -> dict[str, RemoteLogSegmentMetadata]:
        """A partition's segments after replay, by segment id, without those that are gone."""
        return {segment.metadata.segment_id: segment.metadata for segment in self._replay.known.segments_of(partition)}

    def deleted(self, segment_ids: Sequence[str]) -> set[str]:
        """The segments that are deleted or being deleted by some event, whether or not their first event is known."""
        if self._deleted is None:
            self._deleted = UuidSet(self._replay.events.named_in(DELETION_STATES))
        return _among(segment_ids, self._deleted)

    def deleted_in(self, partition: TopicIdPartition, segment_ids: Sequence[str]) -> set[str]:
        """Those that an event of this very partition deletes: a copy under a mapped topic id has the same segment id,
        and outlives what it was copied from."""
        return _among(segment_ids, self._deleted_in(partition))

    def finished_by_no_broker(
        self, partition: TopicIdPartition, *, besides: Collection[str] = ()
    ) -> list[RemoteLogSegmentMetadata]:
        """The segments of a partition in COPY_SEGMENT_FINISHED whose last event a recovery wrote, but for those whose
        ids are given."""
        rows = self._by_no_broker(partition, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
        if len(rows):  # seldom, and the others may be very many
            others = UuidSet(uuids_of_texts(list(besides))[0])
            rows = rows[~others.has(self._replay.known.rows.segment_ids.at(rows))]
        return self._as_known(rows)

    def finished_though_deleted(self, partition: TopicIdPartition) -> list[RemoteLogSegmentMetadata]:
        """Those among them that another event of their partition deletes: their deletion came before they were
        registered, so brokers promise them."""
        rows = self._by_no_broker(partition, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
        if len(rows):
            rows = rows[self._deleted_in(partition).has(self._replay.known.rows.segment_ids.at(rows))]
        return self._as_known(rows)

    def deletion_begun_by_no_broker(self, partition: TopicIdPartition) -> list[RemoteLogSegmentMetadata]:
        """The segments of a partition in DELETE_SEGMENT_STARTED whose last event a recovery wrote: it ended before it
        could record that they are deleted. None where the whole partition is removed."""
        if self.is_removed(partition):
            return []
        return self._as_known(self._by_no_broker(partition, RemoteLogSegmentState.DELETE_SEGMENT_STARTED))

    def partitions(self) -> list[TopicIdPartition]:
        """Every partition that an event names."""
        return self._replay.known.partitions

    def _deleted_in(self, partition: TopicIdPartition) -> UuidSet:
        events = self._replay.events
        if partition not in events.partitions:
            return UuidSet(uuids_of_texts([])[0])
        return UuidSet(events.named_in(DELETION_STATES, partition))

    def _by_no_broker(self, partition: TopicIdPartition, state: RemoteLogSegmentState) -> Ints:
        metadata = self._replay.known
        rows = metadata.rows_of(partition)
        rows = rows[metadata.rows.states[rows] == state]
        by_no_broker: Ints = rows[metadata.authors(rows) == NO_BROKER]
        return by_no_broker

    def _as_known(self, rows: Ints) -> list[RemoteLogSegmentMetadata]:
        return [segment.metadata for _, segment in self._replay.known.known(rows)]

    def deleted_offsets(self, partition: TopicIdPartition) -> DeletedOffsets:
        """The offsets of a partition's segments that are deleted or being deleted, as far as their first events are
        known."""
        return self._replay.known.deleted_offsets(partition)

    def begun_at_most(self, partition: TopicIdPartition, segment_ids: Sequence[str]) -> set[str]:
        """The segments of which the metadata has at most the start of their copy."""
        if self.is_removed(partition):
            return set()
        metadata = self._replay.known
        rows = metadata.named(segment_ids, metadata.rows_of(partition))
        went_on = rows[metadata.rows.states[rows] != RemoteLogSegmentState.COPY_SEGMENT_STARTED]
        further = metadata.rows.segment_ids.at(went_on).texts()
        return {*segment_ids} - {*further} - self.deleted(segment_ids)

    def is_removed(self, partition: TopicIdPartition) -> bool:
        """Whether the removal of the whole partition has begun."""
        return partition in self._replay.known.partition_deletes

    def _note(self, chunk: EventChunk) -> None:
        self._deleted = None
        self.traits = self.traits.shown_by(chunk)

    def _judge(self, stream: EventStream) -> Iterable[Finding]:
        self.metadata_partitions = len(stream.source.metadata_partitions())
        findings = [_expected(finding) for finding in stream.findings]
        self.findings = findings or self.findings
        for finding in doubts_since_it_begins(findings):
            if finding.code == MISSING:
                demand_whole([finding])
            message = f"{finding.code}: {finding.subject}: {finding.message}."
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=_WAY_OUT)
        return ()


def _among(segment_ids: Sequence[str], deleted: UuidSet) -> set[str]:
    ids, numbers = uuids_of_texts(segment_ids)
    return {segment_ids[numbers[row]] for row in np.flatnonzero(deleted.has(ids)).tolist()}


def _expected(finding: Finding) -> Finding:
    """A missing beginning, and partitions without events, are expected of a topic that is being rebuilt."""
    return replace(finding, severity_override=Severity.INFO) if finding.code in _TO_RECOVER else finding


_RETENTION, _REPLICATION = FindingCode.TOPIC_CONFIG_METADATA_RETENTION, FindingCode.TOPIC_CONFIG_METADATA_REPLICATION
_NO_CLOCK = Clock(0, 0)


def demand_configured_partitions(cluster: Cluster, partition_count: int, stated: int | None) -> None:
    """Returns if the topic has as many partitions as brokers are configured with.

    `stated` is the user's word for that count, for brokers that do not report it. Raises TieredctlError
    `metadata-partitions` if the counts differ, or if the count is not known; and as the cluster does.
    """
    for who, reported in _reported_by_brokers(cluster, stated):
        configured = stated if reported is None else reported
        if None not in (stated, reported) and stated != reported:
            message = f"{METADATA_PARTITIONS} of {who} is {reported}, not {stated}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)
        if configured is None:
            hint = "Give the configured count with --metadata-partitions."
            raise TieredctlError(
                ErrorCode.METADATA_PARTITIONS, f"{who} does not report its {METADATA_PARTITIONS}.", hint=hint
            )
        if configured != partition_count:
            partitions = counted(partition_count, "partition")
            message = f"{METADATA_TOPIC} has {partitions}, but {METADATA_PARTITIONS} of {who} is {configured}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)


def metadata_topic_faults(cluster: Cluster) -> list[Finding]:
    """What would lose recovered metadata again: retention, compaction, and fewer replicas than the brokers allow.
    Raises TieredctlError as the cluster does."""
    snapshot = gather_settings(cluster, _NO_CLOCK, None)
    topic = snapshot.metadata_topic
    findings = [one for one in metadata_topic_findings(snapshot) if one.code in (_RETENTION, _REPLICATION)]
    replicas = 0 if topic is None else min((len(one.replicas) for one in topic.description.partitions), default=0)
    could_have_more = len(snapshot.broker_releases) > replicas
    unseen = [one for one in snapshot.not_looked_at if one.subject in (METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS)]
    return [*(one for one in findings if one.code == _RETENTION or could_have_more), *unseen]


def demand_lasting(faults: Sequence[Finding]) -> None:
    """Raises TieredctlError `metadata-topic-unsafe` if what is written would be deleted or refused."""
    messages = [one.message for one in faults if one.code == _RETENTION]
    if messages:
        raise TieredctlError(
            ErrorCode.METADATA_TOPIC_UNSAFE, f"{METADATA_TOPIC} does not keep what is written: {messages[0]}."
        )


def _reported_by_brokers(cluster: Cluster, stated: int | None) -> list[tuple[str, int | None]]:
    """What each broker reports. Brokers do not show a plugin's settings: then nothing is reported."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED or stated is None:
            raise
        return [("every broker", None)]
    return [(f"broker {node}", _reported(one)) for node, one in configs.items()]


def _reported(configs: Mapping[str, ConfigValue]) -> int | None:
    values = {name: one.value for name, one in configs.items()}
    settings = BrokerSettings("", values)
    return as_number(values.get(settings.metadata_name(METADATA_PARTITIONS)))
