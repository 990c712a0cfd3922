"""What the metadata says now about objects that are planned to be removed.

Each refresh reads what was added since the last one, and judges everything again.

Finds another root inside a store, which makes the store's root the wrong one to remove from.

Objects that a layout would explain if one of the store's folders were the root belong to another installation, or to
the same one seen from the wrong root; a quarantine inside holds what was removed from another root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import ObjectStatus, OrphanCause
from tieredctl.model.removal import PlannedObject, PlanRecord
from tieredctl.ops.cluster.live_topics import (
    KnownTopics,
    LiveTopics,
    RememberedTopics,
    TopicSources,
    demand_all_topics,
    demand_believable,
    live_topics,
)
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.limits import Limits, StoreOverlap
from tieredctl.ops.orphan_removal.owners import Found
from tieredctl.ops.orphans.judgement import Certainty, Judge, judged_objects, verdict_of
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.ops.orphans.object_columns import KnownOwners, MetadataBegins, ObjectColumns, object_columns
from tieredctl.ops.orphans.promised_segments import PromisedSegments
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.ops.remote.listing import SpooledListing, record_batch
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import RESERVED_FOLDER, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.rlmm.segment_events import SegmentEvents

Verdict = tuple[ObjectStatus, OrphanCause | None]
_BY_LIVE_TOPICS = (
    (OrphanCause.TOPIC_GONE, ObjectStatus.OWNED),
    (OrphanCause.TOPIC_GONE, ObjectStatus.IN_PROGRESS),
    (OrphanCause.TOPIC_GONE, ObjectStatus.UNKNOWN),
    (OrphanCause.COPY_NEVER_FINISHED, ObjectStatus.IN_PROGRESS),
)
"""What an object was planned for, and what it is judged to be while its topic is not known to be gone."""
_STRANGE = (ObjectStatus.FOREIGN, ObjectStatus.UNKNOWN)
"""Such objects may as well belong to another cluster or layout."""
_MAY_BE_LOST = (
    "If no event names it, its events may have been lost: `tieredctl recover metadata` shows what can be registered "
    "again."
)
_AT_ONCE = 10_000


@dataclass(slots=True)
class FreshMetadata:
    """`Owners` by the metadata of a plan's cluster, as of the last `refresh`."""

    metadata: FollowedMetadata
    layout: Layout
    min_age_ms: int
    topic_sources: TopicSources
    """Which topics exist at the moment."""
    clock_ms: Callable[[], int]
    read_times: Callable[[], OriginalTimes] = lambda: NO_ORIGINAL_TIMES
    """Reads, once, the original times of objects that were put back."""
    installed_layouts: Sequence[Layout] = ()
    """No folder of the store may look like the root of one of these."""
    key: bytes | None = None
    """Opens the seals of what tieredctl noted that it removed."""
    _events: SegmentEvents = field(default_factory=SegmentEvents)
    _states: SegmentStates | None = None
    _certainty: Certainty | None = None
    _begins: MetadataBegins | None = None
    _judge: Judge | None = None
    _known: KnownOwners | None = None
    _live: LiveTopics | None = None
    _times: OriginalTimes | None = None
    _gone: set[str] = field(default_factory=set)
    """The topics that were gone by any answer."""

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does.
        """
        source, went_further = self.metadata.read(self._take)
        if went_further or self._states is None:
            self._states = segment_states(self._events)
        # Not before: what is asked about has to be older than the answer.
        events = self._events
        answer = live_topics(self.topic_sources, events.first_events_ms, source, events.last_timestamp_ms)
        demand_believable(self.topic_sources, answer, self._states.topics_with_segments())
        demand_all_topics(self.topic_sources, source)
        live = self._live = RememberedTopics(answer, self._gone)
        if self._times is None:
            self._times = self.read_times()
        assert self._certainty is not None
        assert self._begins is not None
        self._judge = Judge(self._states, self.clock_ms(), self.min_age_ms, live, self._certainty, self._times)
        known_topics = KnownTopics(self._events.first_events_ms, live)
        self._known = KnownOwners(self._events.partitions, known_topics, self._begins)

    @property
    def layout_name(self) -> str:
        return self.layout.name

    def statuses(self, objects: Iterable[StoredObject]) -> list[ObjectStatus]:
        return [status for status, _ in self.verdicts(objects)]

    def knows(self, objects: Iterable[StoredObject]) -> bool:
        return any(status not in _STRANGE for status, _ in self.verdicts(objects))

    def verdicts(self, objects: Iterable[StoredObject]) -> list[Verdict]:
        """The verdict on each object, by what was read last."""
        assert self._judge is not None
        assert self._known is not None
        return verdicts_on(objects, self.layout, self._known, self._judge)

    def missing(self, store: ObjectStore) -> list[str]:
        assert self._states is not None
        assert self._judge is not None
        assert self._known is not None
        assert self._live is not None
        promised = PromisedSegments(self._states, self._live, self.layout)
        with live_listing(store) as listing:
            batches = UnreservedObjects(listing).batches()
            for objects, verdicts in judged_objects(self._judge, self._known, batches, self.layout):
                promised.take(objects, verdicts)

        def read() -> EventStream:
            self.refresh()
            return EventStream(self.metadata.source())

        return promised.missing(store, read, self.key)

    def modified_ms(self, stored: StoredObject) -> int:
        """Since when the store has had the bytes of an object, as far as known."""
        return stored.last_modified_ms if self._times is None else self._times.of(stored)

    def announce(self, _store: WritableObjectStore, _doomed: Sequence[StoredObject], _lease: Hold, /) -> None:
        """Readers are not told."""

    def conclude(self, _store: WritableObjectStore, _gone: Iterable[str], _lease: Hold, /) -> None:
        """Nor of the end."""

    def is_read(self, key: str) -> bool | None:
        """Whether an object's topic is known to exist, by what was read last; None if that is not known."""
        explained = self.layout.explain(key)
        return None if explained is None or self._live is None else self._live.is_live(explained.topic_id)

    def fit(self, subject: str) -> StoreFit:
        folders = FolderCheck(subject, self.installed_layouts)
        return StoreFit(self.layout.name, folders, self._columns, subject)

    def may_be_purged(self, key: str, status: ObjectStatus, record: PlanRecord | None) -> bool:
        """Whether the metadata says so, or its plan removed it by name."""
        if status is ObjectStatus.ORPHAN:
            return True
        explained = self.layout.explain(key)
        # Unless all metadata partitions were surely read, what has no event may have some in another.
        if record is None or (explained is not None and not (self._certainty and self._certainty.partitions_are_sure)):
            return False
        # Releases that did not record names removed foreign and unknown objects only by name, too.
        if status is ObjectStatus.UNKNOWN:
            # What they took were keys that no layout explains; others may be of metadata that was lost since.
            return explained is None if record.unknown_keys is None else key in record.unknown_keys
        if status is ObjectStatus.FOREIGN and explained is not None:
            return record.foreign_topic_ids is None or explained.topic_id in record.foreign_topic_ids
        return False

    def _columns(self, objects: Iterable[StoredObject]) -> Iterator[ObjectColumns]:
        """Objects with the owners that they may have, by what was read last. Streams."""
        assert self._known is not None
        many = iter(objects)
        batches = iter(lambda: list(islice(many, _AT_ONCE)), [])
        return object_columns(map(record_batch, batches), self.layout, self._known)

    def demand_removable(self, batch: Sequence[Found], limits: Limits) -> None:
        """Raises TieredctlError if an object may not be removed: `world-changed` if its status is no longer the planned
        one, or if no plan may remove it; `topic-unclear` if it is no longer known whether its topic is gone.

        The status in the plan is only compared, never trusted.
        """
        oldest_young_ms = self.clock_ms() - limits.min_age_ms
        verdicts = self.verdicts(stored for _, stored in batch)
        for (planned, stored), (status, _) in zip(batch, verdicts, strict=True):
            if status.value != planned.status:
                raise self._changed(planned, status)
            if not self._may_go(planned.key, status, limits):
                message = f"{planned.key} is {status.value}, and neither a signed plan nor an option names it."
                hint = f"To remove {status.value} objects, name them with --foreign TOPIC-ID or --unknown KEY."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint=hint)
            if self.modified_ms(stored) > oldest_young_ms:
                message = f"{planned.key} is younger than the minimum age."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Wait, or give another --min-age.")

    def demand_endable(self, uploads: Sequence[StoredObject], limits: Limits) -> None:
        """Raises TieredctlError `world-changed` if an incomplete upload, given as the object that it would become, may
        still be completed, or belongs to another cluster."""
        oldest_young_ms = self.clock_ms() - limits.min_age_ms
        for upload, (status, _) in zip(uploads, self.verdicts(uploads), strict=True):
            ended = status in (ObjectStatus.ORPHAN, ObjectStatus.OWNED)
            if not ended or upload.last_modified_ms > oldest_young_ms or upload.key.startswith(RESERVED_FOLDER):
                raise TieredctlError(ErrorCode.WORLD_CHANGED, f"An upload of {upload.key} may still be completed.")

    def _may_go(self, key: str, status: ObjectStatus, limits: Limits) -> bool:
        if key.startswith(RESERVED_FOLDER):
            return False
        if status is ObjectStatus.FOREIGN:
            explained = self.layout.explain(key)
            return explained is not None and explained.topic_id in limits.foreign_topic_ids
        if status is ObjectStatus.UNKNOWN:
            return key in limits.unknown_keys
        return status is ObjectStatus.ORPHAN

    def _changed(self, planned: PlannedObject, status: ObjectStatus) -> TieredctlError:
        if (planned.cause, status) in _BY_LIVE_TOPICS and self.is_read(planned.key) is None:
            message = f"{planned.key} was planned because its topic was gone; whether the topic exists is now unknown."
            return TieredctlError(ErrorCode.TOPIC_UNCLEAR, message)
        message = f"{planned.key} was {planned.status}, and is now {status.value}."
        if status is ObjectStatus.UNKNOWN:
            return TieredctlError(ErrorCode.WORLD_CHANGED, message, hint=_MAY_BE_LOST)
        return TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _take(self, stream: EventStream) -> list[Finding]:
        read_events(stream, self._events)
        self._certainty = Certainty.of(stream)
        self._begins = MetadataBegins.of(stream.coverage, self._events.first_records_ms)
        return stream.findings


