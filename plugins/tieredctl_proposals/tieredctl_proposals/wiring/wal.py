"""`wal upload`, `restore`, `clean` and `purge`: each opens what it needs, in its own order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from tieredctl.config.plan_key import signing_key, usable_key
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.local_logs import log_dir_owner, read_local_replicas
from tieredctl.kafka.log_directory import one_cluster_id
from tieredctl.model.findings import Finding
from tieredctl.model.named_cluster import demand_named_cluster
from tieredctl.model.nearest import nearest_hint
from tieredctl.model.removal import Receipt, ReceiptsHeader, RemovalMode
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphan_removal.apply import RemovalOutcome
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.purge import PurgeOutcome
from tieredctl.ops.orphan_removal.receipts import Receipts, StoredReceipts, last_receipts
from tieredctl.ops.orphan_removal.use import PlanUser
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.orphan_removal import demand_known
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.timelines import demand_own
from tieredctl.wiring.topics_place import TopicsPlace
from tieredctl_proposals.ops.wal.both_tiers import NOTHING_REMOTE, RemoteSegments, local_parts, remote_segments
from tieredctl_proposals.ops.wal.clean import CleanPlan, continued, plan_cleaning
from tieredctl_proposals.ops.wal.contents import KnownEvents, demand_whole, events_of_objects, read_events
from tieredctl_proposals.ops.wal.line_of_leaders import Partitions, by_partition
from tieredctl_proposals.ops.wal.local_batches import LocalActiveLog, local_active_logs
from tieredctl_proposals.ops.wal.need import FreshNeeds, RemoteMetadata
from tieredctl_proposals.ops.wal.owners import WalOwners
from tieredctl_proposals.ops.wal.purge import PurgeLimits, PurgePlan, plan_purge, purge
from tieredctl_proposals.ops.wal.restore import RestoreOptions, RestoreOutcome, demand_epochs, restore
from tieredctl_proposals.ops.wal.restored_log import RestoredLog
from tieredctl_proposals.ops.wal.upload import (
    UNKNOWN_BROKER,
    ActiveSegmentsUpload,
    UploadOutcome,
    UploadPlan,
    plan_upload,
)


@dataclass(frozen=True, slots=True)
class ActiveSegments:
    """The parts of brokers' log directories that are to be uploaded."""

    log_dirs: Sequence[Path]
    topics: Collection[str] = ()
    all_segments: bool = False

    def logs(self) -> list[LocalActiveLog]:
        """Raises TieredctlError if a folder cannot be read, or is of another cluster than the one that was named or
        than another folder, and `unknown-topic` if a named topic is not there."""
        demand_named_cluster(self.cluster_id())
        replicas = read_local_replicas(self.log_dirs)
        logs = local_active_logs(replicas, topics=self.topics, all_segments=self.all_segments)
        here = {one.partition.topic for one in replicas}
        for topic in self.topics:
            if topic not in here:
                names = ", ".join(map(str, self.log_dirs))
                message = f"There is no partition of topic {topic!r} in {names}."
                hint = nearest_hint(topic, here) or "List the folder: ls LOG-DIR."
                raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=hint)
        return logs

    def broker_id(self) -> int:
        """The node's, of the first log directory that says it."""
        node_ids = (log_dir_owner(log_dir).node_id for log_dir in self.log_dirs)
        return next((one for one in node_ids if one is not None), UNKNOWN_BROKER)

    def cluster_id(self) -> str | None:
        """That of all log directories that have one; None where none has. Raises TieredctlError where they differ."""
        return one_cluster_id(self.log_dirs)


class UploadPlace(NamedTuple):
    """From where to upload, and to which store."""

    segments: ActiveSegments
    store: StorePlace
    upload_bytes: int
    metadata: MetadataPlace | None = None
    """That of remote storage (KIP-405): what it has is not uploaded."""

    def plan(self) -> UploadPlan:
        """What would be uploaded now. Raises TieredctlError if nothing may be."""
        return plan_upload(self.store.open_store(), self.segments.logs(), self.upload_bytes, self._remote())

    def apply(
        self,
        clock_ms: Callable[[], int],
        *,
        confirm: Callable[[int], None],
        without_lease: bool,
        tell: Callable[[UploadOutcome], None],
    ) -> UploadOutcome:
        """Uploads it. Raises TieredctlError if nothing may be uploaded, and as `confirm` does, which is told how many
        segments of earlier leaders are to be deleted by events, if any."""
        logs, remote = self.segments.logs(), self._remote()
        store = self.store.open_writable_store()
        return ActiveSegmentsUpload(
            store, logs, self.segments.broker_id(), clock_ms, self.upload_bytes, confirm, without_lease, tell, remote
        ).run()

    def _remote(self) -> RemoteSegments:
        """Raises TieredctlError as the place and `remote_segments` do."""
        if self.metadata is None:
            return NOTHING_REMOTE
        with self.metadata.open() as stream:
            demand_own(self.segments.log_dirs, stream.source.cluster_id)
            return remote_segments(stream, Selection())


class Restored(NamedTuple):
    """What came of a restore: without an outcome, nothing was written because of the gaps."""

    url: str
    findings: Sequence[Finding]
    outcome: RestoreOutcome | None


