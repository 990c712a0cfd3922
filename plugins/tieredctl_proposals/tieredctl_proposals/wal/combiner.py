"""When queued batches are uploaded, and which together (KIP-1176, "RLMWalCombinerTask")."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tieredctl_proposals.wal.sections import QueueItem


class UploadCause(StrEnum):
    """Why an upload is due."""

    NORMAL = "normal"
    """`combiner.task.upload.bytes` are queued."""
    QUICK = "quick"
    """Fewer are, but `combiner.task.interval.ms` passed: latency before size."""


@dataclass(frozen=True, slots=True)
class CombinerSettings:
    """The broker's settings `remote.wal.log.manager.combiner.*`, which the proposal gives no defaults for.

    These are what it envisions for a fast store: 300 to 500 KB every 10 to 20 ms. For a slow one, such as S3, it
    advises larger uploads at a lower frequency. Raises ValueError for settings under which nothing is ever uploaded.
    """

    interval_ms: int = 20
    upload_bytes: int = 500_000
    queue_size: int = 10_000

    def __post_init__(self) -> None:
        if self.interval_ms < 0 or self.upload_bytes <= 0 or self.queue_size <= 0:
            raise ValueError(f"impossible combiner settings {self}")


class Upload(NamedTuple):
    """What goes into one combined object, in this order, and why now."""

    cause: UploadCause
    items: tuple[QueueItem, ...]


class Combiner:
    """The queue between the tasks of partitions and the uploads. Time in milliseconds, by the caller's clock."""

    def __init__(self, settings: CombinerSettings) -> None:
        self._settings = settings
        self._queue: deque[tuple[int, QueueItem]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    def offer(self, item: QueueItem, now_ms: int) -> bool:
        """Queues batches; False, and nothing is queued, while the queue is full."""
        if len(self._queue) >= self._settings.queue_size:
            return False
        self._queue.append((now_ms, item))
        self._bytes += len(item.records)
        return True

    def next_upload(self, now_ms: int) -> Upload | None:
        """What is due for upload, oldest first; None while the next upload can wait.

        An upload ends with the item that brings it to `upload_bytes`, which is never divided.
        """
        if not self._queue:
            return None
        is_full = self._bytes >= self._settings.upload_bytes
        if not is_full and now_ms - self._queue[0][0] < self._settings.interval_ms:
            return None
        taken, size = [], 0
        while self._queue and size < self._settings.upload_bytes:
            _, item = self._queue.popleft()
            taken.append(item)
            size += len(item.records)
        self._bytes -= size
        return Upload(UploadCause.NORMAL if is_full else UploadCause.QUICK, tuple(taken))


def packed(items: Iterable[QueueItem], settings: CombinerSettings) -> Iterator[tuple[QueueItem, ...]]:
    """Every item, by uploads, where none waits for more to come. Streams: no more than the queue is held."""
    combiner = Combiner(settings)
    for item in items:
        if not combiner.offer(item, 0):
            yield from _due(combiner, settings.interval_ms)
            combiner.offer(item, 0)
        yield from _due(combiner, 0)
    yield from _due(combiner, settings.interval_ms)


def _due(combiner: Combiner, now_ms: int) -> Iterator[tuple[QueueItem, ...]]:
    while upload := combiner.next_upload(now_ms):
        yield upload.items
