"""Everything that tieredctl asks of the world, with a boundary before and behind each question.

At a boundary the broker may act, another run may take over, and the process may be killed. In between, a question may
fail: refused, or answered with the answer lost.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import lt
from pathlib import Path
from random import Random

from tests.removal.chaos.model_cluster import METADATA_PARTITIONS, ModelCluster, ReadUpTo
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.formats.removal_files import RECEIPT
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.findings import Finding
from tieredctl.model.removal import Receipt, ReceiptsHeader
from tieredctl.ops.guards.own_objects import LEASE_KEY, QUARANTINE
from tieredctl.ops.guards.quarantine_keys import quarantined
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.orphan_removal.receipts import DamageTaker, Receipts, _drop_unfinished_line
from tieredctl.ports.metadata_source import MetadataSource, OffsetRange
from tieredctl.ports.object_store import (
    RESERVED_FOLDER,
    Capability,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    MultipartUpload,
    Retention,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.storage.upload_parts import NoUploads

_THROTTLED = TieredctlError(ErrorCode.STORE_THROTTLED, "The store asks for patience.")
_NO_ANSWER = TieredctlError(ErrorCode.STORE_UNREACHABLE, "The store did not answer.")


def kill_this_process() -> None:
    """Without any last word."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class World:
    """What happens around a run of tieredctl."""

    cluster: ModelCluster
    chance: Random
    clock_ms: Callable[[], int]
    kill_at: int | None = None
    """At which boundary the process dies."""
    die: Callable[[], None] = kill_this_process
    take_over: Callable[[], object] | None = None
    """What another run does, at the first boundary from `take_over_at` on; unless `take_over_anywhere`, not where this
    one is between renewing its lease and deleting: there nothing can stop it."""
    take_over_at: int = 0
    take_over_anywhere: bool = False
    broker_activity: float = 0.3
    """How likely the broker acts at a boundary."""
    fault_rate: float = 0.0
    copy_fault_rate: float = 0.0
    """How likely an object is not copied, nor looked at before."""
    lag_rate: float = 0.0
    """How likely a replica of the metadata answers that is behind."""
    lie_rate: float = 0.0
    """How likely the store copies other bytes into quarantine than it was asked to, or deletes nothing, and says that
    all is done."""
    skew_ms: int = 0
    """How far the host's clock is ahead of the store's, which is `clock_ms`."""
    boundaries: int = 0
    last_read: ReadUpTo = (0,) * METADATA_PARTITIONS
    """Up to where the metadata was read last, and `read_before` how far it was at most."""
    read_before: ReadUpTo = (0,) * METADATA_PARTITIONS
    must_have_read: ReadUpTo = (0,) * METADATA_PARTITIONS
    """What there was of it when the last receipt was written, or the quarantine listed."""
    violations: list[str] = field(default_factory=list)
    _may_delete: bool = False

    def boundary(self, *, may_delete: bool = False) -> None:
        """The world goes on."""
        self.boundaries += 1
        self._may_delete = may_delete
        while self.chance.random() < self.broker_activity and not self.cluster.is_at_rest:
            self.cluster.act(self.clock_ms())
        may_take_over = self.take_over_anywhere or not self._may_delete
        if self.take_over is not None and self.boundaries >= self.take_over_at and may_take_over:
            take_over, self.take_over = self.take_over, None
            take_over()
        if self.boundaries == self.kill_at:
            self.die()

    def host_ms(self) -> int:
        """The time by the clock of the host that tieredctl runs on."""
        return self.clock_ms() + self.skew_ms

    def fails(self) -> bool:
        return self.chance.random() < self.fault_rate

    def lies(self) -> bool:
        return self.chance.random() < self.lie_rate

    def look_at_deletion(self, key: str) -> None:
        """Nothing is deleted that was owned when the metadata had to be read last, nor the last copy of it; and nothing
        at all where nobody knows what time it is. A lease that is given back is not data."""
        if key == LEASE_KEY:
            return
        if abs(self.skew_ms) > MOST_SKEW_MS:
            self.violations.append(
                f"{key} was deleted although the clocks of host and store are {self.skew_ms} ms apart"
            )
        if any(map(lt, self.last_read, self.read_before)):
            self.violations.append(f"{key} was deleted by what a replica said that is behind")
        if self.cluster.lost and not key.startswith(RESERVED_FOLDER):
            self.violations.append(f"{key} was deleted although what the metadata promises is missing")
        original = quarantined(key) if key.startswith(QUARANTINE) else None
        # What was read beyond may say that its broker gave it up.
        owned = self.cluster.owned_objects(tuple(map(max, self.must_have_read, self.last_read)))
        if key in owned or (original and original.key in owned and self.cluster.read(original.key) is None):
            self.violations.append(f"{key} was deleted although a segment owns it")


