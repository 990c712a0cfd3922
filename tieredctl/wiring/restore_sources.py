"""What a restore knows of a cluster: by a backup set, or by the keys of its objects alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.backup.cluster_state import ClusterState, read_cluster_state
from tieredctl.ops.backup.kept_secrets import read_secrets
from tieredctl.ops.backup.key_pairs import read_identity
from tieredctl.ops.backup.manifests import (
    CLUSTER_FILE,
    EVENTS_FILE,
    GROUPS_FILE,
    OFFSETS_FILE,
    Manifest,
    NamedSecret,
)
from tieredctl.ops.backup.sets import ClusterSets, KnownSet, damaged
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata_recovery.event_rebuilding import StoredSegment, StoreListing
from tieredctl.ops.metadata_recovery.recovery_plan import StoredPartitions
from tieredctl.ops.restore.cluster_of_keys import EmptyMetadata, chosen_ids, cluster_of_keys, manifest_of_keys
from tieredctl.ops.restore.placement import NewNode
from tieredctl.ops.restore.restored_cluster import cut_to_topics, is_internal
from tieredctl.ops.restore.restored_logs import LogEnds
from tieredctl.ports.cluster import CommittedOffset
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore, list_unreserved
from tieredctl.wiring.backup import backup_sets
from tieredctl.wiring.places import StorePlace

_Item = TypeVar("_Item")
Beginnings = Mapping[tuple[str, int], int]
"""Where the user says that logs begin, by topic and partition."""


@dataclass(frozen=True, slots=True)
class ListedStore:
    """What a store has, by partition."""

    store: ObjectStore
    layout: Layout
    listing: StoreListing
    stored: StoredPartitions | None = None
    """Where it was listed before."""

    @classmethod
    def of(cls, place: StorePlace, selection: Selection) -> ListedStore | None:
        """None of an empty store."""
        try:
            remote = place.open()
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_LAYOUT or any(list_unreserved(place.open_store())):
                raise
            return None
        return cls(remote.store, remote.layout, StoreListing(remote.store, remote.layout, selection))

    def partitions(self) -> Iterator[tuple[TopicIdPartition, Sequence[StoredSegment]]]:
        """Each with its segments, as it is listed: all at once would be much for a large store. Raises TieredctlError
        `no-overlap` at the end where the layout explains nothing."""
        if self.stored is not None:
            yield from self.stored
            return
        yield from self.listing.partitions()
        objects = self.listing.objects
        if objects and self.listing.unexplained == objects:
            message = f"The layout {self.layout.name} explains none of the {objects} objects of {self.store.url}."
            raise TieredctlError(ErrorCode.NO_OVERLAP, message)


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """What is known of a cluster that is to be restored."""

    manifest: Manifest
    sha256: str
    """The SHA-256 of what it is known by: the same on every machine."""
    state: ClusterState
    events: MetadataSource
    store: ListedStore | None
    """None where it is empty."""
    log_ends: Mapping[tuple[str, int], LogEnds] = field(default_factory=dict)
    """By topic id and partition."""
    committed: Sequence[CommittedOffset] = ()
    newer_sets: int = 0
    accepts_unknown: bool = True
    secrets: Sequence[NamedSecret] | None = None
    """That come back with it; None where none was asked for."""


class RestoreSource(Protocol):
    """Says what is known of a cluster."""

    def opened(
        self, store: StorePlace, nodes: Sequence[NewNode], topics: Sequence[str], begin_at: Beginnings
    ) -> AbstractContextManager[KnownCluster]:
        """The cluster with these topics, or with all where none is named. Raises TieredctlError as the stores do."""
        ...


def selected(topics: Sequence[str]) -> Selection:
    """What is read of a store and of events; Kafka's own topics have nothing there."""
    return Selection.given([one for one in topics if not is_internal(one)] or None, None, None, ())


@dataclass(frozen=True, slots=True)
class BackupSource:
    """The newest set of a cluster, or the one of a number."""

    sets_at: StorePlace
    cluster_id: str | None = None
    number: int | None = None
    identity: Path | None = None
    """A file with the private key that opens the set's secrets; None to restore without them."""

    @contextmanager
    def opened(
        self,
        store: StorePlace,
        nodes: Sequence[NewNode],  # noqa: ARG002 - the set knows the nodes
        topics: Sequence[str],
        begin_at: Beginnings,  # noqa: ARG002 - the set knows the partitions
    ) -> Iterator[KnownCluster]:
        """Every file of the set and of those that it needs is checked first: raises TieredctlError where one is
        damaged, and as `read_identity` and `read_secrets` do."""
        identity = None if self.identity is None else read_identity(self.identity)
        sets = backup_sets(self.sets_at, self.cluster_id)
        chain = sets.chain(sets.newest() if self.number is None else self.number)
        manifest = chain[-1].manifest
        state = read_cluster_state(sets.read_file(manifest, CLUSTER_FILE), manifest.metadata_log_end)
        if identity is not None:
            state = state.with_secrets(read_secrets(sets, manifest, identity))
        state = ClusterState(cut_to_topics(state.image, topics), state.epoch, state.versions)
        log_ends, committed = _log_ends(sets, manifest), _committed(sets, manifest)
        newer = sum(one > manifest.number for one in sets.numbers())
        with (
            TemporaryDirectory(prefix="tieredctl-restore-") as folder,
            closing(_events(sets, chain, Path(folder))) as events,
        ):
            yield KnownCluster(
                *(manifest, chain[-1].sha256, state, events, ListedStore.of(store, selected(topics))),
                *(log_ends, committed, newer),
                secrets=None if identity is None else state.named_secrets(),
            )


