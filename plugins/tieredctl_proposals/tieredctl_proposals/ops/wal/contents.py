"""What a store of combined objects has: the objects that it lists, and what its events say about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import MetadataRecord, chunk_of
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved
from tieredctl_proposals.formats.wal_records import encode_wal_event
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.model.wal_events import WAL_METADATA_TOPIC
from tieredctl_proposals.ops.wal.event_log import METADATA_PARTITIONS, EventLogContents, is_event_key, read_event_log
from tieredctl_proposals.ops.wal.gathered_events import GatheredEvents
from tieredctl_proposals.ops.wal.object_check import object_finding
from tieredctl_proposals.wal.events import WalEvents
from tieredctl_proposals.wal.places import WAL_SUFFIX
from tieredctl_proposals.wal.recovery import recovered_events
from tieredctl_proposals.wal.replayed import KnownCombined, KnownWalSegment, ReplayedWal

_OTHERS_KEPT = 1_000
"""A bucket that is given by mistake may have millions."""
_DELETION = frozenset({RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED})
_KEY = re.compile(rf"([A-Za-z0-9_-]{{22}}){re.escape(WAL_SUFFIX)}", re.ASCII)


Segments = Mapping[tuple[TopicIdPartition, str], KnownWalSegment]
"""The segments by partition and id: nothing keeps two partitions from having the same id."""


def by_place(segments: Iterable[KnownWalSegment]) -> Segments:
    """Each under its partition and id."""
    return {(one.metadata.topic_id_partition, one.segment_id): one for one in segments}


@dataclass(frozen=True, slots=True)
class KnownEvents:
    """The events of a store, replayed."""

    log: EventLogContents
    replayed: ReplayedWal
    findings: list[Finding]
    """What could not be read of them."""

    def segments(self) -> list[KnownWalSegment]:
        """Each as of its last event, deleted ones too."""
        return list(self.replayed.segments_at(np.arange(len(self.replayed.segments.states))))

    def combined(self) -> list[KnownCombined]:
        """Each combined object as of its last event, in the order of these; deleted ones too."""
        rows = self.replayed.combined_at(np.arange(len(self.replayed.combined.states)))
        return sorted(rows, key=lambda one: (one.metadata_partition, one.metadata_offset))


@dataclass(frozen=True, slots=True)
class WalContents:
    """Everything in a store, without tieredctl's own objects."""

    events: KnownEvents
    objects: dict[str, StoredObject] = field(default_factory=dict)
    """The combined objects, by their ids."""
    others: list[StoredObject] = field(default_factory=list)
    """What is neither a combined object nor of the event log: the first of them."""
    others_count: int = 0
    """How many there are."""

    @property
    def is_there(self) -> bool:
        """Whether there is an event or an object of the WAL tier at all."""
        return bool(self.objects) or self.events.log.is_there or bool(self.events.findings)


def read_events(store: ObjectStore) -> KnownEvents:
    """Reads and replays the event log of a store."""
    events = WalEvents()
    return _known_events(read_event_log(store, events), events)


def deleted_since(store: ObjectStore, combined_ids: Iterable[str]) -> set[str]:
    """Which combined objects are deleted, or being deleted, by the events of now: nobody misses them. Raises
    TieredctlError as the store does."""
    wal = read_events(store).replayed

    def states(combined_id: str) -> set[RemoteLogSegmentState]:
        combined = wal.combined_named(combined_id)
        told_by = wal.segments_in(combined_id) if combined is None else [combined]
        return {one.metadata.state for one in told_by}

    return {one for one in combined_ids if (told := states(one)) and told <= _DELETION}


def events_of_objects(store: ObjectStore) -> KnownEvents:
    """The events that the objects themselves tell of, by their indexes: as if every upload had ended, and nothing had
    been deleted since. For a store whose own events are lost. Reads all objects.

    Raises TieredctlError as reading does; damage, and objects without an index, are findings.
    """
    log, by_partition = EventLogContents(), dict[int, list[MetadataRecord]]()
    for stored in list_unreserved(store):
        if combined_id_of(stored.key) is None:
            continue
        try:
            published = list(recovered_events(store, stored, METADATA_PARTITIONS))
        except DecodeError as error:
            log.findings.append(object_finding(stored.key, error.position, error.reason))
            continue
        for one in published:
            records = by_partition.setdefault(one.metadata_partition, [])
            event_ms = one.event.event_timestamp_ms
            records.append(MetadataRecord(len(records), event_ms, encode_wal_event(one.event)))
    events = WalEvents()
    gathered = GatheredEvents(events)
    for partition, records in sorted(by_partition.items()):
        log.end_offsets[partition], _ = gathered.add(partition, chunk_of(records), 0)
    gathered.flush()
    return _known_events(log, events)


def _known_events(log: EventLogContents, events: WalEvents) -> KnownEvents:
    undecodable = [
        Finding(
            ProposalCode.WAL_METADATA_DAMAGED,
            f"{WAL_METADATA_TOPIC}-{one.metadata_partition}@{one.metadata_offset}",
            one.reason,
            {"metadataPartition": one.metadata_partition, "metadataOffset": one.metadata_offset},
        )
        for one in events.undecodable
    ]
    if more := events.undecodable_count - len(undecodable):
        message = f"{more} more records cannot be decoded"
        undecodable.append(Finding(ProposalCode.WAL_METADATA_DAMAGED, WAL_METADATA_TOPIC, message, {"records": more}))
    return KnownEvents(log, ReplayedWal(events), [*log.findings, *undecodable])


def read_contents(store: ObjectStore) -> WalContents:
    """Lists the store first, then reads the events: what is uploaded in between has events and no object here, and
    is looked for again by whoever needs to know."""
    objects, others, others_count = dict[str, StoredObject](), list[StoredObject](), 0
    for stored in list_unreserved(store):
        combined_id = combined_id_of(stored.key)
        if combined_id is not None:
            objects[combined_id] = stored
        elif not is_event_key(stored.key):
            others_count += 1
            if others_count <= _OTHERS_KEPT:
                others.append(stored)
    return WalContents(read_events(store), objects, others, others_count)


def combined_id_of(key: str) -> str | None:
    """The id of the combined object with a key; None for any other key."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    try:
        uuid_bytes(match[1])
    except ValueError:
        return None
    return match[1]


def nothing_in(url: str) -> str:
    """What is said of a store that has nothing of the WAL tier."""
    return f"{url} has no combined objects, and no events of any."


def demand_whole(events: KnownEvents, url: str) -> None:
    """Raises TieredctlError `metadata-incomplete` where events are missing or cannot be read: nothing is added, removed
    or restored by them."""
    if events.findings:
        first = events.findings[0]
        message = f"The events in {url} are damaged ({counted(len(events.findings), 'finding')}): "
        message += f"{first.subject}: {first.message}."
        raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint="`tieredctl wal verify` shows all of it.")
