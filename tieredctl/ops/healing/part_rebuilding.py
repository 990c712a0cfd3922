"""Parts of a segment as its broker wrote them, and the objects that the manager would have stored for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.zstd_frame import decompress_zstd
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.healing.examination import Examined, damage_of_parts
from tieredctl.ops.healing.index_rebuilding import earlier_producers, rebuilt_parts
from tieredctl.ops.healing.known_segments import KnownSegmentOfPartition
from tieredctl.ops.healing.leader_epochs import leader_epoch_checkpoint
from tieredctl.ops.healing.segment_views import LayoutWithParts
from tieredctl.ops.healing.sources import Source
from tieredctl.ports.layout import ORIGINAL_PARTS, Layout, Part, WritingLayout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.replica_disks import Refusal, ReplicaDisks, ReplicaSegment

_NEVER_LOOKED_AT = "the metadata says that the segment has no aborted transaction: brokers would never fetch the index"


@dataclass(frozen=True, slots=True)
class Found:
    """Bytes of an object, and where they are from."""

    source: Source
    place: str
    size: int
    data: bytes = field(repr=False)

    def named(self) -> Found:
        """The same without the bytes."""
        return Found(self.source, self.place, self.size, b"")


@dataclass(frozen=True, slots=True)
class NotRebuilt:
    """Why no object can be built."""

    reason: str


def other_timestamp(metadata: RemoteLogSegmentMetadata, log: Iterable[bytes], size: int) -> dict[Part, str]:
    """A log without the latest timestamp that the metadata names is not this segment's."""
    claimed, latest = metadata.max_timestamp_ms, -1
    for block in scan_log(log, size, AsColumns(), metadata.start_offset):
        if not isinstance(block, Damage) and len(block.positions):
            latest = max(latest, int(block.headers["maxTimestamp"].max()))
    if latest in (-1, claimed):
        return {}
    return {Part.LOG: f"its latest timestamp is {latest}, but the metadata has {claimed}"}