@dataclass(frozen=True, slots=True)
class KeysSource:
    """The keys of a cluster's objects; all else is unknown."""

    cluster_id: str
    """The one that the cluster will have."""
    metadata_partitions: int
    topic_ids: Mapping[str, str]
    """The id that counts, of topics that were recreated."""
    controllers: Collection[int]
    """The nodes that are no brokers, and have no replica."""
    accepts_unknown: bool

    @contextmanager
    def opened(
        self, store: StorePlace, nodes: Sequence[NewNode], topics: Sequence[str], begin_at: Beginnings
    ) -> Iterator[KnownCluster]:
        """Raises TieredctlError `no-overlap` for a store without a segment, `unknown-topic` for a topic that it does
        not have, and as `chosen_ids` and `cluster_of_keys` do."""
        listed = ListedStore.of(store, selected(topics))
        stored = [] if listed is None else list(listed.partitions())
        if listed is None or not (stored or listed.listing.others):
            raise TieredctlError(ErrorCode.NO_OVERLAP, f"{store.url} has no segment.", hint="Check --store.")
        partitions = [partition for partition, _ in stored]
        named = Selection.given(topics, None)
        named.demand_known({*listed.listing.others, *partitions}, f"{store.url} has no segment of")
        ids = chosen_ids(partitions, self.topic_ids)
        events = EmptyMetadata.of(self.cluster_id, self.metadata_partitions)
        also = [one for one in begin_at if one[0] in ids]
        as_of_ms = max(one.stored_ms for _, segments in stored for one in segments)
        brokers = sorted({node.node_id for node in nodes}.difference(self.controllers))
        state = cluster_of_keys(partitions, ids, events, brokers, also, as_of_ms)
        seed = sha256(f"{self.cluster_id} ".encode() + state.checkpoint()).hexdigest()
        state.image.controllers = {one: {} for one in self.controllers}
        manifest = manifest_of_keys(events, listed.listing.unexplained)
        known = manifest, seed, state, events, replace(listed, stored=stored)
        yield KnownCluster(*known, accepts_unknown=self.accepts_unknown)


def _events(sets: ClusterSets[ObjectStore], chain: Sequence[KnownSet], folder: Path) -> MetadataSource:
    """The events of all sets of a chain, each file checked and put on this machine's disk."""
    from tieredctl.kafka.export_chain import ExportChain
    from tieredctl.kafka.export_file import ExportFile

    exports = []
    for one in chain:
        file = folder / f"{one.manifest.number}-{EVENTS_FILE}"
        file.write_bytes(sets.read_file(one.manifest, EVENTS_FILE))
        exports.append(ExportFile(file))
    return ExportChain(exports)


def _log_ends(sets: ClusterSets[ObjectStore], manifest: Manifest) -> dict[tuple[str, int], LogEnds]:
    def read(one: Mapping[str, Any]) -> tuple[tuple[str, int], LogEnds]:
        ends = LogEnds(int(one["earliest"]), int(one["latest"]))
        if not 0 <= ends.earliest <= ends.latest:
            raise ValueError(ends)
        return (str(one["topicId"]), int(one["partition"])), ends

    return dict(_items(sets, manifest, OFFSETS_FILE, read))


def _committed(sets: ClusterSets[ObjectStore], manifest: Manifest) -> list[CommittedOffset]:
    if manifest.file(GROUPS_FILE) is None:
        return []

    def read(one: Mapping[str, Any]) -> CommittedOffset:
        return CommittedOffset(str(one["group"]), str(one["topic"]), int(one["partition"]), int(one["offset"]))

    return _items(sets, manifest, GROUPS_FILE, read)


def _items(
    sets: ClusterSets[ObjectStore], manifest: Manifest, name: str, read: Callable[[Mapping[str, Any]], _Item]
) -> list[_Item]:
    """What `read` makes of each item of a file. Raises TieredctlError `undecodable` for what no backup wrote: its
    checksum does not prove who did."""
    data = sets.read_file(manifest, name)
    try:
        return [read(one) for one in json.loads(data)["items"]]
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        raise damaged(sets.file_key(manifest, name), "it is not what `backup run` writes") from None