def verdicts_on(objects: Iterable[StoredObject], layout: Layout, owners: KnownOwners, judge: Judge) -> list[Verdict]:
    """The verdict on each of some objects."""
    with SpooledListing(objects) as listing:
        return [
            verdict_of(code)
            for _, verdicts in judged_objects(judge, owners, listing.batches(), layout)
            for code in verdicts.codes.tolist()
        ]


class StoreFit:
    """A `Fit`: another root inside is noticed among all objects, and the overlap only among the store's own."""

    def __init__(
        self,
        layout_name: str,
        folders: FolderCheck,
        columns: Callable[[Iterable[StoredObject]], Iterator[ObjectColumns]],
        subject: str,
    ) -> None:
        self._layout_name, self._subject = layout_name, subject
        self._folders, self._columns = folders, columns
        self._overlap = StoreOverlap()

    @property
    def listed(self) -> int:
        return self._overlap.listed

    @property
    def is_sure(self) -> bool:
        return self._overlap.is_sure

    def look_at_planned(self, objects: Iterable[StoredObject]) -> int:
        count = 0
        for columns in self._columns(objects):
            self._folders.look_at(columns)
            count += len(columns.sizes)
        return count

    def look_at(self, objects: Sequence[StoredObject]) -> None:
        for columns in self._columns(objects):
            self._folders.look_at(columns)
            self._overlap.look_at(columns)

    def demand(self) -> None:
        self._folders.demand_none()
        self._overlap.demand(self._subject, self._layout_name)