@dataclass(slots=True)
class PartRebuilding:
    """Builds the parts of one segment."""

    segment: KnownSegmentOfPartition
    store: ObjectStore
    """With the objects that were found already."""
    layout: Layout
    disks: ReplicaDisks
    index_interval_bytes: int
    rebuilt_before: Mapping[str, bytes]
    refuse: Callable[[Part, Refusal], None]
    rebuilt_snapshot: bytes | None = None
    _salvaged: bytes | None = None
    """A checkpoint from an object of several parts, of which another is damaged."""
    _replica: ReplicaSegment | None = None
    """Where the log is from, if from a disk."""

    def objects(self, now: Examined) -> dict[Part, Found] | NotRebuilt:
        """The objects that are to be written for the damage that is left; only those of which all is known."""
        writes_parts = not self.layout.verbatim_parts
        if writes_parts and not isinstance(self.layout, WritingLayout):
            return NotRebuilt(f"heal copies objects of the layout {self.layout.name}, and cannot build them")
        parts = self._sound_parts(now)
        if Part.LOG not in parts:
            log = self._log(now, parts)
            if log is None:
                return self._small_parts(now, parts)
            parts[Part.LOG] = log
        missing = self._complete(parts, now)
        if not writes_parts:
            return self._verbatim(parts, now)
        if missing:
            return NotRebuilt(missing)
        assert isinstance(self.layout, WritingLayout)
        try:
            stored = self.layout.stored_objects(self.store, self.segment.metadata, parts)
        except DecodeError as error:
            return NotRebuilt(error.reason)
        except TieredctlError as error:
            if error.code is not ErrorCode.USAGE:
                raise
            return NotRebuilt(error.message)
        return {part: self._made(part, data) for part, data in stored.items()}

    def _verbatim(self, parts: Mapping[Part, bytes], now: Examined) -> dict[Part, Found]:
        lost = [part for part in parts if part in now.damage or part not in now.stored]
        return {part: self._made(part, parts[part]) for part in lost}

    def _small_parts(self, now: Examined, parts: dict[Part, bytes]) -> dict[Part, Found] | NotRebuilt:
        """Without a log: the checkpoint, which does not need one."""
        if Part.LEADER_EPOCH in now.damage and self._add_leader_epochs(parts):
            return self._verbatim({Part.LEADER_EPOCH: parts[Part.LEADER_EPOCH]}, now)
        return NotRebuilt("nothing has its log")

    def _made(self, part: Part, data: bytes) -> Found:
        if self._replica is not None:
            return Found(Source.DISK, self._replica.place, len(data), data)
        if part is Part.LEADER_EPOCH:
            return Found(Source.METADATA, "segmentLeaderEpochs and the checkpoints beside it", len(data), data)
        return Found(Source.LOG, "the segment's log", len(data), data)

    def _sound_parts(self, now: Examined) -> dict[Part, bytes]:
        """The parts that can be read, and in whose objects nothing was found."""
        if Part.MANIFEST in now.damage:
            return {}
        reader = self.layout.open_segment(self.store, self.segment.metadata)
        keys = self.layout.promised_objects(self.segment.metadata)
        in_object = {part: Part.INDEXES if Part.INDEXES in keys else part for part in ORIGINAL_PARTS}
        in_object[Part.LOG] = Part.LOG
        parts = {}
        for part in reader.parts():
            if in_object[part] not in now.damage:
                parts[part] = reader.read(part)
            elif in_object[part] is Part.INDEXES and part is Part.LEADER_EPOCH:
                with suppress(DecodeError):
                    self._salvaged = reader.read(part)
        return parts

    def _log(self, now: Examined, beside: Mapping[Part, bytes]) -> bytes | None:
        """The first log that is proven, and that no sound part beside it contradicts."""
        for place, log, replica in self._logs(now):
            damage = (
                self._damage({Part.LOG: log})
                or other_timestamp(self.segment.metadata, [log], len(log))
                or self._damage({**beside, Part.LOG: log})
            )
            if not damage:
                self._replica = replica
                return log
            part, reason = next(iter(damage.items()))
            beside_it = "" if part is Part.LOG else f"the stored {part.value} contradicts it: "
            self.refuse(Part.LOG, Refusal(place, beside_it + reason))
        return None

    def _logs(self, now: Examined) -> Iterator[tuple[str, bytes, ReplicaSegment | None]]:
        metadata = self.segment.metadata
        stored = now.stored.get(Part.LOG)
        if Part.MANIFEST in now.damage and stored is not None and stored.size <= 2 * metadata.segment_size_in_bytes:
            data = self.store.read(stored.key)
            yield stored.key, data, None
            with suppress(DecodeError):  # it is not compressed, or encrypted too
                yield stored.key, decompress_zstd(memoryview(data), metadata.segment_size_in_bytes), None
        for found in self.disks.segments(metadata):
            if isinstance(found, Refusal):
                self.refuse(Part.LOG, found)
            else:
                yield found.place, found.log, found

    def _complete(self, parts: dict[Part, bytes], now: Examined) -> str | None:
        """Adds what can be rebuilt of what is damaged. Returns why something is still missing."""
        metadata, obstacle = self.segment.metadata, None
        if Part.LEADER_EPOCH not in parts and not self._add_leader_epochs(parts):
            obstacle = "neither the metadata nor a checkpoint beside it shows the leader epochs before the segment"
            self.refuse(Part.LEADER_EPOCH, Refusal("rebuilding it", obstacle))
        view = LayoutWithParts(self.layout, metadata.segment_id, parts)
        before = earlier_producers(metadata, self.segment.cache, self.store, view, self.rebuilt_before)
        rebuilt = rebuilt_parts(metadata, self.store, view, self.index_interval_bytes, before.entries)
        for part in (Part.OFFSET_INDEX, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT):
            if part not in parts and part in rebuilt:
                parts[part] = rebuilt[part]
                if part is Part.PRODUCER_SNAPSHOT:
                    self.rebuilt_snapshot = rebuilt[part]
        if Part.PRODUCER_SNAPSHOT not in parts:
            self._add_snapshot_of_replica(parts)
        if Part.PRODUCER_SNAPSHOT not in parts:
            obstacle = f"the producers as of the segment's first offset are unknown: {before.unknown_because}"
            self.refuse(Part.PRODUCER_SNAPSHOT, Refusal("rebuilding it", obstacle))
        return self._add_transactions(parts, rebuilt, now) or obstacle

    def _add_leader_epochs(self, parts: dict[Part, bytes]) -> bool:
        checkpoint = leader_epoch_checkpoint(self.segment.metadata, self.segment.cache, self.store, self.layout)
        if checkpoint is None and self._salvaged is not None and not self._damage({Part.LEADER_EPOCH: self._salvaged}):
            checkpoint = self._salvaged
        if checkpoint is None:
            return False
        parts[Part.LEADER_EPOCH] = checkpoint
        return True

    def _add_snapshot_of_replica(self, parts: dict[Part, bytes]) -> None:
        """The one that a broker took there, if it agrees with the log."""
        replicas = [self._replica] if self._replica else self.disks.segments(self.segment.metadata)
        for replica in replicas:
            if isinstance(replica, Refusal):
                self.refuse(Part.PRODUCER_SNAPSHOT, replica)
                continue
            if replica.producer_snapshot is None:
                continue
            snapshot = replica.producer_snapshot
            if replica.log == parts[Part.LOG] and not self._damage(
                {Part.LOG: parts[Part.LOG], Part.PRODUCER_SNAPSHOT: snapshot}
            ):
                parts[Part.PRODUCER_SNAPSHOT] = snapshot
                return

    def _add_transactions(self, parts: dict[Part, bytes], rebuilt: Mapping[Part, bytes], now: Examined) -> str | None:
        """A broker copies an index only where a transaction was aborted."""
        index = Part.TRANSACTION_INDEX
        is_unknown = Part.LOG in now.damage and index not in now.stored
        if index in parts or not (index in now.damage or is_unknown or not self.layout.verbatim_parts):
            return None
        data, is_denied = rebuilt.get(index), bool(self.segment.metadata.txn_idx_empty)
        if data and not is_denied:
            parts[index] = data
        if data == b"" or is_denied != bool(data):
            return None
        why = _NEVER_LOOKED_AT if data else "the producers as of the segment's first offset are unknown"
        self.refuse(index, Refusal("rebuilding it", why))
        return why

    def _damage(self, parts: Mapping[Part, bytes]) -> dict[Part, str]:
        return damage_of_parts(self.segment.metadata, parts, self.store, self.layout, self.index_interval_bytes)
