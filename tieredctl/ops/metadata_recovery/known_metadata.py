"""What is left of the metadata. Unlike a deletion, a recovery accepts a topic whose beginning is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.uuid_columns import UuidSet, uuids_of_texts
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import BEGINNING_LOST, demand_whole, doubts_since_it_begins
from tieredctl.ops.metadata.coverage import MISSING
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata, FollowedReplay
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits
from tieredctl.rlmm.cache import DeletedOffsets
from tieredctl.rlmm.segment_events import EventChunk

_DELETED = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
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
    """Of all events up to the last `refresh`; None until it is asked for."""

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
        return {known.metadata.segment_id: known.metadata for known in self._replay.known.segments_of(partition)}

    def deleted(self, segment_ids: Sequence[str]) -> set[str]:
        """Which of these are deleted or being deleted by some event, whether or not their first event is known."""
        if self._deleted is None:
            self._deleted = UuidSet(self._replay.events.named_in(_DELETED))
        ids, numbers = uuids_of_texts(segment_ids)
        return {segment_ids[numbers[row]] for row in np.flatnonzero(self._deleted.has(ids)).tolist()}

    def deleted_offsets(self, partition: TopicIdPartition) -> DeletedOffsets:
        """Those of a partition's segments that are deleted or being deleted, as far as their first events are known."""
        return self._replay.known.deleted_offsets(partition)

    def begun_at_most(self, partition: TopicIdPartition, segment_ids: Sequence[str]) -> set[str]:
        """Of which segments the metadata has at most the start of their copy."""
        if self.is_removed(partition):
            return set()
        known = self._replay.known
        rows = known.named(segment_ids, known.rows_of(partition))
        went_on = rows[known.rows.states[rows] != RemoteLogSegmentState.COPY_SEGMENT_STARTED]
        further = known.rows.segment_ids.at(went_on).texts()
        return {*segment_ids} - {*further} - self.deleted(segment_ids)

    def is_removed(self, partition: TopicIdPartition) -> bool:
        """Whether the removal of the whole partition has begun."""
        return partition in self._replay.known.partition_deletes

    def _note(self, chunk: EventChunk) -> None:
        self._deleted = None
        self.traits = self.traits.shown_by(chunk)

    def _judge(self, stream: EventStream) -> Iterable[Finding]:
        self.metadata_partitions = len(stream.source.metadata_partitions())
        found = [_expected(finding) for finding in stream.findings]
        self.findings = found or self.findings
        for finding in doubts_since_it_begins(found):
            if finding.code == MISSING:
                demand_whole([finding])
            message = f"{finding.code}: {finding.subject}: {finding.message}."
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=_WAY_OUT)
        return ()


def _expected(finding: Finding) -> Finding:
    """A missing beginning, and partitions without events, are expected of a topic that is being rebuilt."""
    return replace(finding, severity_override=Severity.INFO) if finding.code in _TO_RECOVER else finding
