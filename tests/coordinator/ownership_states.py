"""Every state that one file with few owners can come to: commits and messages arrive in any order, late, repeatedly or
not at all, and each coordinator changes its leader once. Time goes by in steps as long as the grace period."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from tieredctl_proposals.coordinator.ownership import AskForHandOver, DeleteObject, HandOver, OwnedFile

from tests.coordinator.ownership_histories import Files, Worker

GRACE_MS = RETRY_MS = 1
_ROUNDS_OF_THE_END = 40


class State:
    """A file, what each of its owners knows, and what was ever sent: all of it may arrive again."""

    def __init__(self, owners: int, worker: Worker) -> None:
        self._file = OwnedFile("file", tuple(range(owners)), 1, 100)
        self._new_worker = worker
        self._now_ms = 0
        self._gone_ms = -GRACE_MS
        self._exists = True
        self._logs = [Files() for _ in range(owners)]
        self._sent: set[HandOver | AskForHandOver] = set()
        self._arrived: set[HandOver] = set()
        """By whoever leads now: it may still be confirmed."""
        self._to_commit = set(range(owners))
        self._to_change = set(range(owners))
        self._workers = [worker(number, log, GRACE_MS, RETRY_MS) for number, log in enumerate(self._logs)]

    def key(self) -> object:
        """What tells it from others: times only by how they are to now."""
        kept = [
            tuple((each.is_handed_over, max(-1, each.due_ms - self._now_ms)) for each in worker._released.values())
            for worker in self._workers
        ]
        handed_over = [bool(worker._handed_over) for worker in self._workers]
        live = [log.live.get(self._file) for log in self._logs]
        since_ms = min(GRACE_MS, self._now_ms - self._gone_ms)
        messages = frozenset(self._sent), frozenset(self._arrived)
        left = frozenset(self._to_commit), frozenset(self._to_change)
        return (tuple(kept), tuple(handed_over), tuple(live), messages, left, self._exists, since_ms)

    def next_states(self) -> Iterator[State]:
        """Each state that this one may become."""
        steps: list[Callable[[State], None]] = [State._wait]
        for number, log in enumerate(self._logs):
            possible = (
                (State._work, True),
                (State._commit, number in self._to_commit),
                (State._lose, bool(log.live.get(self._file))),
                (State._change, number in self._to_change),
            )
            steps += [partial(_step, step, number) for step, can_be in possible if can_be]
        steps += [partial(_step, State._deliver, message) for message in sorted(self._sent, key=repr)]
        steps += [partial(_step, State._confirm, message) for message in sorted(self._arrived, key=repr)]
        for step in steps:
            following = deepcopy(self)
            step(following)
            yield following

    def demand_end(self) -> None:
        """From here on nothing goes wrong any more: a file that some owner knows is deleted."""
        state = deepcopy(self)
        for number, log in enumerate(state._logs):
            if log.live.get(self._file):
                state._lose(number)
        if not any(log.live for log in state._logs):
            return
        for _ in range(_ROUNDS_OF_THE_END):
            state._wait()
            for number in range(len(state._logs)):
                state._work(number)
            for message in sorted(state._sent, key=repr):
                state._deliver(message)
        assert not state._exists, "the file is dead and was not deleted"

    def _wait(self) -> None:
        self._now_ms += GRACE_MS

    def _commit(self, number: int) -> None:
        self._to_commit.discard(number)
        if self._file not in self._logs[number].live:
            assert self._exists, "the file was deleted, and then committed"
            self._logs[number].live[self._file] = 1

    def _lose(self, number: int) -> None:
        self._logs[number].live[self._file] = 0
        self._gone_ms = self._now_ms
        self._workers[number].release(self._file, self._now_ms)

    def _change(self, number: int) -> None:
        self._to_change.discard(number)
        self._arrived -= {message for message in self._arrived if message.to == number + 1}
        self._workers[number] = self._new_worker(number, self._logs[number], GRACE_MS, RETRY_MS)
        self._workers[number].start(self._now_ms)

    def _work(self, number: int) -> None:
        for duty in self._workers[number].due(self._now_ms):
            if isinstance(duty, DeleteObject):
                self._delete()
            else:
                self._sent.add(duty)

    def _delete(self) -> None:
        assert not any(log.live.get(self._file) for log in self._logs), "it is deleted while batches are live"
        assert self._now_ms - self._gone_ms >= GRACE_MS, "it is deleted within the grace period"
        self._exists = False

    def _deliver(self, message: HandOver | AskForHandOver) -> None:
        worker = self._workers[message.to]
        if not worker.receive(message, self._now_ms):
            self._logs[message.to].live[self._file] = 0
            assert worker.receive(message, self._now_ms)
        if isinstance(message, HandOver) and self._workers[message.to - 1]._released:
            self._arrived.add(message)

    def _confirm(self, message: HandOver) -> None:
        self._arrived.discard(message)
        self._workers[message.to - 1].confirm(message)


def _step(step: Callable[[State, Any], None], what: Any, state: State) -> None:
    step(state, what)


def explore(owners: int, worker: Worker) -> int:
    """Goes through all states, and returns how many there are. Raises AssertionError where a promise is broken."""
    first = State(owners, worker)
    known, waiting = {first.key()}, [first]
    while waiting:
        state = waiting.pop()
        state.demand_end()
        for following in state.next_states():
            key = following.key()
            if key not in known:
                known.add(key)
                waiting.append(following)
    return len(known)
