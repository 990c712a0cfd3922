"""`recover indexes`: plans which of a segment's indexes are missing or damaged, and writes what was planned."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tieredctl.kafka.cluster import Cluster
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.index_recovery.applying import IndexRecovery, IndexRecoveryOutcome, demand_conditional_writes
from tieredctl.ops.index_recovery.broker_cache import cached_file_names, cached_files
from tieredctl.ops.index_recovery.index_plan import IndexRecoveryPlan, finished_segment, plan_index_recovery
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES
from tieredctl.storage.protocol import WritableObjectStore
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace

_INDEX_INTERVAL = "index.interval.bytes"


@dataclass(frozen=True, slots=True)
class SegmentRecovery:
    """A plan, and what applies it."""

    plan: IndexRecoveryPlan
    index_interval_bytes: int
    cluster_id: str | None
    store_url: str
    _source: Document
    _metadata: MetadataPlace
    _remote: Remote[WritableObjectStore] | None
    """None if the store was opened for reading only."""

    def source(self) -> Document:
        """What it is about."""
        return self._source

    def findings(self) -> list[Finding]:
        """None: the rows show what is wrong with each part."""
        return []

    def rows(self) -> list[Document]:
        """One for each part."""
        return [part.document() for part in self.plan.parts]

    def summary(self) -> Document:
        """The segment, and how many parts are in each condition."""
        cached = {"files": self.cached_file_names(), "found": [str(path) for path in self.cached_files()]}
        return {**self.plan.summary(), "indexIntervalBytes": self.index_interval_bytes, "brokerCache": cached}

    def cached_file_names(self) -> list[str]:
        """The files that a broker keeps in its cache after reading the segment."""
        return cached_file_names(self.plan.metadata)

    def cached_files(self) -> list[Path]:
        """Those of them that are in the log directories whose metadata is read."""
        return cached_files(self.plan.metadata, self._metadata.log_dirs)

    def apply(self, clock_ms: Callable[[], int]) -> IndexRecoveryOutcome:
        """Writes what was shown, while it holds the store's lease. Whatever stops it is in the outcome. Raises
        TieredctlError if it cannot begin."""
        if self._remote is None:
            raise TypeError("a store that was opened to be read is not changed")
        store = self._remote.store
        with lease_held(store, "recover indexes", clock_ms) as lease, ExitStack() as opened:
            return IndexRecovery(self.plan, store, lambda: opened.enter_context(self._metadata.open())).run(lease)


def plan_segment_recovery(
    segment_id: str, metadata: MetadataPlace, store: StorePlace, index_interval_bytes: int | None, *, to_apply: bool
) -> SegmentRecovery:
    """The plan for a segment's indexes, made from its whole log. Changes nothing.

    Without `index_interval_bytes` the live cluster is asked. Raises TieredctlError as opening does, and
    `store-incapable` if the plan is to be applied but this store does not allow it.
    """
    opened, remote = store.open_to(apply=to_apply)
    with metadata.open() as stream:
        metadata.demand_topic_based()
        segment = finished_segment(stream, segment_id)
        cluster_id = stream.source.cluster_id
        source = {**stream.source.describe(), "store": opened.store.url, "layout": opened.layout.name}
    if index_interval_bytes is None:
        index_interval_bytes = _index_interval(segment.metadata.topic_id_partition.topic, metadata)
    plan = plan_index_recovery(segment, opened.store, opened.layout, index_interval_bytes)
    if remote is not None and plan.to_write():
        demand_conditional_writes(remote.store)
    return SegmentRecovery(plan, index_interval_bytes, cluster_id, opened.store.url, source, metadata, remote)


def _index_interval(topic: str, place: MetadataPlace) -> int:
    """The live cluster's setting, if there is one; Kafka's default for a topic that it no longer has."""
    if place.cluster is None:
        return DEFAULT_INDEX_INTERVAL_BYTES
    with place.cluster.open() as cluster:
        return _asked(cluster, topic)


def _asked(cluster: Cluster, topic: str) -> int:
    if topic not in cluster.topic_names():
        return DEFAULT_INDEX_INTERVAL_BYTES
    return int(cluster.topic_configs([topic])[topic][_INDEX_INTERVAL].value or DEFAULT_INDEX_INTERVAL_BYTES)
