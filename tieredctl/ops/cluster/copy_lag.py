"""How long a leader waits before it copies a closed segment (KIP-1241, since 4.4).

As RemoteLogManager.RLMCopyTask.isEligibleForUpload decides it in 4.4.0: at once where one of the two lags is 0; else
once a segment's newest record is old enough, or enough newer bytes are on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.ops.cluster.topic_settings import (
    COPY_LAG_BYTES,
    COPY_LAG_MS,
    LOCAL_RETENTION_BYTES,
    LOCAL_RETENTION_MS,
    TopicSettings,
)
from tieredctl.ports.cluster import ListedOffset

AS_LOCAL_RETENTION = -1


class CopyLag(NamedTuple):
    """A segment waits for one of these: its age in ms, or the bytes after it; -1 where that is not considered."""

    ms: int
    bytes: int

    @property
    def is_endless(self) -> bool:
        """Whether nothing is ever copied: both follow a local retention that is unlimited."""
        return self.ms < 0 and self.bytes < 0

    def waiting(self, pending_bytes: int, young_bytes: int) -> int:
        """How many of the uncopied bytes wait as they should; `young_bytes` are those younger than `ms`."""
        limits = [young_bytes] if self.ms > 0 else []
        limits += [self.bytes] if self.bytes > 0 else []
        return min([pending_bytes, *limits])


def copy_lag(settings: TopicSettings) -> CopyLag | None:
    """None where a closed segment is copied at once."""
    ms, size = settings.number(COPY_LAG_MS), settings.number(COPY_LAG_BYTES)
    ms = settings.local_retention_ms if ms == AS_LOCAL_RETENTION else ms
    size = settings.local_retention_bytes if size == AS_LOCAL_RETENTION else size
    return None if 0 in (ms, size) else CopyLag(ms, size)


def offset_by_time(answer: ListedOffset, latest: int) -> int:
    """The first offset that is young enough: the end of the log where none is."""
    return latest if answer.offset is None else answer.offset


def copy_lag_faults(settings: TopicSettings) -> Iterator[tuple[str, str]]:
    """The names of the lags that Kafka refuses with this local retention, each with the reason
    (LogConfig.validateRemoteCopyLagTime)."""
    limits = (
        (COPY_LAG_MS, LOCAL_RETENTION_MS, settings.local_retention_ms),
        (COPY_LAG_BYTES, LOCAL_RETENTION_BYTES, settings.local_retention_bytes),
    )
    for name, local_name, local in limits:
        lag = settings.number(name)
        if 0 <= local < lag:
            yield name, f"{name} is {lag}, above {local_name}, which is effectively {local}"
