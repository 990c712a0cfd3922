"""What earlier recoveries registered, and brokers promise although its objects are gone.

A broker that deletes a segment right before it is registered leaves it promised, and a run that is killed does not read
the metadata back; or it ends between the two events that record the deletion again. Only what no broker finished is
looked at. Its deletion is recorded only where an event of its own partition has deleted it already, and the store has
none of its objects; anything else is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import partition_document
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class PromisedSegment:
    """A segment that an earlier recovery registered, and that lacks promised objects; or whose deletion it began to
    record again."""

    metadata: RemoteLogSegmentMetadata
    keys: Sequence[str]
    """The keys of all objects that it may have."""
    lacks: Sequence[Part]
    """The promised objects that are not there."""
    is_gone: bool
    """Whether none of its objects is there."""
    is_deleted: bool
    """Whether an event deleted it before it was registered."""

    @property
    def is_begun(self) -> bool:
        """Whether its deletion is recorded, but for its end."""
        return self.metadata.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED

    @property
    def is_to_be_taken_back(self) -> bool:
        """Whether its deletion is to be recorded again."""
        return self.is_gone and self.is_deleted

    def finding(self) -> Finding:
        """No data is lost where a broker deleted it."""
        one, named = self.metadata, self.metadata.topic_id_partition
        lacks = [part.value for part in self.lacks]
        evidence: dict[str, object] = {
            **partition_document(named),
            "segmentId": one.segment_id,
            "startOffset": one.start_offset,
            "parts": lacks,
        }
        about = SegmentSubject(named, (one.start_offset, one.end_offset), one.segment_id, lacks[0] if lacks else None)
        code = FindingCode.DELETE_STUCK if self.is_begun else FindingCode.OBJECT_MISSING
        severity = Severity.WARNING if self.is_deleted else None
        return Finding(
            code, f"{named.topic}-{named.partition} {one.segment_id}", self._message(lacks), evidence, severity, about
        )

    def _message(self, lacks: Sequence[str]) -> str:
        if self.is_begun:
            message = "an earlier run began to record its deletion, and ended before it recorded the end"
            return f"{message}; {'--apply records it' if self.is_gone else 'the store still has objects of it'}"
        message = f"an earlier recovery registered it, and the store lacks its {', '.join(lacks)}"
        if self.is_deleted:
            message = f"{message}: brokers deleted it before, or are deleting it"
        return f"{message}; --apply records its deletion again" if self.is_to_be_taken_back else message


@dataclass(frozen=True, slots=True)
class EarlierRecoveries:
    """Looks for what earlier recoveries registered in vain."""

    known: KnownMetadata
    store: ObjectStore
    layout: Layout

    def promised(
        self, stored: Mapping[TopicIdPartition, Collection[str]], has: Callable[[TopicIdPartition], bool]
    ) -> dict[TopicIdPartition, list[PromisedSegment]]:
        """By partition, of those that `has` selects. `stored` are the ids of the segments that a listing before the
        metadata has something of: these are looked at only where an event deleted them.

        Reads the metadata once more where objects are gone: what brokers deleted meanwhile is not promised any more.
        Raises TieredctlError as the store and KnownMetadata do.
        """
        suspects = [
            one for partition in self.known.partitions() if has(partition) for one in self._of(partition, stored)
        ]
        looked_at = in_parallel(self.store, self._looked_at, suspects)
        lacking = [one for one in looked_at if one is not None]
        if not lacking:
            return {}
        self.known.refresh()
        lacking_by_partition: dict[TopicIdPartition, list[PromisedSegment]] = {}
        for partition in dict.fromkeys(one.metadata.topic_id_partition for one in lacking):
            unfinished = self.known.finished_by_no_broker(partition), self.known.deletion_begun_by_no_broker(partition)
            still = {one.segment_id: one for one in chain(*unfinished)}
            kept = [one for one in lacking if still.get(one.metadata.segment_id) == one.metadata]
            if kept:
                lacking_by_partition[partition] = kept
        return lacking_by_partition

    def _of(
        self, partition: TopicIdPartition, stored: Mapping[TopicIdPartition, Collection[str]]
    ) -> Iterator[tuple[RemoteLogSegmentMetadata, bool]]:
        """Each with whether an event deleted it."""
        deleted = {one.segment_id: one for one in self.known.finished_though_deleted(partition)}
        yield from ((one, True) for one in deleted.values())
        yield from ((one, True) for one in self.known.deletion_begun_by_no_broker(partition))
        listed = {*stored.get(partition, ()), *deleted}
        yield from ((one, False) for one in self.known.finished_by_no_broker(partition, besides=listed))

    def _looked_at(self, suspect: tuple[RemoteLogSegmentMetadata, bool]) -> PromisedSegment | None:
        metadata, is_deleted = suspect
        keys = possible_objects(self.layout, metadata)
        there = {part for part, key in keys.items() if self.store.head(key) is not None}
        lacks = [part for part in self.layout.promised_objects(metadata) if part not in there]
        promised = PromisedSegment(metadata, [*keys.values()], lacks, not there, is_deleted)
        return promised if lacks or promised.is_begun else None
