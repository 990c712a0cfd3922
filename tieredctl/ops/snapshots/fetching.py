"""`snapshot fetch`: a snapshot from the leader of the metadata quorum, by chunks, checked as it comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.arriving_snapshot import ArrivingSnapshot
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER, KraftSnapshotName, kraft_snapshot_name
from tieredctl.model.result_row import Column, ResultRow, Size, Wide
from tieredctl.ports.snapshot_source import LeaderChanged, SnapshotSource
from tieredctl.process.progress import note
from tieredctl.process.replaced_file import READABLE_BY_ALL, CountedBytes, file_added_to, replaced_file

DEFAULT_CHUNK_BYTES = 8 << 20
LARGEST_CHUNK_BYTES = 64 << 20
_LEADERS_AT_MOST = 5
_COPIED_AT_ONCE = 1 << 22
_COMPARED_BYTES = 1 << 16
"""How much is compared of both ends of what an earlier run left. The first batch alone, with the time at which the
snapshot was begun and its CRC, differs between any two snapshots; it has less than 200 bytes."""

Told = Callable[[int, int], None]
"""Hears how many bytes there are, of how many."""
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class FetchedSnapshot(ResultRow):
    """A whole snapshot. `resumed_from` is how many of its bytes an earlier run had fetched."""

    file: Annotated[str, Column(after="resumed_from")]
    end_offset: int
    epoch: int
    controller: Annotated[int, Column(after="batches")]
    bytes: Size[int]
    batches: int
    resumed_from: Wide[int]


def fetch_snapshot(
    source: SnapshotSource,
    to: Path,
    snapshot: KraftSnapshotName | None,
    *,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
    force: bool = False,
    dry_run: bool = False,
    is_last: bool = True,
    tell: Told = partial(note, "bytes"),  # noqa: B008
) -> FetchedSnapshot:
    """Fetches a snapshot, the leader's latest by default, to a file, or under its own name to a folder.

    What arrives is kept in a `.part` beside the file, batch by batch, each only once it is whole and sound; an
    interrupted run goes on there. Where another controller becomes the leader, it begins again: that one's snapshots
    have other bytes. Raises TieredctlError as the source and `while_leaders_change` do, `undecodable` where the
    snapshot is damaged, `unwritable`, `locked` where another run fetches the same, `usage` for a place among a node's
    own files. A dry run fetches and checks all of it, and keeps nothing. `is_last` as `replaced_file` has it.
    """
    _demand_outside_node(to)

    def fetched() -> FetchedSnapshot:
        leader = source.leader()
        wanted = snapshot or leader.latest_snapshot
        if wanted is None:
            message = f"Controller {leader.node_id}, the leader, has no snapshot yet"
            hint = "Kafka makes one each hour, or each 20 MiB of metadata. Until then its log alone has everything."
            raise TieredctlError(ErrorCode.SNAPSHOT_UNAVAILABLE, f"{message}: its log begins at 0.", hint=hint)
        target = to / kraft_snapshot_name(wanted.end_offset, wanted.epoch) if to.is_dir() else to
        path = target.with_name(f"{target.name}.{_id(wanted)}.controller-{leader.node_id}.part")
        with (
            CountedBytes() if dry_run else _part(path) as part,
            replaced_file(target, force=force, mode=READABLE_BY_ALL, dry_run=dry_run, is_last=is_last) as file,
        ):
            fetching = _Fetching(source, leader.node_id, wanted, part, chunk_bytes, tell)
            size, batches, resumed_from = fetching.rehearsed() if dry_run else fetching.to(file)
            return FetchedSnapshot(
                *(str(target), wanted.end_offset, wanted.epoch, leader.node_id, size, batches, resumed_from)
            )

    return while_leaders_change(fetched)


def while_leaders_change(read: Callable[[], _Read]) -> _Read:
    """What `read` gives once one controller leads from its beginning to its end. Raises TieredctlError
    `broker-unreachable` where leaders change all the time."""
    for _ in range(_LEADERS_AT_MOST):
        with suppress(LeaderChanged):
            return read()
    message = f"The leader of the metadata log changed {_LEADERS_AT_MOST} times while it was read."
    raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint="Run the command again once the quorum is calm.")


class _Fetching:
    """One controller's snapshot, on its way to a file."""

    def __init__(
        self,
        source: SnapshotSource,
        controller: int,
        snapshot: KraftSnapshotName,
        part: BinaryIO,
        chunk_bytes: int,
        tell: Told,
    ) -> None:
        self._source, self._controller, self._snapshot = source, controller, snapshot
        self._part, self._chunk_bytes, self._tell = part, chunk_bytes, tell

    def to(self, file: BinaryIO) -> tuple[int, int, int]:
        """The size in bytes, the number of batches, and how many bytes were there before."""
        first = self._source.chunk(self._snapshot, 0, self._chunk_bytes)
        arriving = self._left(first.size)
        if not self._is_of_this_snapshot(arriving, first.data):
            arriving = ArrivingSnapshot(first.size)
        self._part.truncate(arriving.position)
        arriving.forget_rest()
        resumed_from = arriving.position
        self._receive(arriving, first.data[resumed_from:])
        return arriving.size, self._copied(file, arriving.size), resumed_from

    def rehearsed(self) -> tuple[int, int, int]:
        """Fetches from the first byte on, without writing a file."""
        first = self._source.chunk(self._snapshot, 0, self._chunk_bytes)
        arriving = ArrivingSnapshot(first.size)
        self._receive(arriving, first.data)
        return arriving.size, arriving.batches, 0

    def _left(self, size: int) -> ArrivingSnapshot:
        """What an earlier run left, as far as it is sound."""
        arriving = ArrivingSnapshot(size)
        self._part.seek(0)
        with suppress(DecodeError):
            while data := self._part.read(_COPIED_AT_ONCE):
                for _ in arriving.add(data):
                    pass
        return arriving

    def _is_of_this_snapshot(self, left: ArrivingSnapshot, beginning: bytes) -> bool:
        """Whether what is left begins and ends as the controller's snapshot does there, which is fetched again."""
        head = min(left.position, _COMPARED_BYTES)
        tail = max(head, left.position - _COMPARED_BYTES)
        return self._equals(0, head, left.size, beginning) and self._equals(tail, left.position, left.size)

    def _equals(self, position: int, end: int, size: int, data: bytes = b"") -> bool:
        """Whether both have the same bytes up to `end`; `data` are those of the controller that are here already."""
        while position < end:
            data = (data or self._chunk(position, size))[: end - position]
            self._part.seek(position)
            if self._part.read(len(data)) != data:
                return False
            position += len(data)
            data = b""
        return True

    def _chunk(self, position: int, size: int) -> bytes:
        chunk = self._source.chunk(self._snapshot, position, self._chunk_bytes)
        if chunk.size != size:
            message = f"Snapshot {_id(self._snapshot)} of controller {self._controller} changed while it was fetched."
            raise TieredctlError(ErrorCode.SNAPSHOT_UNAVAILABLE, message, hint="Run it again: it begins again.")
        return chunk.data

    def _receive(self, arriving: ArrivingSnapshot, data: bytes) -> None:
        received = arriving.position
        try:
            while True:
                received += len(data)
                for batch in arriving.add(data):
                    self._part.write(batch)
                self._tell(arriving.position, arriving.size)
                if received >= arriving.size:
                    break
                data = self._chunk(received, arriving.size)
            arriving.demand_whole()
        except DecodeError as error:
            message = f"Snapshot {_id(self._snapshot)} of controller {self._controller} is damaged: {error.message}."
            hint = "What is sound is kept. If a second run ends so too, the controller's own file is damaged."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint) from None
        finally:
            self._part.flush()

    def _copied(self, file: BinaryIO, size: int) -> int:
        """Copies what is on disk, and checks it once more. How many batches it has."""
        arrived = ArrivingSnapshot(size)
        self._part.seek(0)
        while data := self._part.read(_COPIED_AT_ONCE):
            file.writelines(arrived.add(data))
        arrived.demand_whole()
        return arrived.batches


