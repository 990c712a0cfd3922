"""`store compare` and `store copy`: opens two stores and the metadata in the one safe order.

The source is only opened to be read. What the metadata promises is looked for in both stores: replication copies
corruption too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ops.guards.pace import Pace
from tieredctl.ops.orphans.bucket_inventory import BucketPlace
from tieredctl.ops.store_copy.broker_settings import settings_to_change
from tieredctl.ops.store_copy.comparison import By, StoreComparison
from tieredctl.ops.store_copy.copying import CopiedObject, ObjectCopier
from tieredctl.ops.store_copy.difference import Difference, PromisedFirst, Turns, oldest_first
from tieredctl.ops.store_copy.recorded_sizes import may_sizes_change
from tieredctl.ops.store_copy.run import CopyRun, demand_uploads, difference
from tieredctl.ops.store_copy.unproven import unproven_in
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Rewrapping, RewrappingLayout
from tieredctl.ports.object_store import RESERVED_FOLDER, ObjectStore, WritableObjectStore
from tieredctl.ports.store_kinds import Address, from_everywhere, store_kind
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.storage.server_side import server_side_copies
from tieredctl.wiring.listing_place import bucket_place
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.verify import Verified, verify

_STUCK_AFTER_MS = 3_600_000
_SERVER_OPTIONS = ("endpoint", "account")
"""What says which server a URL is of."""
_ABOUT_THE_STORES = (ExitCode.CORRUPTION, ExitCode.INCOMPLETE)
_NOTHING_PROMISED = (ErrorCode.NO_OVERLAP, ErrorCode.UNKNOWN_LAYOUT)


@dataclass(frozen=True, slots=True)
class TwoStores:
    """A source, a destination, and the metadata that promises what both hold, if that is given."""

    source: StorePlace
    destination: StorePlace
    metadata: MetadataPlace
    now_ms: int
    rewrap: Mapping[str, str] | None = None
    """Options of the layout that name the destination's key pair, where data keys are wrapped for it."""

    def demand_apart(self) -> None:
        """Raises TieredctlError `usage` where one store is the other, or within it, by their URLs."""
        one, other = (_location(place) for place in (self.source, self.destination))
        if one.startswith(other) or other.startswith(one):
            message = f"{self.source.url} and {self.destination.url} are the same store, or one is within the other."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Name two stores that share no object.")

    def rewrapping_of(self, source: ObjectStore, *, may_grow: bool) -> Rewrapping | None:
        """How data keys are wrapped in the destination; None where they are as in the source, which is given open.
        Raises TieredctlError `usage` where the layout has none, and as `RewrappingLayout.rewrapping` does."""
        if self.rewrap is None:
            return None
        layout = self.source.layout_in(source)
        if not isinstance(layout, RewrappingLayout):
            raise TieredctlError(ErrorCode.USAGE, f"Layout {layout.name} wraps no data keys: --rewrap is not for it.")
        return layout.rewrapping(source, self.rewrap, may_grow=may_grow)

    def judged(self, *, destination: bool = False) -> Verified | None:
        """What `verify` finds by the listing of one of both; None without metadata."""
        if not self.metadata.is_given:
            return None
        place = self.destination if destination else self.source
        options = VerifyOptions(level=Level.LISTING, clock=Clock(self.now_ms, _STUCK_AFTER_MS))
        return verify(self.metadata, place, options)


@dataclass(slots=True)
class Compared:
    """A comparison that is made while its rows are read, and what the metadata says of both stores."""

    comparison: StoreComparison
    findings: Sequence[Finding]
    promised_nowhere: str | None
    """Why the destination holds nothing of what the metadata promises; None where it does, or nobody asked."""
    reserved: Sequence[str]
    """The stores with objects of tieredctl's own, which are left out."""

    def source(self) -> Document:
        """What it is about."""
        return _described(self.comparison)

    def exit_code(self) -> ExitCode:
        """The exit code of what was compared so far, apart from findings."""
        lost = ExitCode.CLEAN if self.promised_nowhere is None else ExitCode.CORRUPTION
        return worst(self.comparison.exit_code(), lost)


