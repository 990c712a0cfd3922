"""What is left of the metadata. Unlike a deletion, a recovery accepts a topic whose beginning is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.coverage import MISSING
from tieredctl.ops.metadata.event_publisher import NO_BROKER
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata, demand_whole
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

_DELETED = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
_BEGINNING_GONE = FindingCode.METADATA_TRUNCATED
_WAY_OUT = "Delete the events up to the next sound one (kafka-delete-records.sh), and run the command again."
_BrokerEvent = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata


class BrokerTraits(NamedTuple):
    """How a cluster's brokers write events: rebuilt ones have to look the same. By default, as the latest releases
    do."""

    custom_metadata: bytes | None = None
    """Some segment's, which shows the fields that the storage manager is configured to give."""
    form: RecordForm = RecordForm.KAFKA
    tells_txn: bool = False
    """Whether brokers record that a segment has no aborted transaction (Kafka 4.0 and later)."""

    def shown_by(self, event: _BrokerEvent) -> BrokerTraits:
        """What is known after another event of a broker."""
        tells = self.tells_txn or (isinstance(event, RemoteLogSegmentMetadata) and event.txn_idx_empty)
        custom = event.custom_metadata if isinstance(event, RemoteLogSegmentMetadataUpdate) else None
        return BrokerTraits(custom or self.custom_metadata, event.form, tells)


@dataclass(slots=True)
class KnownMetadata:
    """The existing events, read once, then only what was added since."""

    metadata: FollowedMetadata
    metadata_partitions: int = 0
    findings: list[Finding] = field(default_factory=list)
    """What is wrong: a beginning that is gone, events that cannot be read."""
    deleted: set[str] = field(default_factory=set)
    """The segments that are deleted or being deleted by some event, whether or not their first event is known."""
    traits: BrokerTraits = field(default_factory=BrokerTraits)
    """How the cluster's brokers write, as far as the remaining events show it."""
    _store: RemotePartitionMetadataStore = field(default_factory=RemotePartitionMetadataStore)

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does: `metadata-incomplete` if an event or a batch cannot be read.
        A broker's consumer stops there, and would never reach what is written after it.
        """
        self.metadata.read(self._take)

    def segments(self, partition: TopicIdPartition) -> dict[str, RemoteLogSegmentMetadata]:
        """A partition's segments after replay, by segment id, without those that are gone."""
        return {known.metadata.segment_id: known.metadata for known in self._store.segments_of(partition)}

    def is_open(self, partition: TopicIdPartition, segment_id: str) -> bool:
        """Whether the metadata has at most the start of a segment's copy."""
        if segment_id in self.deleted or self.is_removed(partition):
            return False
        cache = self._store.caches.get(partition)
        return cache is None or cache.state_of(segment_id) in (None, RemoteLogSegmentState.COPY_SEGMENT_STARTED)

    def is_removed(self, partition: TopicIdPartition) -> bool:
        """Whether the removal of the whole partition has begun."""
        return partition in self._store.partition_deletes

    def _take(self, stream: EventStream) -> tuple[Finding, ...]:
        self.metadata_partitions = len(stream.source.metadata_partitions())
        self._store.replay(self._noted(stream))
        found = [_expected(finding) for finding in stream.findings]
        self.findings = found or self.findings
        for finding in found:
            if finding.severity >= Severity.ERROR:
                if finding.code == MISSING:
                    demand_whole([finding])
                message = f"{finding.code}: {finding.subject}: {finding.message}."
                raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=_WAY_OUT)
        return ()

    def _noted(self, stream: EventStream) -> Iterator[EventRecord]:
        for record in stream.records():
            event = record.event
            if isinstance(event, RemoteLogSegmentMetadataUpdate) and event.state in _DELETED:
                self.deleted.add(event.segment_id)
            if not isinstance(event, RemoteLogSegmentMetadataSnapshot) and event.author != NO_BROKER:
                self.traits = self.traits.shown_by(event)
            yield record


def _expected(finding: Finding) -> Finding:
    """A missing beginning is expected of a topic that is being rebuilt."""
    return replace(finding, severity_override=Severity.INFO) if finding.code == _BEGINNING_GONE else finding