def _demand_outside_node(to: Path) -> None:
    place = to.resolve()
    if CLUSTER_METADATA_FOLDER in (place.name, *(parent.name for parent in place.parents)):
        message = f"{to} is in a {CLUSTER_METADATA_FOLDER}: a node would take the snapshot for its own."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name another folder with --to.")


_FIRST_OFFSET = bytes(8)
"""What a snapshot begins with: the base offset of its first batch."""


@contextmanager
def _part(path: Path) -> Iterator[BinaryIO]:
    """What there is of a snapshot. The file stays where the rest can be fetched later: not after success, nor where
    nobody can have more of the same."""
    is_kept = False
    try:
        with file_added_to(path, _FIRST_OFFSET) as part:
            try:
                flock(part.fileno(), LOCK_EX | LOCK_NB)
            except BlockingIOError:
                is_kept = True
                message = f"Another run fetches {path}."
                raise TieredctlError(ErrorCode.LOCKED, message, hint="Wait until it ends.") from None
            try:
                yield part
            except LeaderChanged:
                raise
            except BaseException as error:
                is_of_use = not isinstance(error, TieredctlError) or error.code is not ErrorCode.SNAPSHOT_UNAVAILABLE
                is_kept = is_of_use and part.seek(0, os.SEEK_END) > 0
                raise
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be written: {error.strerror}.") from None
    finally:
        if not is_kept:
            path.unlink(missing_ok=True)


def _id(snapshot: KraftSnapshotName) -> str:
    return f"{snapshot.end_offset}-{snapshot.epoch}"