@dataclass(frozen=True)
class ObservedStore(NoUploads):
    """Another store, of which one object after another is deleted."""

    store: WritableObjectStore
    world: World

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.store.capabilities

    @property
    def parallel_reads(self) -> int:
        return 1

    def reconnected(self) -> ObservedStore:
        return self

    @property
    def url(self) -> str:
        return self.store.url

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self._before()
        for stored in self.store.list(prefix, start_after):
            if self.world.fails():
                raise _NO_ANSWER
            yield stored
        self.world.boundary()
        if prefix == QUARANTINE:
            self.world.must_have_read = self.world.cluster.read_up_to()

    def head(self, key: str) -> StoredObject | None:
        self._before()
        if not key.startswith(RESERVED_FOLDER) and self.world.chance.random() < self.world.copy_fault_rate:
            raise _THROTTLED
        found = self.store.head(key)
        self._after()
        return found

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._before()
        data = self.store.read(key, start, end)
        self._after()
        return data

    def stream(self, key: str, start: int = 0, chunk_size: int = 1 << 20) -> Iterator[bytes]:
        self._before()
        yield from self.store.stream(key, start, chunk_size)
        self._after()

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        self._before()
        return self.store.checksums(stored)

    def time_ms(self) -> int | None:
        return self.store.time_ms()

    def retention(self) -> Retention:
        return self.store.retention()

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return self.store.kept_versions(prefix)

    def read_version(self, kept: KeptVersion) -> bytes:
        return self.store.read_version(kept)

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        return self.store.soft_deleted(key)

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        yield from self.store.multipart_uploads(prefix)

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        return self.store.multipart_upload_bytes(upload)

    def write(self, key: str, data: bytes) -> StoredObject:
        """The store's clock is the world's."""
        self._before()
        made = self.store.write(key, data)
        self._after()
        return made._replace(last_modified_ms=self.world.clock_ms())

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._before()
        made = self.store.put_if_absent(key, data)
        self._after()
        return made

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        self._before()
        made = self.store.replace(current, data)
        self._after(may_delete=current.key == LEASE_KEY and made is not None)
        return made

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        self._before()
        if self.world.chance.random() < self.world.copy_fault_rate:
            raise _THROTTLED
        made = self.store.copy(source, key, modified_ms)
        if made is not None and key.startswith(QUARANTINE) and self.world.lies():
            made = self.store.write(key, b"\0" * made.size)
        self._after()
        return made

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        self.world.boundary(may_delete=True)
        return [self._deletion(stored) for stored in objects]

    def delete_version(self, kept: KeptVersion) -> None:
        self.store.delete_version(kept)

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        self.store.abort_multipart_upload(upload)

    def _deletion(self, stored: StoredObject) -> Deletion:
        if self.world.fails():
            return Deletion(stored, DeletionOutcome.FAILED, _THROTTLED)
        if self.world.lies():
            return Deletion(stored, DeletionOutcome.GONE)
        if self.store.head(stored.key) == stored:
            self.world.look_at_deletion(stored.key)
        (deletion,) = self.store.delete([stored])
        self.world.boundary(may_delete=True)
        return Deletion(stored, DeletionOutcome.FAILED, _NO_ANSWER) if self.world.fails() else deletion

    def _before(self) -> None:
        self.world.boundary()
        if self.world.fails():
            raise _THROTTLED

    def _after(self, *, may_delete: bool = False) -> None:
        self.world.boundary(may_delete=may_delete)
        if self.world.fails():
            raise _NO_ANSWER