def compare_stores(stores: TwoStores, by: By) -> Compared:
    """Opens both, and holds both against the metadata. Raises TieredctlError as opening and `verify` do."""
    stores.demand_apart()
    source, destination = stores.source.open_store(), stores.destination.open_store()
    comparison = StoreComparison(source, destination, by, rewrapping=stores.rewrapping_of(source, may_grow=True))
    findings = _findings(stores.judged())
    found, nowhere = _of_destination(stores)
    return Compared(comparison, [*findings, *found], nowhere, _with_reserved(source, destination))


def _of_destination(stores: TwoStores) -> tuple[list[Finding], str | None]:
    """What is wrong with the destination by the metadata; and why it holds nothing of what that promises, if so."""
    try:
        return _findings(stores.judged(destination=True)), None
    except TieredctlError as error:
        if error.code not in _NOTHING_PROMISED:
            raise
        return [], error.message


@dataclass(slots=True)
class StoreCopying:
    """A plan for a copy, and how it is applied."""

    stores: TwoStores
    comparison: StoreComparison
    planned: Difference
    turns: Turns
    writable: WritableObjectStore | None
    cluster_id: str | None
    findings: list[Finding]
    """The findings of the source; the destination's are added once it was copied to."""
    reserved: Sequence[str]
    """The source, where it has objects of tieredctl's own, which are left out."""
    promised: ReplayedMetadata | None
    """The metadata by which the copy was planned, if any."""
    promised_nowhere: str | None = None
    """As in `Compared`, once the destination was looked at."""

    def source(self) -> Document:
        """What it is about."""
        return _described(self.comparison)

    def rows(self) -> Iterator[CopiedObject]:
        """What is to be copied, in the order in which it is."""
        return map(CopiedObject.planned, self.planned.in_turn())

    def summary(self) -> Document:
        """The plan's totals."""
        return {"planned": self.planned.objects, "plannedBytes": self.planned.bytes} | self.comparison.summary()

    @contextmanager
    def begun(self, clock_ms: Callable[[], int], bytes_a_second: int | None) -> Iterator[CopyRun]:
        """A run that holds the destination's lease. Raises TieredctlError if it cannot begin."""
        if self.writable is None:
            raise TypeError("a store that was opened to be read is not copied to")
        demand_uploads(self.writable)
        pace = Pace(bytes_a_second) if bytes_a_second else lambda _: None
        with lease_held(self.writable, "store copy", clock_ms) as lease:
            _demand_another(self.comparison.source, self.writable)
            within = server_side_copies(self.comparison.source, self.writable)
            copier = ObjectCopier(
                *(self.comparison.source, self.writable, pace, None if within is None else within.copy),
                self.comparison.rewrapping,
            )
            yield CopyRun(self.comparison, self.planned, self.turns, copier, lease)

    def settings_to_change(self) -> Sequence[str]:
        """What brokers have to be told to read the destination; empty where it is not known what writes the keys."""
        try:
            layout = self.stores.source.layout_in(self.comparison.source)
        except TieredctlError:
            return ()
        source, destination = (_placed(place.url) for place in (self.stores.source, self.stores.destination))
        of_key_pair = () if self.comparison.rewrapping is None else self.comparison.rewrapping.settings
        return [*settings_to_change(layout.name, source, destination, of_key_pair)]

    def look_at_destination(self) -> None:
        """Holds the destination against the metadata. An object that is not there came after the last look, and is not
        lost, where the source has it and nothing promised it when the copy was planned. Raises TieredctlError as
        `verify` does."""
        found, self.promised_nowhere = _of_destination(self.stores)
        missing = {one.about for one in found if one.code is FindingCode.OBJECT_MISSING}
        about = [one for one in missing if isinstance(one, SegmentSubject)]
        then = {} if self.promised is None else self.promised.states_of(one.segment_id for one in about)
        since = {
            one
            for one in about
            if then.get(one.segment_id) is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED and self._has_source(one.key)
        }
        self.findings += [one for one in found if one.about not in since]

    def _has_source(self, key: str | None) -> bool:
        return key is not None and self.comparison.source.head(key) is not None


