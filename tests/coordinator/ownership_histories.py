"""Random histories of files with several owners: commits and messages that are late, repeated or lost, brokers that die
between two commits, leaders that change and old ones that go on. Each history ends with the two promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from tieredctl_proposals.coordinator.ownership import (
    AskForHandOver,
    DeleteObject,
    Duty,
    HandOver,
    OwnedFile,
    OwnershipWorker,
)

GRACE_MS, RETRY_MS = 60_000, 5_000
_STEPS = 80
_LONGEST_DELAY_MS = 4 * GRACE_MS
_LAST_ROUNDS = 60
Worker = Callable[[int, "Files", int, int], OwnershipWorker]


@dataclass(slots=True)
class Files:
    """What a coordinator's log says: each file with how many of its batches are live."""

    live: dict[OwnedFile, int] = field(default_factory=dict)

    def has_live_batches(self, object_key: str) -> bool | None:
        return next((number > 0 for file, number in self.live.items() if file.object_key == object_key), None)

    def released_files(self) -> Iterable[OwnedFile]:
        return [file for file, number in self.live.items() if not number]


@dataclass(slots=True)
class Leader:
    """A worker, what it sees of the log, and how far its clock is off. An old one sees what it saw last."""

    worker: OwnershipWorker
    files: Files
    skew_ms: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What is on its way: a commit of so many batches, or a message and the leader who waits for it."""

    at_ms: int
    to: int
    what: tuple[OwnedFile, int] | HandOver | AskForHandOver
    by: Leader | None = None


class History:
    """One history. Whatever breaks a promise raises AssertionError."""

    def __init__(self, seed: int, worker: Worker = OwnershipWorker) -> None:
        self._chance = Random(seed)
        self._worker = worker
        self._now_ms = 0
        self._uploads = 0
        self._objects: set[str] = set()
        self._last_gone_ms: dict[str, int] = {}
        self._sent: list[Sent] = []
        self._logs = [Files() for _ in range(self._chance.randint(1, 4))]
        self._leaders = [self._new_leader(number) for number in range(len(self._logs))]
        self._old: list[Leader] = []

    def run(self) -> None:
        steps = (self._upload, self._lose_batch, self._lose_batch, self._lead, self._work, self._work, self._deliver)
        for _ in range(_STEPS):
            self._now_ms += self._chance.choice((0, 10, 1_000, RETRY_MS, GRACE_MS))
            self._chance.choice(steps)()
        self._end()

    def _upload(self) -> None:
        owners = list(range(len(self._logs)))
        self._chance.shuffle(owners)
        self._uploads += 1
        file = OwnedFile(f"file-{self._uploads}", tuple(owners[: self._chance.randint(1, len(owners))]), 1, 100)
        self._objects.add(file.object_key)
        for owner in self._chance.sample(file.owner_ids, len(file.owner_ids)):
            if self._chance.random() < 0.1:
                return  # the broker dies
            self._send(owner, (file, self._chance.randint(0, 2)))

    def _send(self, to: int, what: tuple[OwnedFile, int] | HandOver | AskForHandOver, by: Leader | None = None) -> None:
        for _ in range(self._chance.choice((0, 1, 1, 1, 2))):
            self._sent.append(Sent(self._now_ms + self._chance.choice((0, 10, _LONGEST_DELAY_MS)), to, what, by))

    def _deliver(self) -> None:
        for sent in [sent for sent in self._sent if sent.at_ms <= self._now_ms]:
            self._sent.remove(sent)
            if isinstance(sent.what, HandOver | AskForHandOver):
                leader = self._leaders[sent.to]
                now_ms = self._now_ms + leader.skew_ms
                if not leader.worker.receive(sent.what, now_ms):
                    self._logs[sent.to].live[sent.what.file] = 0
                    assert leader.worker.receive(sent.what, now_ms)
                if sent.by is not None and self._chance.random() < 0.8:
                    sent.by.worker.confirm(sent.what)
            else:
                self._commit(sent.to, *sent.what)

    def _commit(self, to: int, file: OwnedFile, batches: int) -> None:
        log = self._logs[to]
        if file in log.live:
            return  # refused: it was committed already
        log.live[file] = batches
        if batches:
            assert file.object_key in self._objects, f"{file} was deleted, and then committed"
        else:
            self._leaders[to].worker.release(file, self._now_ms + self._leaders[to].skew_ms)

    def _lose_batch(self) -> None:
        number = self._chance.randrange(len(self._logs))
        log = self._logs[number]
        live = [file for file, batches in log.live.items() if batches]
        if not live:
            return
        file = self._chance.choice(live)
        assert file.object_key in self._objects
        log.live[file] -= 1
        self._last_gone_ms[file.object_key] = self._now_ms
        if not log.live[file]:
            self._leaders[number].worker.release(file, self._now_ms + self._leaders[number].skew_ms)

    def _lead(self) -> None:
        number = self._chance.randrange(len(self._logs))
        old = self._leaders[number]
        self._leaders[number] = self._new_leader(number)
        old.files.live = dict(old.files.live)
        self._old.append(old)

    def _new_leader(self, number: int) -> Leader:
        view = Files()
        view.live = self._logs[number].live
        skew_ms = self._chance.choice((0, GRACE_MS, -GRACE_MS, 10 * GRACE_MS, -10 * GRACE_MS))
        leader = Leader(self._worker(number, view, GRACE_MS, RETRY_MS), view, skew_ms)
        leader.worker.start(self._now_ms + skew_ms)
        return leader

    def _work(self) -> None:
        for leader in [*self._leaders, *self._old]:
            for duty in leader.worker.due(self._now_ms + leader.skew_ms):
                self._do(duty, leader)

    def _do(self, duty: Duty, leader: Leader) -> None:
        if not isinstance(duty, DeleteObject):
            self._send(duty.to, duty, leader)
        elif self._chance.random() < 0.8:  # else the store does not answer
            self._demand_dead(duty.file)
            self._objects.discard(duty.file.object_key)
            if self._chance.random() < 0.8:
                leader.worker.confirm(duty)

    def _demand_dead(self, file: OwnedFile) -> None:
        for number, log in enumerate(self._logs):
            assert not log.live.get(file), f"{file} is deleted while coordinator {number} has live batches of it"
        since_ms = self._now_ms - self._last_gone_ms.get(file.object_key, -GRACE_MS)
        assert since_ms >= GRACE_MS, f"{file} is deleted {since_ms} ms after its last batch was live"

    def _end(self) -> None:
        """No more uploads, and only the last leaders stay; all that is on its way arrives. Then every dead file has to
        go."""
        self._old.clear()
        for sent in sorted(self._sent, key=lambda sent: sent.at_ms):
            self._now_ms = max(self._now_ms, sent.at_ms)
            self._deliver()
        for number, log in enumerate(self._logs):
            for file in [file for file, batches in log.live.items() if batches]:
                log.live[file] = 0
                self._last_gone_ms[file.object_key] = self._now_ms
                self._leaders[number].worker.release(file, self._now_ms + self._leaders[number].skew_ms)
        known = {file.object_key for log in self._logs for file in log.live}
        for _ in range(_LAST_ROUNDS):
            self._now_ms += GRACE_MS
            self._work()
            self._now_ms += _LONGEST_DELAY_MS
            self._deliver()
        assert not known & self._objects, f"{sorted(known & self._objects)} are dead and were not deleted"