class FolderCheck:
    """Looks at the objects that no layout explains: in each folder, at one object for each suffix and length of name,
    since a layout's objects of one kind share both."""

    def __init__(self, subject: str, layouts: Sequence[Layout]) -> None:
        """`subject` is the store's URL, `layouts` all that are installed."""
        self._subject = subject
        self._layouts = layouts
        self._kinds_seen: set[tuple[str, str, int]] = set()
        self._refusal: TieredctlError | None = None
        if f"/{RESERVED_FOLDER}" in f"{subject.rstrip('/')}/":
            message = f"{subject} is inside the folder in which tieredctl keeps removed objects."
            hint = "`orphans restore` puts them back, and `orphans purge` deletes them for good."
            self._refusal = TieredctlError(ErrorCode.QUARANTINE_SCANNED, message, hint=hint)

    def look_at(self, objects: ObjectColumns) -> None:
        """Some of the store's objects."""
        inside = pc.match_substring(objects.keys, f"/{RESERVED_FOLDER}")
        if self._refusal is None and pc.any(inside).as_py():
            self._refuse_quarantine(key_text(objects.keys.filter(inside)[0].as_py()))
        for row in np.flatnonzero(~objects.is_explained).tolist():
            key = key_text(objects.keys[row].as_py())
            folder, _, name = key.rpartition("/")
            kind = folder, name.rpartition(".")[2], len(name)
            if kind not in self._kinds_seen:
                self._kinds_seen.add(kind)
                self._look_at_key(key)

    def demand_none(self) -> None:
        """Raises TieredctlError `ambiguous-prefix` or `quarantine-scanned` where there is another root."""
        if self._refusal is not None:
            raise self._refusal

    def _look_at_key(self, key: str) -> None:
        folder, slash, rest = key.partition("/")
        while slash and self._refusal is None:
            for layout in self._layouts:
                if layout.explain(rest) is not None:
                    message = f"{self._subject} contains another store's root, {folder}/, of layout {layout.name}."
                    hint = f"Give that folder as --store, or move it out of this one: {key} is there."
                    self._refusal = TieredctlError(ErrorCode.AMBIGUOUS_PREFIX, message, hint=hint)
            head, slash, rest = rest.partition("/")
            folder += f"/{head}"

    def _refuse_quarantine(self, key: str) -> None:
        folder = key.partition(f"/{RESERVED_FOLDER}")[0]
        message = f"{self._subject} contains the quarantine of another root, {folder}/."
        hint = f"Plan for {self._subject.rstrip('/')}/{folder} instead: {key} is there."
        self._refusal = TieredctlError(ErrorCode.QUARANTINE_SCANNED, message, hint=hint)