def restore_wal(
    place: StorePlace,
    to: Path,
    options: RestoreOptions,
    tell: Callable[[RestoredLog], None],
    metadata: MetadataPlace | None = None,
) -> Restored:
    """Restores the partitions of a store, or those that are named; a dry run only reads them. With the metadata of
    remote storage (KIP-405), also what goes on from there, and nothing that a broker would begin anew is left out.
    Raises TieredctlError where that is not possible."""
    if metadata is not None:
        with metadata.open():  # refuse unreadable metadata now, not after reading the store
            pass
    store = place.open_store()
    events = events_of_objects(store) if options.without_events else read_events(store)
    if not events.log.is_there and not events.findings:
        message = (
            f"{store.url} has no {'combined objects' if options.without_events else 'events of combined objects'}."
        )
        hint = None if options.without_events else "Where only the objects are left, give --without-events."
        raise TieredctlError(ErrorCode.PATH_MISSING, message, hint=hint)
    demand_whole(events, store.url)
    partitions = {one: some for one, some in _readable(events).items() if options.selection.has(one)}
    remote = NOTHING_REMOTE
    if metadata is not None:
        with metadata.open() as stream:
            remote = remote_segments(stream, options.selection, with_deleted=True)
    if not partitions and not remote:
        wanted = "" if options.selection == Selection() else f" of {options.selection}"
        message = f"By the events in {store.url}, nothing{wanted} is uploaded."
        hint = "List what is there with `tieredctl wal inspect`."
        options.selection.demand_known(events.replayed.partitions, f"{store.url} has nothing of", hint)
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=hint)
    if options.selection.names_several:
        options.selection.demand_known(events.replayed.partitions, f"{store.url} has nothing of")
    parts, gaps = local_parts(partitions, remote)
    demand_epochs(parts, options.untiered_topics)
    if gaps and not options.with_gaps:
        return Restored(store.url, gaps, None)
    outcome = restore(store, parts, to, broker_files_from=options.broker_files_from, dry_run=options.dry_run, tell=tell)
    return Restored(store.url, gaps, outcome)


def _readable(events: KnownEvents) -> Partitions:
    return by_partition([one for one in events.segments() if one.is_readable])


class Cleaned(NamedTuple):
    """What became of a plan."""

    plan_id: str
    outcome: RemovalOutcome
    receipts: Sequence[Receipt]
    """The last one of each object."""
    events: int
    """How many were written."""


@dataclass(frozen=True, slots=True)
class WalCleaning:
    """A store whose objects are judged, and what is known besides its own events."""

    store: StorePlace
    topics: TopicsPlace
    give_up_after_ms: int
    clock_ms: Callable[[], int]
    _remote: RemoteMetadata
    _cluster: Cluster | None

    def plan(self, limits: Limits) -> CleanPlan:
        """What may go now. Raises TieredctlError if that cannot be known, as where the clocks of host and store are
        apart: ages would be wrong."""
        store = self.store.open_store()
        demand_common_time(store, self.clock_ms)
        with self._owners(store) as owners:
            return plan_cleaning(store, owners.fresh, self._remote.followed.cluster_id, limits)

    def apply(
        self, plan: CleanPlan, cluster_id: str, mode: RemovalMode, tell: Callable[[RemovalOutcome], None]
    ) -> Cleaned:
        """Removes what is planned. Raises TieredctlError `plan-key` where no key seals what the copies hold, and if
        nothing may be removed."""
        plan.demand_share()
        store = self.store.open_writable_store()
        shown = continued(plan.shown(uuid4().hex, cluster_id, mode, self.clock_ms()), store)
        begun = list[Receipts]()

        def begin(header: ReceiptsHeader, _must_exist: bool) -> Receipts:
            begun.append(StoredReceipts.begun(store, header))
            return begun[0]

        with self._owners(store, plan.eventless) as owners:
            user = PlanUser(
                *(shown, store, owners, begin, self.clock_ms, plan.limits),
                tell=tell,
                key=signing_key(),  # its receipts are beside the copies, and prove nothing without a seal
                purpose="wal clean",
            )
            outcome = user.run()
        last = last_receipts(begun[0].entries())
        receipts = [last[one.key] for one in plan.objects if one.key in last]
        return Cleaned(shown.header.plan_id, outcome, receipts, owners.events)

    def plan_purge(self, older_than_ms: int, max_percent: float) -> PurgePlan:
        """The copies in quarantine that may be deleted now. Raises TieredctlError if that cannot be known."""
        limits = PurgeLimits(demand_known(self._remote.followed.cluster_id), older_than_ms, max_percent)
        store = self.store.open_store()
        with self._owners(store) as owners:
            return plan_purge(store, owners, limits)

    def purge(self, plan: PurgePlan) -> PurgeOutcome:
        """Deletes what is planned. Raises TieredctlError if nothing may be deleted."""
        store = self.store.open_writable_store()
        with self._owners(store) as owners:
            return purge(plan, store, owners, usable_key())

    @contextmanager
    def _owners(self, store: ObjectStore, eventless: Sequence[str] = ()) -> Iterator[WalOwners]:
        with self.topics.open(self.clock_ms()) as topics:
            fresh = FreshNeeds(store, self._remote, topics, self._cluster, self.clock_ms, self.give_up_after_ms)
            yield WalOwners(fresh, self.clock_ms, eventless)


@contextmanager
def wal_cleaning(
    store: StorePlace,
    metadata: MetadataPlace,
    topics: TopicsPlace,
    *,
    cluster_id: str | None,
    give_up_after_ms: int,
    clock_ms: Callable[[], int],
) -> Iterator[WalCleaning]:
    """The cleaning of a store by the metadata of remote storage (KIP-405)."""
    metadata.demand_topic_based()
    with ExitStack() as stack:
        followed = stack.enter_context(closing(FollowedMetadata(metadata.open_source)))
        followed.cluster_id = followed.source().cluster_id or cluster_id
        cluster = None if metadata.cluster is None else stack.enter_context(metadata.cluster.open())
        yield WalCleaning(store, topics, give_up_after_ms, clock_ms, RemoteMetadata(followed), cluster)
