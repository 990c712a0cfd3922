"""`wal upload`, `restore`, `inspect`, `verify` and `explain`: each opens what it needs, in its own order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.kafka.local_replicas import read_local_replicas
from tieredctl.model.findings import Finding
from tieredctl.ops.wal.contents import KnownEvents, demand_whole, read_events
from tieredctl.ops.wal.local_batches import LocalActiveLog, local_active_logs
from tieredctl.ops.wal.restore import Partitions, RestoreOutcome, by_partition, gaps_in, restore
from tieredctl.ops.wal.restored_log import RestoredLog
from tieredctl.ops.wal.upload import ActiveSegmentsUpload, UploadOutcome, UploadPlan, plan_upload
from tieredctl.wiring.places import StorePlace

_UNKNOWN_BROKER = -1


@dataclass(frozen=True, slots=True)
class ActiveSegments:
    """Which parts of brokers' log directories are to be uploaded."""

    log_dirs: Sequence[Path]
    topic: str | None = None
    all_segments: bool = False

    def logs(self) -> list[LocalActiveLog]:
        """Raises TieredctlError if a folder cannot be read, and `unknown-topic` if the topic is not there."""
        found = local_active_logs(read_local_replicas(self.log_dirs), topic=self.topic, all_segments=self.all_segments)
        if not found and self.topic is not None:
            names = ", ".join(map(str, self.log_dirs))
            message = f"There is no partition of topic {self.topic!r} in {names}."
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint="List the folder: ls LOG-DIR.")
        return found

    def broker_id(self) -> int:
        """The node's, of the first log directory that says it."""
        for folder in self.log_dirs:
            with suppress(OSError, DecodeError):
                node_id = read_meta_properties((folder / META_PROPERTIES_FILE).read_bytes()).node_id
                if node_id is not None:
                    return node_id
        return _UNKNOWN_BROKER


class UploadPlace(NamedTuple):
    """From where to upload, and to which store."""

    segments: ActiveSegments
    store: StorePlace
    upload_bytes: int

    def plan(self) -> UploadPlan:
        """What would be uploaded now. Raises TieredctlError if nothing may be."""
        return plan_upload(self.store.open_store(), self.segments.logs(), self.upload_bytes)

    def apply(
        self, clock_ms: Callable[[], int], *, without_lease: bool, tell: Callable[[UploadOutcome], None]
    ) -> UploadOutcome:
        """Uploads it. Raises TieredctlError if nothing may be uploaded."""
        logs = self.segments.logs()
        store = self.store.open_writable_store()
        return ActiveSegmentsUpload(
            store, logs, self.segments.broker_id(), clock_ms, self.upload_bytes, without_lease, tell
        ).run()


class Restored(NamedTuple):
    """What came of a restore: without an outcome, nothing was written because of the gaps."""

    url: str
    findings: Sequence[Finding]
    outcome: RestoreOutcome | None


def restore_wal(
    place: StorePlace,
    to: Path,
    *,
    topic: str | None,
    partition: int | None,
    broker_files_from: Path | None,
    with_gaps: bool,
    tell: Callable[[RestoredLog], None],
) -> Restored:
    """Restores the partitions of a store, or those that are named. Raises TieredctlError where that is not possible."""
    store = place.open_store()
    events = read_events(store)
    if not events.log.is_there:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"{store.url} has no events of combined objects.")
    demand_whole(events, store.url)
    partitions = _selected(events, topic, partition)
    if not partitions and topic is not None:
        raise TieredctlError(
            ErrorCode.UNKNOWN_TOPIC,
            f"The events in {store.url} have nothing uploaded of {topic!r}.",
            hint="List what is there with `tieredctl wal inspect`.",
        )
    gaps = gaps_in(partitions)
    if gaps and not with_gaps:
        return Restored(store.url, gaps, None)
    return Restored(store.url, gaps, restore(store, partitions, to, broker_files_from=broker_files_from, tell=tell))


def _selected(events: KnownEvents, topic: str | None, partition: int | None) -> Partitions:
    found = by_partition([one for one in events.segments() if one.is_readable])
    return {
        one: segments
        for one, segments in found.items()
        if topic in (None, one.topic) and partition in (None, one.partition)
    }
