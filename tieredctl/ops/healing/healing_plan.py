"""What `heal` would write for a segment: each object from the most trusted source whose bytes are proven.

Proven means: put in its place, the segment has no finding of `verify --level full` there. Bytes whose leader epochs
contradict the segment's lineage are such a finding, so they are never taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.healing.examination import Condition, Examined, examine
from tieredctl.ops.healing.index_rebuilding import NOTHING_REBUILT
from tieredctl.ops.healing.known_segments import KnownSegmentOfPartition
from tieredctl.ops.healing.part_rebuilding import Found, NotRebuilt, PartRebuilding, other_timestamp
from tieredctl.ops.healing.segment_views import StoreWith
from tieredctl.ops.healing.sources import (
    Candidate,
    ObjectSources,
    demand_small,
    shows_nothing,
)
from tieredctl.ops.verification.accepted_losses import AcceptedLoss
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject
from tieredctl.ports.replica_disks import NoDisks, Refusal, ReplicaDisks

_FIRST = (Part.MANIFEST, Part.LOG)
"""What the others are read by, and compared with."""
_MOST_REASONS = 4


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """An object that is missing or damaged, and the bytes to write."""

    part: Part
    key: str
    condition: Condition
    reason: str
    stored: StoredObject | None = None
    found: Found | None = None
    """None where nothing has its bytes."""
    obstacle: str | None = None
    is_unknown: bool = False
    """Whether a place that may have its bytes could not be read."""

    @property
    def action(self) -> str:
        """`put`, `replace`, `unknown` or `impossible`."""
        if self.found is None:
            return "unknown" if self.is_unknown else "impossible"
        return "put" if self.stored is None else "replace"

    @property
    def claim(self) -> tuple[object, ...]:
        """What is confirmed: it must be the same when it is done."""
        of = None if self.found is None else (self.found.source, self.found.place)
        return (self.part, self.key, self.stored, self.action, of)

    def document(self) -> Document:
        """A row, without the bytes."""
        found = self.found
        return {
            "part": self.part.value,
            "condition": self.condition.value,
            "action": self.action,
            "source": None if found is None else found.source.value,
            "from": None if found is None else found.place,
            "bytes": None if self.stored is None else self.stored.size,
            "newBytes": None if found is None else found.size,
            "key": self.key,
            "reason": self.reason,
            "obstacle": self.obstacle,
        }


@dataclass(frozen=True, slots=True)
class HealingPlan:
    """A segment, and what to do about each of its objects that is not sound."""

    metadata: RemoteLogSegmentMetadata
    objects: Sequence[PlannedObject]
    rebuilt_snapshot: bytes | None = None
    """The producer snapshot that is to be written, if one is: the next segment's parts may need it."""
    accepted: Sequence[Part] = ()
    """Those of the objects that do not come back that were accepted as lost before."""

    def to_write(self) -> list[PlannedObject]:
        """Objects that come back, in the order in which they are written: what describes the others last."""
        writable = [one for one in self.objects if one.found is not None]
        return sorted(writable, key=lambda one: one.part is Part.MANIFEST)

    def not_found(self) -> list[PlannedObject]:
        """Objects that do not come back: of which nothing has the bytes, or nothing that could be read."""
        return [one for one in self.objects if one.found is None]

    def unaccepted(self) -> list[PlannedObject]:
        """Objects of which nothing has the bytes, and that nobody accepted as lost."""
        return [one for one in self.not_found() if not one.is_unknown and one.part not in self.accepted]

    def unknown(self) -> list[PlannedObject]:
        """Objects that may have bytes where nothing could be read, and that nobody accepted as lost."""
        return [one for one in self.not_found() if one.is_unknown and one.part not in self.accepted]

    def losses(self, now_ms: int) -> list[AcceptedLoss]:
        """What is `unaccepted`, to be recorded as lost. Time in ms since the epoch."""
        return [
            AcceptedLoss(
                segment_id=self.metadata.segment_id,
                part=one.part.value,
                key=one.key,
                version=None if one.stored is None else one.stored.version,
                accepted_ms=now_ms,
                reason=one.obstacle or "",
            )
            for one in self.unaccepted()
        ]

    def without_bytes(self) -> HealingPlan:
        """As it is shown: what is written is read and proven again."""
        return replace(self, objects=[replace(one, found=one.found and one.found.named()) for one in self.objects])

    def rows(self) -> list[Document]:
        """A row for each object that is not sound, with its segment."""
        of = {
            **partition_document(self.metadata.topic_id_partition),
            "startOffset": self.metadata.start_offset,
            "segmentId": self.metadata.segment_id,
        }
        return [of | one.document() for one in self.objects]


