"""`store check`, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.index_cache_check import IndexCacheCheck, RemoteIndexes
from tieredctl.ops.store_check.local_stores import LocalStore, MetadataToCheck
from tieredctl.ops.store_check.partition_folder_check import check_partition_folder, check_replicas
from tieredctl.ops.store_check.snapshot_check import check_committed_offsets, check_snapshot
from tieredctl.process.progress import note_more


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What was checked, and what was found."""

    stores: Sequence[LocalStore]
    cached_files: int
    findings: Sequence[Finding]

    @property
    def partitions(self) -> int:
        return sum(len(store.partitions) for store in self.stores)

    @property
    def snapshots(self) -> int:
        return sum(folder.snapshot is not None for store in self.stores for folder in store.partitions)

    def summary(self) -> dict[str, Any]:
        return {
            "logDirs": len(self.stores),
            "partitions": self.partitions,
            "remoteLogSnapshots": self.snapshots,
            "committedOffsets": sum(store.committed_offsets is not None for store in self.stores),
            "indexCacheFiles": self.cached_files,
            "findings": len(self.findings),
        }


def check_stores(stores: Sequence[LocalStore], stream: EventStream, remote: RemoteIndexes | None = None) -> StoreCheck:
    """Judges stores that were read before the stream was opened. With `remote`, cached indexes are also compared
    with the remote store."""
    metadata = MetadataToCheck(stream, stores)
    index_caches = IndexCacheCheck(metadata, remote)
    findings = list(metadata.findings)
    for store in stores:
        findings += store.findings
        findings += check_committed_offsets(store, metadata)
        for folder in store.partitions:
            findings += check_snapshot(store, folder, metadata)
            findings += check_partition_folder(store, folder, metadata)
            note_more("partitions checked", 1)
        findings += index_caches.check(store)
    findings += check_replicas(stores)
    return StoreCheck(stores, index_caches.files, findings)
