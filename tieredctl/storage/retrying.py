"""A wrapper of a store that retries requests which got no answer or were throttled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import (
    STREAM_CHUNK_BYTES,
    UPLOAD_PART_BYTES,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    MultipartUpload,
    Pieces,
    Retention,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.process.interruption import pause
from tieredctl.storage.refusals import replaced_while_read

_Answer = TypeVar("_Answer")

_THROTTLED = ErrorCode.STORE_THROTTLED
_TRANSIENT = (_THROTTLED, ErrorCode.STORE_UNREACHABLE)


@dataclass(slots=True)
class _Patience:
    """Whether it has run out: a request used all its attempts, and none was answered since."""

    is_spent: bool = False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many attempts a request gets, and how long to wait in between: twice as long each time, shortened at random
    by up to a half, so that many throttled processes do not retry together, and never less than a throttling server
    asks for, up to the longest pause. Once a request used all its attempts in
    vain, every other gets one, until one is answered: a store that is down is waited for only once."""

    attempts: int = 6
    pause_seconds: float = 0.2
    throttled_pause_seconds: float = 1.0
    longest_pause_seconds: float = 30.0
    sleep: Callable[[float], None] = pause
    _patience: _Patience = field(default_factory=_Patience, compare=False)

    def wait(self, failures: int, error: TieredctlError) -> None:
        """Waits after `failures` in a row. Raises the error where no attempt is left, or a retry cannot help."""
        if error.code not in _TRANSIENT:
            self.answered()
            raise error
        if failures >= self.attempts or self._patience.is_spent:
            self._patience.is_spent = True
            raise error
        first = self.throttled_pause_seconds if error.code == _THROTTLED else self.pause_seconds
        seconds = min(first * 2 ** (failures - 1), self.longest_pause_seconds) * random.uniform(0.5, 1)
        self.sleep(max(seconds, min(error.retry_after_seconds or 0, self.longest_pause_seconds)))

    def answered(self) -> None:
        """Notes that the store answered."""
        self._patience.is_spent = False

    def run(self, ask: Callable[[bool], _Answer]) -> _Answer:
        """The answer to `ask(again)`; `again` means that an earlier attempt may have taken effect."""
        failures = 0
        while True:
            try:
                answer = ask(failures > 0)
                self.answered()
                return answer
            except TieredctlError as error:
                failures += 1
                self.wait(failures, error)


@dataclass(frozen=True, slots=True)
class RetryingStore(StoreAround):
    """Another store, whose transient failures are retried.

    A listing and a stream resume after what they gave. A change counts as made although its answer was lost: an object
    deleted before is gone, and its deletion is not repeated once the store confirmed it; where a write is refused, but
    the object holds exactly these bytes, an earlier attempt made it. Bytes that distinguish writers, such as a lock's,
    must therefore differ between writers.
    """

    store: WritableObjectStore
    policy: RetryPolicy = field(default_factory=RetryPolicy)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        failures = 0
        while True:
            try:
                for stored in self.store.list(prefix, start_after):
                    self.policy.answered()
                    yield stored
                    start_after, failures = stored.key, 0
                return
            except TieredctlError as error:
                failures += 1
                self.policy.wait(failures, error)

    def head(self, key: str) -> StoredObject | None:
        return self.policy.run(lambda _: self.store.head(key))

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        return self.policy.run(lambda _: self.store.read(key, start, end))

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        began_with = self.head(key)
        failures = 0
        while True:
            try:
                for piece in self.store.stream(key, start, chunk_size):
                    self.policy.answered()
                    yield piece
                    start, failures = start + len(piece), 0
                return
            except TieredctlError as error:
                failures += 1
                self.policy.wait(failures, error)
                if self.head(key) != began_with:
                    raise replaced_while_read(self.url, key) from None

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        return self.policy.run(lambda _: self.store.checksums(stored))

    def time_ms(self) -> int | None:
        return self.policy.run(lambda _: self.store.time_ms())

    def retention(self) -> Retention:
        return self.policy.run(lambda _: self.store.retention())

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return self._each_once(lambda: self.store.kept_versions(prefix))

    def read_version(self, kept: KeptVersion) -> bytes:
        return self.policy.run(lambda _: self.store.read_version(kept))

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        return self.policy.run(lambda _: self.store.soft_deleted(key))

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        return self._each_once(lambda: self.store.multipart_uploads(prefix))

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        return self.policy.run(lambda _: self.store.multipart_upload_bytes(upload))

    def write(self, key: str, data: bytes) -> StoredObject:
        return self.policy.run(lambda _: self.store.write(key, data))

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        def put(again: bool) -> StoredObject | None:
            made = self.store.put_if_absent(key, data)
            return self._made_before(key, len(data), lambda: iter((data,))) if again and made is None else made

        return self.policy.run(put)

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        """Each attempt sends all of it."""

        def upload(again: bool) -> StoredObject | None:
            made = self.store.upload(key, size, pieces, part_bytes)
            return self._made_before(key, size, pieces) if again and made is None else made

        return self.policy.run(upload)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        def replace(again: bool) -> StoredObject | None:
            made = self.store.replace(current, data)
            if again and made is None:
                return self._made_before(current.key, len(data), lambda: iter((data,)))
            return made

        return self.policy.run(replace)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        return self.policy.run(lambda _: self.store.copy(source, key, modified_ms))

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        latest = {deletion.stored: deletion for deletion in self.store.delete(objects)}
        failures = 0
        while unconfirmed := [deletion for deletion in latest.values() if _may_pass(deletion)]:
            failures += 1
            if failures >= self.policy.attempts:
                break
            self.policy.wait(failures, _worst_error(unconfirmed))
            again = self.store.delete([deletion.stored for deletion in unconfirmed])
            latest |= {deletion.stored: deletion for deletion in again}
        return [latest[stored] for stored in objects]

    def delete_version(self, kept: KeptVersion) -> None:
        self.policy.run(lambda _: self.store.delete_version(kept))

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        self.policy.run(lambda _: self.store.abort_multipart_upload(upload))

    def _each_once(self, begin: Callable[[], Iterator[_Answer]]) -> Iterator[_Answer]:
        """What a request gives, which is begun again where it failed."""
        answers: set[_Answer] = set()
        failures = 0
        while True:
            try:
                for one in begin():
                    if one not in answers:
                        yield one
                        answers.add(one)
                        failures = 0
                return
            except TieredctlError as error:
                failures += 1
                self.policy.wait(failures, error)

    def _made_before(self, key: str, size: int, pieces: Pieces) -> StoredObject | None:
        stored = self.store.head(key)
        if stored is None or stored.size != size:
            return None
        position = 0
        for piece in pieces():
            if self.store.read(key, position, position + len(piece)) != piece:
                return None
            position += len(piece)
        return stored if self.store.head(key) == stored else None


def _may_pass(deletion: Deletion) -> bool:
    return (
        deletion.outcome is DeletionOutcome.FAILED and deletion.error is not None and deletion.error.code in _TRANSIENT
    )


def _worst_error(deletions: Sequence[Deletion]) -> TieredctlError:
    errors = [deletion.error for deletion in deletions if deletion.error is not None]
    return next((error for error in errors if error.code == _THROTTLED), errors[0])
