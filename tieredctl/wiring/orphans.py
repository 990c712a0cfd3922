"""`orphans scan` and `orphans plan`: open and read everything in the one safe order, whoever calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.live_topics import TopicSources, doubt_about
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.noncurrent import Noncurrent, noncurrent
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.metadata import METADATA_AND_STORE, Known, demand_known_by_all
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

if TYPE_CHECKING:
    from tieredctl.model.removal import PlanTotals
    from tieredctl.ops.orphan_removal.limits import PlanOptions
    from tieredctl.ops.orphan_removal.orphan_plan import Planning


@dataclass(frozen=True, slots=True)
class ScanPlaces:
    """What a scan reads."""

    metadata: MetadataPlace
    store: StorePlace
    topics: TopicsPlace | None = None
    """Where to ask which topics exist; None for the cluster that the metadata belongs to, if it is live. With nothing
    to ask, the metadata log beside the metadata tells it, as far as that proves anything."""
    listing: ListingPlace = field(default_factory=ListingPlace)

    def asked_topics(self) -> TopicsPlace:
        """Where it is asked."""
        return (self.topics or TopicsPlace.beside(self.metadata)).or_logs_of(self.metadata)


@dataclass(frozen=True, slots=True)
class OpenedScan:
    """A scan that runs while its documents are read, and what it reads."""

    scan: Scan
    remote: Remote[ObjectStore]
    topics: TopicSources
    lists_store: bool
    """Whether the store itself is listed, not a list of keys or an inventory."""
    described_listing: Document

    def source(self) -> Document:
        """The metadata, the list of topics and the store that were read; omits what was not read yet."""
        shown = self.scan
        described = shown.stream.source.describe() if shown.stream else {}
        live = shown.live_topics.describe() if shown.live_topics else None
        remote = {"store": self.remote.store.url, **self.described_listing, "layout": self.remote.layout.name}
        return {**described, "liveTopics": live, **remote}

    def noncurrent(self) -> Noncurrent | None:
        """What the store keeps besides its objects; None if the store itself was not listed, and should not be now."""
        options = self.scan.options
        return noncurrent(*self.remote, options.selection, options.price) if self.lists_store else None

    def doubt(self) -> TieredctlError | None:
        """Why the list of topics cannot be complete, if that was found."""
        return doubt_about(self.topics, self.scan.stream.source) if self.scan.stream else None


class ShownScan(Protocol):
    """What is shown of a scan, wherever it ran."""

    @property
    def options(self) -> ScanOptions: ...

    @property
    def findings(self) -> list[Finding]: ...

    def run(self) -> None: ...

    def totals(self) -> list[Document]: ...

    def documents(self) -> Iterator[Document]: ...

    def summary(self) -> Document: ...


class ShownScanSources(Protocol):
    """A scan with what it reads, as `OpenedScan` has them."""

    @property
    def scan(self) -> ShownScan: ...

    @property
    def topics(self) -> TopicSources: ...

    def source(self) -> Document: ...

    def noncurrent(self) -> Noncurrent | None: ...

    def doubt(self) -> TieredctlError | None: ...


@runtime_checkable
class ScanEngine(Protocol):
    """An engine that scans elsewhere, in the same order and by the same rules."""

    def opened_scan(
        self, places: ScanPlaces, options: ScanOptions, *, lists_all: bool
    ) -> AbstractContextManager[ShownScanSources]:
        """Opens a scan as `opened_scan` does. Without `lists_all`, only orphans have documents."""
        ...


def known_documents(places: ScanPlaces, shown: ShownScan) -> Iterator[Document]:
    """A scan's documents, to the end. Raises TieredctlError as `demand_known_objects` does."""
    yield from shown.documents()
    demand_known_objects(places, shown)


def demand_known_objects(places: ScanPlaces, shown: ShownScan) -> None:
    """Raises TieredctlError `unknown-topic` or `unknown-segment` where the store had none of the objects that a scan
    was to look at, and the metadata knows nothing of them."""
    _demand_known(places, shown.options.selection, are_none=not shown.summary()["objects"])


def _demand_known(places: ScanPlaces, selection: Selection, *, are_none: bool) -> None:
    if are_none or selection.names_several:
        demand_known_by_all(places.metadata, selection, METADATA_AND_STORE, lambda: _stored(places, selection))


def _stored(places: ScanPlaces, selection: Selection) -> Known:
    """What the store has of what is selected."""
    inventory = Inventory(*places.store.open(), selection)
    for _ in inventory.objects():
        pass
    return Known(inventory.partitions, inventory.segment_ids)


@contextmanager
def scan_on(engine: object, places: ScanPlaces, options: ScanOptions, *, lists_all: bool) -> Iterator[ShownScanSources]:
    """A scan on an engine that `engine_named` gave, as `opened_scan` makes it here; where only totals are shown,
    `lists_all` may be off. Raises TieredctlError `usage` for an engine that does not scan."""
    if isinstance(engine, LocalEngine):
        with opened_scan(places, options) as opened:
            opened.scan.lists_all = lists_all
            yield opened
        return
    if not isinstance(engine, ScanEngine):
        raise TieredctlError(ErrorCode.USAGE, "This engine only verifies.", hint="Omit --engine.")
    with engine.opened_scan(places, _as_configured(places, options), lists_all=lists_all) as elsewhere:
        yield elsewhere