@dataclass(frozen=True)
class Healer:
    """Looks at segments, and finds the bytes of what they lack. Changes nothing."""

    store: ObjectStore
    layout: Layout
    sources: ObjectSources
    disks: ReplicaDisks = field(default_factory=NoDisks)

    @cached_property
    def other_forms(self) -> OtherForms:
        """Which segments without objects are in a table instead."""
        return OtherForms(self.store, self.layout)

    def plan(
        self,
        segment: KnownSegmentOfPartition,
        index_interval_bytes: int,
        rebuilt_before: Mapping[str, bytes] = NOTHING_REBUILT,
    ) -> HealingPlan:
        """Reads the whole segment, and candidates for what is wrong with it until one is proven. `rebuilt_before` has
        producer snapshots of other segments that are healed too, by segment id.

        Raises TieredctlError where the store does not answer, and `usage` for a segment that is too large, or is not
        stored as objects at all.
        """
        return _SegmentHealing(self, segment, index_interval_bytes, rebuilt_before).plan()


class _SegmentHealing:
    """One segment while bytes for it are looked for."""

    def __init__(
        self, healer: Healer, segment: KnownSegmentOfPartition, interval: int, rebuilt_before: Mapping[str, bytes]
    ) -> None:
        self._healer, self._segment, self._interval = healer, segment, interval
        self._metadata, self._rebuilt_before = segment.metadata, rebuilt_before
        layout = healer.layout
        self._keys = possible_objects(layout, self._metadata)
        self._found: dict[Part, Found] = {}
        self._refused: dict[Part, list[str]] = {}
        self._unread: set[Part] = set()
        """Parts that may be in a place that could not be read."""
        self._snapshot: bytes | None = None

    def plan(self) -> HealingPlan:
        before = self._examined({})
        if not before.damage:
            return HealingPlan(self._metadata, [])
        if not before.stored and (elsewhere := self._healer.other_forms.not_judged(self._metadata)):
            raise TieredctlError(ErrorCode.USAGE, f"Segment {self._metadata.segment_id}: {elsewhere.message}.")
        demand_small(self._metadata)
        now = self._from_objects(before)
        if now.damage:
            now = self._rebuilt(now)
        damage = dict(before.damage)
        for part in self._found.keys() | now.damage.keys():
            damage.setdefault(part, now.damage.get(part, "it does not fit the segment's other objects"))
        planned = [self._planned(part, reason, before) for part, reason in damage.items() if self._is_due(part, now)]
        return HealingPlan(self._metadata, planned, self._snapshot)

    def _is_due(self, part: Part, now: Examined) -> bool:
        """Not so for what only a damaged manifest, or index, made look damaged."""
        return part in self._found or part in now.damage

    def _planned(self, part: Part, reason: str, before: Examined) -> PlannedObject:
        source, stored = self._found.get(part), before.stored.get(part)
        obstacle = None if source else self._obstacle(part)
        condition = Condition.MISSING if stored is None else Condition.DAMAGED
        is_unknown = source is None and self._may_be_somewhere(part)
        return PlannedObject(part, self._keys[part], condition, reason, stored, source, obstacle, is_unknown)

    def _may_be_somewhere(self, part: Part) -> bool:
        """Also so for what could be rebuilt, if what it is rebuilt from may be somewhere."""
        return any(one in self._unread and one not in self._found for one in (part, *_FIRST))

    def _obstacle(self, part: Part) -> str:
        refused = list(dict.fromkeys(self._refused.get(part, ())))
        if not refused:
            return "nothing has its bytes"
        more = f"; and {len(refused) - _MOST_REASONS} more" if len(refused) > _MOST_REASONS else ""
        return "; ".join(refused[:_MOST_REASONS]) + more

    def _refuse(self, part: Part, refused: Refusal) -> None:
        if part not in self._keys and refused.is_unread:
            part = Part.INDEXES
        if refused.is_unread:
            self._unread.add(part)
            # First, since it is what somebody may mend.
            self._refused.setdefault(part, []).insert(0, f"{refused.place}: could not be read: {refused.reason}")
        else:
            self._refused.setdefault(part, []).append(f"{refused.place}: {refused.reason}")

    def _examined(self, changed: Mapping[Part, bytes], hidden: Sequence[Part] = ()) -> Examined:
        """The segment with what was found so far, and other bytes in some objects."""
        store = StoreWith(self._healer.store, self._objects(changed), [self._keys[part] for part in hidden])
        return examine(self._metadata, store, self._healer.layout, self._interval)

    def _objects(self, changed: Mapping[Part, bytes]) -> dict[str, bytes]:
        found = {self._keys[part]: found.data for part, found in self._found.items()}
        return found | {self._keys[part]: data for part, data in changed.items()}

    def _from_objects(self, now: Examined) -> Examined:
        """Whole objects, byte for byte, as far as any source has them."""
        for part in (*_FIRST, *(part for part in self._keys if part not in _FIRST)):
            if part not in now.damage:
                continue
            if self._needs_log(part) and Part.LOG in now.damage:
                continue
            for candidate in self._candidates(part):
                proven = self._proven(part, candidate, now)
                if proven is not None:
                    self._found[part] = proven
                    now = self._examined({})
                    break
        return now

    @staticmethod
    def _needs_log(part: Part) -> bool:
        """Whether only the log shows that the part is right."""
        return part not in (*_FIRST, Part.LEADER_EPOCH)

    def _candidates(self, part: Part) -> Iterator[Candidate]:
        for one in self._healer.sources.candidates(self._metadata, part, self._keys[part]):
            if isinstance(one, Refusal):
                self._refuse(part, one)
            else:
                yield one

    def _proven(self, part: Part, candidate: Candidate, now: Examined) -> Found | None:
        """A candidate's bytes, if the object is sound with them: a log by itself, and beside what is sound without it;
        anything else beside the log."""
        hidden = [one for one in self._keys if one not in _FIRST] if part is Part.LOG else []
        try:
            data = _read(candidate)
            damage = self._damage_with(part, data, hidden, now)
            if _blamed(part, damage) and (again := _read(candidate)) != data:  # it was altered on the way
                data, damage = again, self._damage_with(part, again, hidden, now)
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            self._refuse(part, Refusal(candidate.place, error.message, shows_nothing(error)))
            return None
        blamed = _blamed(part, damage)
        if blamed is None:
            return Found(candidate.source, candidate.place, len(data), data)
        self._refuse(part, Refusal(candidate.place, damage[blamed]))
        return None

    def _damage_with(self, part: Part, data: bytes, hidden: Sequence[Part], now: Examined) -> Mapping[Part, str]:
        """What is wrong with the segment where an object has these bytes."""
        damage = self._examined({part: data}, hidden).damage
        if part is Part.LOG and not damage.keys() & _FIRST:
            return self._contradictions(data, now)
        return damage

    def _contradictions(self, log: bytes, now: Examined) -> dict[Part, str]:
        """What speaks against a log that is sound by itself."""
        store = StoreWith(self._healer.store, self._objects({Part.LOG: log}))
        reader = self._healer.layout.open_segment(store, self._metadata)
        if other := other_timestamp(self._metadata, reader.stream(Part.LOG), reader.parts()[Part.LOG]):
            return other
        after = self._examined({Part.LOG: log}).damage
        against = next((part for part in after if self._speaks(part, now) or part is Part.LOG), None)
        if against is None:
            return {}
        return {Part.LOG: f"the stored {against.value} contradicts it: {after[against]}"}

    def _speaks(self, part: Part, now: Examined) -> bool:
        """A transaction index that is not there may be lost with the log, unless the broker said that there is none."""
        if part is Part.TRANSACTION_INDEX and part not in now.stored:
            return bool(self._metadata.txn_idx_empty)
        return part not in now.damage

    def _rebuilt(self, now: Examined) -> Examined:
        """What no source has as a whole: built of the segment's parts, as the manager would have stored them."""
        healer, objects = self._healer, self._objects({})
        rebuilding = PartRebuilding(
            self._segment,
            StoreWith(healer.store, objects),
            healer.layout,
            healer.disks,
            self._interval,
            self._rebuilt_before,
            self._refuse,
        )
        found = rebuilding.objects(now)
        if isinstance(found, NotRebuilt):
            for part in now.damage:
                self._refuse(part, Refusal("rebuilding it", found.reason))
            return now
        self._snapshot = rebuilding.rebuilt_snapshot
        why: str | None = None
        lost = [part for part in found if part in now.damage or part not in now.stored]
        for wanted in (lost, [*lost, Part.MANIFEST], list(found)):
            chosen = {part: one for part, one in found.items() if part in wanted and self._is_other(part, one)}
            after = self._examined({part: one.data for part, one in chosen.items()})
            why = self._why_not(now, after)
            if why is None:
                self._found |= {part: one for part, one in chosen.items() if part not in after.damage}
                return after
        for part in now.damage:
            self._refuse(part, Refusal("rebuilding it", why or ""))
        return now

    def _why_not(self, now: Examined, after: Examined) -> str | None:
        """Why what was built is not written; None where it makes the segment better."""
        if made_worse := sorted(after.damage.keys() - now.damage.keys()):
            return f"{made_worse[0].value} would not be sound: {after.damage[made_worse[0]]}"
        if not now.damage.keys() - after.damage.keys():
            return next(iter(after.damage.values()))
        layout = self._healer.layout
        claimed, promised = layout.stored_size(self._metadata), layout.promised_objects(self._metadata)
        size = sum(stored.size for part, stored in after.stored.items() if part in promised)
        if after.damage or claimed in (None, size):
            return None
        return f"the segment's objects would have {size} bytes in total, but its custom metadata has {claimed}"

    def _is_other(self, part: Part, found: Found) -> bool:
        """Whether an object has other bytes than the one in the store."""
        stored = self._healer.store.head(self._keys[part])
        return stored is None or stored.size != found.size or self._healer.store.read(stored.key) != found.data


def _read(candidate: Candidate) -> bytes:
    """A candidate's bytes; what a store listed, or told of, is asked for twice before it is not there."""
    try:
        return candidate.read()
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
    return candidate.read()


def _blamed(part: Part, damage: Mapping[Part, str]) -> Part | None:
    """Which of the two the damage is of that bytes for a part are believed by."""
    return next((one for one in (part, Part.MANIFEST) if one in damage), None)
