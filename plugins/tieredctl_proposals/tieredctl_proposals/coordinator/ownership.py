"""Who deletes a file that several coordinators have batches in (KIP-1164, "WAL file management").

A file has a list of owners. Each, once no batch of the file is live with it, hands it over to the next; the last
deletes the object after a grace period. What makes a coordinator done with a file is in its log and does not change any
more: it knows the file, and has no live batch of it. Everything here follows from that, and is kept in memory alone: a
new leader begins without it and finds it out, and what it does again does no harm.

The KIP leaves two cases open. A file may be handed to a coordinator that has not heard of it: the broker died before it
committed there, or its request is still on the way. That coordinator commits the file without batches, so that it
refuses the request. And whoever led when a file was handed over may not lead any more: a coordinator that is done, but
was handed nothing, asks the owner before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, Protocol


class OwnedFile(NamedTuple):
    """A file and its owners in turn, with what a commit of it needs."""

    object_key: str
    owner_ids: tuple[int, ...]
    object_format: int
    file_size: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """To the next owner: none before it has a live batch of the file."""

    file: OwnedFile
    to: int


@dataclass(frozen=True, slots=True)
class AskForHandOver:
    """To the owner before: hand the file over, again if it was handed over before."""

    file: OwnedFile
    to: int


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """To the store: no owner has a live batch of the file, nor has had for the grace period."""

    file: OwnedFile


Duty = HandOver | AskForHandOver | DeleteObject


class CommittedFiles(Protocol):
    """A coordinator's files, as its replicated log has them."""

    def has_live_batches(self, object_key: str) -> bool | None:
        """Whether any batch of a file is live; None for a file that was not committed here."""

    def released_files(self) -> Iterable[OwnedFile]:
        """All of which no batch is live any more, or ever was."""


@dataclass(slots=True)
class _Released:
    """A file that has no live batch here. `is_handed_over`: nor with any owner before."""

    file: OwnedFile
    is_handed_over: bool
    due_ms: int


@dataclass(slots=True)
class OwnershipWorker:
    """What the leader of a coordinator does about its files; each leadership begins with a new one.

    Times are of the leader's own clock, in milliseconds, and should be monotonic: none is compared with another's. A
    duty that is not confirmed is due again after `retry_ms`, which is more than 0, for ever.
    """

    coordinator_id: int
    files: CommittedFiles
    grace_ms: int
    """How long after the last live batch the object stays, for consumers that still read it."""
    retry_ms: int
    _released: dict[str, _Released] = field(default_factory=dict)
    _handed_over: set[str] = field(default_factory=set)
    """Files with live batches here, of which no owner before has any."""
    _due: list[tuple[int, str]] = field(default_factory=list)

    def start(self, now_ms: int) -> None:
        """Takes up what the leader before left: what it had handed over or deleted already is not known."""
        for file in self.files.released_files():
            self.release(file, now_ms)

    def release(self, file: OwnedFile, now_ms: int) -> None:
        """The last batch of a file is gone from this coordinator, or was never accepted."""
        if file.object_key in self._released:
            return
        is_handed_over = file.owner_ids[0] == self.coordinator_id or file.object_key in self._handed_over
        self._handed_over.discard(file.object_key)
        self._released[file.object_key] = released = _Released(file, is_handed_over, 0)
        self._schedule(released, now_ms)

    def receive(self, message: HandOver | AskForHandOver, now_ms: int) -> bool:
        """Takes a message of another coordinator, which may come late, or again; True confirms it.

        False if the file was not committed here: commit it without batches, and give the message again once that is
        replicated.
        """
        file = message.file
        has_live_batches = self.files.has_live_batches(file.object_key)
        if has_live_batches is None:
            return False
        if not has_live_batches:
            self.release(file, now_ms)
        released = self._released.get(file.object_key)
        if isinstance(message, HandOver):
            if released is None:
                self._handed_over.add(file.object_key)
            elif not released.is_handed_over:
                released.is_handed_over = True
                self._schedule(released, now_ms)
        elif released is not None and released.is_handed_over:
            self._schedule(released, now_ms)
        return True

    def due(self, now_ms: int) -> Iterator[Duty]:
        """What is to be done now, decided again from what is committed. Whoever does it calls `confirm` then."""
        while self._due and self._due[0][0] <= now_ms:
            due_ms, key = heappop(self._due)
            released = self._released[key]
            if due_ms == released.due_ms and self.files.has_live_batches(key) is False:
                self._schedule_at(released, now_ms + self.retry_ms)
                yield self._duty(released)

    def confirm(self, duty: Duty) -> None:
        """A message arrived, or an object is gone. Who asked waits for the answer, and asks again if none comes."""
        if not isinstance(duty, AskForHandOver):
            self._released[duty.file.object_key].due_ms = -1

    def _duty(self, released: _Released) -> Duty:
        file = released.file
        place = file.owner_ids.index(self.coordinator_id)
        if not released.is_handed_over:
            return AskForHandOver(file, file.owner_ids[place - 1])
        if place + 1 < len(file.owner_ids):
            return HandOver(file, file.owner_ids[place + 1])
        return DeleteObject(file)

    def _schedule(self, released: _Released, now_ms: int) -> None:
        duty = self._duty(released)
        self._schedule_at(released, now_ms + (0 if isinstance(duty, HandOver) else self.grace_ms))

    def _schedule_at(self, released: _Released, due_ms: int) -> None:
        released.due_ms = due_ms
        heappush(self._due, (due_ms, released.file.object_key))