def _as_configured(places: ScanPlaces, options: ScanOptions) -> ScanOptions:
    from tieredctl.config.file import storage_price
    from tieredctl.config.plan_key import usable_key

    return replace(options, key=usable_key(), price=options.price or storage_price(places.store.url))


@contextmanager
def opened_scan(places: ScanPlaces, options: ScanOptions) -> Iterator[OpenedScan]:
    """Opens a scan of which segment owns each object, to be read while this is open. The store is listed first, then
    the metadata is read, then the cluster is asked which topics exist, then the store again for what looks orphaned,
    and if anything does, for promised objects that were not listed.

    Sets `options.topic_sources`, `options.key` if the user has one, and `options.price` from the configuration if it is
    not given. Metadata that cannot be read, or is not kept in the topic, is refused before the store is listed. Raises
    TieredctlError as the places and `Scan` do.
    """
    from tieredctl.config.file import storage_price
    from tieredctl.config.plan_key import usable_key

    # A list of keys or an inventory may be used because the store cannot be reached from here.
    keyed = replace(options, key=usable_key())
    with _opened(places, keyed, asks_again=places.listing.is_of_store) as opened:
        if options.price is None:
            opened.scan.options = replace(opened.scan.options, price=storage_price(opened.remote.store.url))
        yield opened


class WrittenPlan(NamedTuple):
    """A plan that was written."""

    planning: Planning
    totals: PlanTotals
    source: Document
    """Which metadata, which store."""
    silence: str | None
    """That the cluster did not say which topics are live."""
    lone_witness: str | None
    """That one file alone says it."""


def write_plan(
    places: ScanPlaces,
    options: ScanOptions,
    plan: PlanOptions,
    to: Path,
    clock_ms: Callable[[], int],
    *,
    with_uploads: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> WrittenPlan:
    """Scans as `opened_scan` does, and writes a plan to the file `to`, signed with the user's key; a failure leaves
    nothing, nor does a dry run. `clock_ms` is this host's clock. `with_uploads` plans to abort incomplete uploads too,
    `force` replaces a file.

    Raises TieredctlError if anything speaks against removing.
    """
    from tieredctl.config.plan_key import key_for_plan
    from tieredctl.layouts.registry import layouts_installed
    from tieredctl.ops.guards.store_clock import demand_common_time
    from tieredctl.ops.orphan_removal.limits import demand_age
    from tieredctl.ops.orphan_removal.orphan_plan import Planning
    from tieredctl.ops.orphan_removal.plan_file import plan_if_any

    demand_age(options.min_age_ms, allow_young=plan.allow_young)
    key = key_for_plan(dry_run=dry_run)
    with (
        _opened(places, replace(options, key=key), asks_again=True) as opened,
        plan_if_any(to, key, force=force, dry_run=dry_run) as writer,
    ):
        demand_common_time(opened.remote.store, clock_ms)
        uploads_of = opened.remote.store if with_uploads else None
        is_marked = places.listing.mark is not None
        planning = Planning(opened.scan, writer, plan, layouts_installed(), uploads_of, lists_all=not is_marked)
        totals = planning.run()
        _demand_known(places, options.selection, are_none=not opened.scan.groups)
        described = opened.scan.stream.source.describe() if opened.scan.stream else {}
        source = {**described, "store": opened.remote.store.url, "layout": opened.remote.layout.name}
        return WrittenPlan(planning, totals, source, opened.topics.silence, opened.topics.lone_witness)


@contextmanager
def _opened(places: ScanPlaces, options: ScanOptions, *, asks_again: bool) -> Iterator[OpenedScan]:
    metadata = places.metadata
    remote = places.store.open()
    oldest_ms = options.now_ms - options.min_age_ms
    places.listing.demand_fits(remote.layout)
    listed = places.listing.open(remote.store, places.store, options.now_ms, oldest_ms)
    with metadata.open() as stream:  # refuse unreadable metadata now, not after listing the store
        if listed.mark is not None:
            listed.mark.demand_cluster(stream.source.cluster_id)
    metadata.demand_topic_based()
    with ExitStack() as stack:

        def read() -> EventStream:
            return stack.enter_context(metadata.open())

        topic_sources = stack.enter_context(places.asked_topics().open(options.now_ms))
        asked_again = remote.store if asks_again else None
        scanned = replace(options, topic_sources=topic_sources, has_times=places.listing.has_times)
        is_told, is_now = places.listing.is_told, places.listing.is_of_store and places.listing.resume is None
        scan = Scan(listed.objects, remote.layout, remote.store.url, read, scanned, asked_again, is_now, is_told)
        yield OpenedScan(scan, remote, topic_sources, places.listing.is_of_store, listed.described)
