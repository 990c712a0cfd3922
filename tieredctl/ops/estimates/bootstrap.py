"""How much an empty follower copies: everything, by KIP-405, and by KIP-1023."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, ResultRow, SizeOrUnknown
from tieredctl.ops.cluster.leader import only_partition, read_leader_log
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.cluster import Cluster, leader_bytes
from tieredctl.rlmm.cache import RemoteLogMetadataCache, bytes_from, segments_in_use
from tieredctl.rlmm.consumer_fetch import highest_remote_offset
from tieredctl.rlmm.follower_fetch import follower_fetch

KIP_405_MEASURED_MINUTES = ((2, 230), (4, 520))
"""Time to rebuild a broker of 12 TB and of 34 TB, with and without tiered storage (KIP-405, test case 3)."""
KIP_1023_MEASURED_PERCENT = (10, 15)
"""The share copied of what KIP-405's follower copies (KIP-1023, "Motivation")."""


@dataclass(frozen=True, slots=True)
class BootstrapWay:
    """From where a new follower copies, and how many bytes, None where that is unknown; the offset is None where only
    bytes are known."""

    bytes: int | None
    start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class BootstrapRow(ResultRow):
    """A way as a result shows it."""

    way: Annotated[str, Column("START-AT")]
    start_offset: Annotated[int | None, Column("OFFSET")]
    bytes: SizeOrUnknown
    seconds: float | None
    ratio_to_everything: Annotated[float | None, Column("OF-EVERYTHING")]
    ratio_to_local: Annotated[float | None, Column("OF-LOCAL")]
    measured: Annotated[str | None, Column("MEASURED-BY-THE-KIP")]


@dataclass(frozen=True, slots=True)
class BootstrapEstimate:
    """What a new follower of a partition copies from its leader, by where it starts."""

    everything: BootstrapWay
    """At the log start, as without tiered storage."""
    local: BootstrapWay
    """At the local log start (KIP-405)."""
    pending_upload: BootstrapWay
    """At the earliest pending upload offset (KIP-1023)."""

    def rows(self, bytes_per_second: int | None) -> list[BootstrapRow]:
        """One row per starting point. `seconds` is null without a throughput, a ratio where there is nothing to
        compare."""
        minutes = ", ".join(f"{with_tiers} of {before} minutes" for with_tiers, before in KIP_405_MEASURED_MINUTES)
        percent = "{} to {} % of local".format(*KIP_1023_MEASURED_PERCENT)
        ways = (
            ("everything", self.everything, None),
            ("local", self.local, f"KIP-405: {minutes}"),
            ("pending-upload", self.pending_upload, f"KIP-1023: {percent}"),
        )
        return [
            BootstrapRow(
                *(name, way.start_offset, way.bytes, _seconds(way, bytes_per_second), _ratio(way, self.everything)),
                *(_ratio(way, self.local) if way is self.pending_upload else None, measured),
            )
            for name, way, measured in ways
        ]


def stated_bootstrap(partition_bytes: int, local_bytes: int, pending_bytes: int) -> BootstrapEstimate:
    """From numbers: all of a partition, what is on its leader's disk, and how much of that is pending upload.

    Raises TieredctlError `usage` where they contradict each other.
    """
    if not pending_bytes <= local_bytes <= partition_bytes:
        raise TieredctlError(
            ErrorCode.USAGE, "Bytes pending upload must not exceed the local ones, nor those the partition's."
        )
    return BootstrapEstimate(*map(BootstrapWay, (partition_bytes, local_bytes, pending_bytes)))


def live_bootstrap(cluster: Cluster, stream: EventStream, name: str, partition: int) -> BootstrapEstimate:
    """What a new follower of a live partition would copy now. Raises TieredctlError as the cluster does.

    Where the leader's disk still has offset 0, a follower starts there, and no KIP saves anything. Where the leader
    does not report what is pending upload, it is taken from the metadata.
    """
    topic = only_partition(cluster.topic(name), partition)
    _, log, _ = read_leader_log(cluster, topic)
    local_bytes = leader_bytes(cluster, name, topic.partitions[0])
    selection = Selection.of(name, topic.topic_id, partition)
    caches = replayed(stream, selection).caches
    remote = caches.get(TopicIdPartition(topic.topic_id, name, partition), RemoteLogMetadataCache())
    highest = highest_remote_offset(log.leader_epochs, log.end_offset, remote)
    if log.earliest_pending_upload_offset is None and highest is not None:
        log = replace(log, earliest_pending_upload_offset=highest + 1)
    segments = segments_in_use(remote)
    on_disk_too = bytes_from(segments, log.local_log_start_offset)

    def way(start_offset: int) -> BootstrapWay:
        copied = bytes_from(segments, start_offset)
        if not (copied.is_exact and on_disk_too.is_exact):
            return BootstrapWay(None, start_offset)
        return BootstrapWay(copied.least + max(0, local_bytes - on_disk_too.least), start_offset)

    local = follower_fetch(log, remote).fetch_offset
    pending = follower_fetch(log, remote, from_last_tiered_offset=True).fetch_offset
    unknown = log.local_log_start_offset
    return BootstrapEstimate(
        way(log.log_start_offset),
        way(unknown if local is None else local),
        way(unknown if pending is None else pending),
    )


def _seconds(way: BootstrapWay, bytes_per_second: int | None) -> float | None:
    return None if way.bytes is None or bytes_per_second is None else round(way.bytes / bytes_per_second, 1)


def _ratio(way: BootstrapWay, whole: BootstrapWay) -> float | None:
    return round(way.bytes / whole.bytes, 4) if whole.bytes and way.bytes is not None else None