@contextmanager
def store_copying(stores: TwoStores, by: By, *, to_apply: bool) -> Iterator[StoreCopying]:
    """The plan for a copy, which is gone afterwards. Changes nothing, but for the trial of an unknown server where it
    is to be applied. Raises TieredctlError as opening and `verify` do."""
    stores.demand_apart()
    source = stores.source.open_store()
    judged = stores.judged()
    rewrapping = stores.rewrapping_of(source, may_grow=_may_grow(judged, stores, source))
    writable = stores.destination.open_writable_store() if to_apply else None
    destination: ObjectStore = writable or stores.destination.open_store()
    comparison = StoreComparison(source, destination, by, unproven_in(destination), rewrapping=rewrapping)
    replayed = None if judged is None else judged.result.metadata
    turns = oldest_first if replayed is None else PromisedFirst(replayed, stores.source.layout_in(source))
    cluster_id = None if judged is None else judged.source.get("clusterId")
    with difference(comparison, turns) as planned:
        yield StoreCopying(
            *(stores, comparison, planned, turns, writable, cluster_id, _findings(judged)),
            reserved=_with_reserved(source),
            promised=replayed,
        )


def _may_grow(judged: Verified | None, stores: TwoStores, source: ObjectStore) -> bool:
    """Whether manifests may get larger. Looks at the custom metadata of every segment, where keys are wrapped again."""
    if stores.rewrap is None or judged is None or judged.result.metadata is None:
        return False
    layout = stores.source.layout_in(source)
    return may_sizes_change(judged.result.metadata, judged.metadata_findings, layout)


def _with_reserved(*stores: ObjectStore) -> list[str]:
    """The URLs of those that have objects of tieredctl's own."""
    return [store.url for store in stores if next(store.list(RESERVED_FOLDER), None)]


def _findings(judged: Verified | None) -> list[Finding]:
    """What is lost, or could not be looked for, with the store in the message: the same metadata promises it in both.
    What else needs attention, `verify` says."""
    found = () if judged is None else judged.result.findings
    return [
        replace(one, message=f"{one.message} ({judged.source['store']})")
        for one in found
        if judged is not None and exit_code_of([one]) in _ABOUT_THE_STORES
    ]


def _placed(url: str) -> BucketPlace:
    kind = store_kind(url)
    if kind.address in {Address.BUCKET, Address.CONTAINER}:
        return bucket_place(url)
    return BucketPlace(kind.scheme, from_everywhere(url).partition(":")[2], "")


def _location(place: StorePlace) -> str:
    """A text by which stores of one server are told apart; one begins with the other where they share objects."""
    url = from_everywhere(place.url)
    if store_kind(url).address is Address.FOLDER:
        scheme, _, folder = url.partition(":")
        url = f"{scheme}:{os.path.realpath(folder.removeprefix('//'))}"
    server = "|".join(place.options.get(name, "").rstrip("/") for name in _SERVER_OPTIONS)
    return f"{server} {url.rstrip('/')}/"


def _demand_another(source: ObjectStore, destination: WritableObjectStore) -> None:
    """Raises TieredctlError `usage` where the source has the very lease that was just taken in the destination: by
    other names of a server, one store is the other, or is within it."""
    below = destination.url.removeprefix(source.url).strip("/") if destination.url.startswith(source.url) else ""
    key = f"{below}/{LEASE_KEY}".removeprefix("/")
    if source.head(key) is not None and source.read(key) == destination.read(LEASE_KEY):
        message = f"{source.url} and {destination.url} share objects, by two names of one server."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name two stores that share no object.")


def _described(comparison: StoreComparison) -> Document:
    return {"kind": "stores", "store": comparison.source.url, "to": comparison.destination.url}
