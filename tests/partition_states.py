"""A partition as a KIP's table shows it: the leader's log, and what the remote log metadata knows."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cache_by_events import CacheByEvents, said_once
from tests.metadata_logs import COPIED, segment_id, started, updated
from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.follower_fetch import FollowerLog

Lineage = Mapping[int, int]
"""The first offset of each leader epoch, as in `LE-1, 3`."""


def leader(local: range, lineage: Lineage, *, log_start: int = 0, pending_upload: int | None = None) -> LeaderLog:
    """A leader that has the offsets `local` on its disk."""
    return LeaderLog(log_start, local.start, local.stop, tuple(lineage.items()), pending_upload)


def follower(end_offset: int, lineage: Lineage) -> FollowerLog:
    """A follower whose log ends (exclusive) at an offset."""
    return FollowerLog(end_offset, tuple(lineage.items()))


def remote(*segments: tuple[int, int, Lineage]) -> RemoteLogMetadataCache:
    """Segments in COPY_SEGMENT_FINISHED: first offset, last offset, segment epochs. The first is `uuid(1)`."""
    cache = CacheByEvents()
    for number, (first, last, epochs) in enumerate(segments, 1):
        cache.add(said_once(started(number, first, last, epochs)))
        cache.update(updated(number, COPIED), 0, 1)
    return cache


def uuid(number: int) -> str:
    """What the KIPs' tables call uuid-1, uuid-2 and so on."""
    return segment_id(number)