@dataclass(frozen=True)
class ObservedReceipts:
    """Other receipts, the last of which may be torn where they are in a file."""

    receipts: Receipts
    world: World
    file: Path | None = None

    @property
    def header(self) -> ReceiptsHeader:
        return self.receipts.header

    @property
    def where(self) -> str:
        return self.receipts.where

    @property
    def are_beside_copies(self) -> bool:
        return self.receipts.are_beside_copies

    def entries(self, damaged: DamageTaker | None = None) -> Iterator[Receipt]:
        return self.receipts.entries(damaged)

    def demand_writable(self) -> None:
        self.receipts.demand_writable()

    def append(self, receipts: Sequence[Receipt]) -> None:
        self.world.boundary()
        if self.file is not None and receipts and self.world.boundaries + 1 == self.world.kill_at:
            lines = b"".join(map(RECEIPT.encode, receipts))
            with self.file.open("ab+") as file:
                _drop_unfinished_line(self.file, file.fileno())
                file.write(lines[: self.world.chance.randrange(1, len(lines))])
        self.world.boundary()
        if self.file is not None and self.world.fails():
            raise TieredctlError(ErrorCode.UNWRITABLE, "The disk of the receipts is full.")
        self.receipts.append(receipts)
        self.world.must_have_read = self.world.cluster.read_up_to()
        self.world.boundary()


class ObservedMetadata:
    """The log directory, or a replica that is behind it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._source: MetadataSource = LogDirectories([world.cluster.log_dir])
        self._ends: list[int] = []
        self.advance()

    def advance(self) -> bool:
        world = self._world
        world.boundary()
        if world.fails():
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "No broker answered.")
        may_differ = self._source.advance()
        before, self._ends = self._ends, list(world.cluster.read_up_to())
        if world.chance.random() < world.lag_rate:
            number = world.chance.randrange(METADATA_PARTITIONS)
            self._ends[number] = world.chance.randint(0, self._ends[number])
            # A replica that has all that was read before is not told from one that has all.
            world.must_have_read = tuple(map(min, world.must_have_read, self._ends))
        world.last_read = tuple(self._ends)
        world.read_before = tuple(map(max, world.read_before, self._ends))
        return may_differ or before != self._ends

    def close(self) -> None:
        self._source.close()

    @property
    def metadata_topic_id(self) -> str | None:
        return self._source.metadata_topic_id

    @property
    def cluster_id(self) -> str | None:
        return self._source.cluster_id

    @property
    def partition_count(self) -> int | None:
        return METADATA_PARTITIONS

    def describe(self) -> dict[str, object]:
        return self._source.describe()

    def metadata_partitions(self) -> list[int]:
        return self._source.metadata_partitions()

    def findings(self) -> list[Finding]:
        return self._source.findings()

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        self._world.boundary()
        end = self._ends[metadata_partition]
        for chunk in self._source.chunks(metadata_partition, from_offset):
            yield _before(chunk, end)
        self._world.boundary()

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        start, end = self._source.offset_range(metadata_partition)
        return OffsetRange(start, min(end, self._ends[metadata_partition]))


def _before(chunk: RecordChunk, end: int) -> RecordChunk:
    """What of a chunk is below an offset."""
    count = sum(offset < end for offset in chunk.offsets)
    columns = (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
    offsets, timestamps, starts, ends = (column[:count] for column in columns)
    return RecordChunk(chunk.buffer, offsets, timestamps, starts, ends, chunk.findings)
