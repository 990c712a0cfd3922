"""`status`: what a cluster, its metadata and its store say now; what one of them does not say leaves the others.

What only a live cluster or a store needs is imported where it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from tieredctl.errors import ExitCode, TieredctlError, system_error
from tieredctl.model.clock import Clock
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalReplica
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import failing_copies, failing_finding, replayed, stuck, stuck_among, unfinished
from tieredctl.ops.status.board import Status, StoreFacts
from tieredctl.ops.status.facts import ClusterFacts, facts_of_cluster, facts_of_metadata
from tieredctl.ops.status.last_results import LastResults, read_results
from tieredctl.ops.timeline.partition_timeline import NOTHING_DRAWN, KnownLog, logs_of_leaders, timelines_of_found
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.timelines import known_logs, local_replicas

if TYPE_CHECKING:
    from tieredctl.ops.doctor.removed_leftovers import Leftovers


@dataclass(frozen=True, slots=True)
class StatusPlaces:
    """Where a cluster, or what is left of it, and its store are; and what earlier runs left."""

    metadata: MetadataPlace | None = None
    """A live cluster is asked for more than its metadata."""
    store: StorePlace | None = None
    results: Sequence[Path] = ()


def status_of(places: StatusPlaces, clock: Clock, *, draws: bool = False) -> Status:
    """All that is known now. A cluster or a store that does not answer is noted; without metadata the store is listed.
    With `draws`, partitions with findings are drawn.

    Raises TieredctlError for wrong use only, and as `read_results` does.
    """
    failed: dict[str, TieredctlError] = {}
    cluster = store = None
    if places.metadata is not None:
        try:
            cluster = _cluster(places.metadata, places.store, clock, draws=draws)
        except TieredctlError as error:
            failed["cluster"] = _unless_usage(error)
        except OSError as error:
            failed["cluster"] = system_error(error)
    if places.store is not None:
        try:
            store = store_facts(places.store, lists_all=places.metadata is None)
        except TieredctlError as error:
            failed["store"] = _unless_usage(error)
        except OSError as error:
            failed["store"] = system_error(error)
    results = LastResults()
    if places.results:
        url = None if places.store is None else store.url if store is not None else places.store.url
        results = read_results(places.results, url, None if cluster is None else cluster.cluster_id)
    asks_brokers = places.metadata is None or places.metadata.cluster is not None
    return Status(clock.now_ms, cluster, store, results, failed, asks_brokers)


def _unless_usage(error: TieredctlError) -> TieredctlError:
    if error.exit_code is ExitCode.USAGE:
        raise error
    return error


def _cluster(place: MetadataPlace, store: StorePlace | None, clock: Clock, *, draws: bool) -> ClusterFacts:
    if place.cluster is not None:
        from tieredctl.wiring.doctor import diagnose_cluster

        diagnosed = diagnose_cluster(place.cluster, clock, notes=_readable(store))
        cluster_id = diagnosed.source.get("clusterId")
        if diagnosed.facts is None:
            return ClusterFacts(True, cluster_id, findings=diagnosed.diagnosis.findings)
        facts = facts_of_cluster(diagnosed.facts, cluster_id, diagnosed.diagnosis.findings)
        snapshot, logs = diagnosed.facts, logs_of_leaders(diagnosed.facts.partitions) if draws else {}
        drawn = (
            timelines_of_found(snapshot.stores, facts.findings or (), snapshot.odd, logs) if draws else NOTHING_DRAWN
        )
        return replace(facts, timelines=drawn)
    logs = known_logs(place, Selection()) if draws else {}  # before the metadata: what they gave up since looks missing
    with place.open() as stream:
        return _of_metadata(stream, place, _readable(store), clock, logs if draws else None)


def _readable(store: StorePlace | None) -> StorePlace | None:
    """The store, if it can be opened; otherwise None: why is said of the store itself."""
    try:
        if store is not None:
            store.open()
    except (TieredctlError, OSError):
        return None
    return store


def _of_metadata(
    stream: EventStream,
    place: MetadataPlace,
    notes: StorePlace | None,
    clock: Clock,
    logs: Mapping[TopicIdPartition, KnownLog] | None,
) -> ClusterFacts:
    metadata = replayed(stream)
    place.demand_topic_based()
    coverage = stream.coverage
    is_broken = coverage.is_broken or not is_whole(stream.findings)
    looking = Looking()
    left = None if notes is None else _left(metadata, clock, notes, looking)
    late = stuck(metadata, Selection(), clock) if left is None else stuck_among(left.unfinished, clock)
    findings = [*stream.findings, *looking.findings, *late.unknown, *late.found, *(left.findings if left else ())]
    findings += [failing_finding(one, clock.now_ms) for one in failing_copies(metadata, clock.now_ms)]
    facts = facts_of_metadata(
        *(metadata, clock, stream.source.cluster_id, findings),
        is_broken=is_broken,
        may_be_more=not coverage.is_certain,
        replicas=_replicas(place),
        unfinished=None if left is None else left.unfinished,
    )
    if logs is None:
        return facts
    return replace(facts, timelines=timelines_of_found([metadata], findings, stream.findings, logs))


def _left(metadata: ReplayedMetadata, clock: Clock, notes: StorePlace, looking: Looking) -> Leftovers | None:
    """What never ended, without what tieredctl removed from the store; None where the store does not say."""
    from tieredctl.config.plan_key import usable_key
    from tieredctl.ops.doctor.removed_leftovers import REMOVED, RemovalNotes, left_unfinished
    from tieredctl.ops.verification.removed_keys import read_removed_keys

    def left() -> Leftovers:
        read_removed = partial(read_removed_keys, key=usable_key())
        return left_unfinished(unfinished(metadata), clock, RemovalNotes(*notes.open(), read_removed))

    return looking.at(REMOVED, left)


def _replicas(place: MetadataPlace) -> Sequence[LocalReplica]:
    """The replicas beside the metadata; none where it was copied without them."""
    try:
        return local_replicas(place.log_dirs) or ()
    except TieredctlError:
        return ()


def store_facts(place: StorePlace, *, lists_all: bool) -> StoreFacts:
    """What a store has in quarantine, and with `lists_all` all its objects. Raises TieredctlError as it does."""
    from tieredctl.ops.guards.quarantine_keys import copies_in_quarantine
    from tieredctl.ops.remote.inventory import Inventory

    quarantined = quarantined_bytes = 0
    store = place.open_store()
    for copy, _ in copies_in_quarantine(store):
        quarantined += 1
        quarantined_bytes += copy.size
    if not lists_all:
        return StoreFacts(store.url, quarantined, quarantined_bytes)
    opened, layout = place.open()
    inventory, topics = Inventory(opened, layout), set[str]()
    for one in inventory.objects():
        if one.explained is not None:
            topics.add(one.explained.topic_id)
    total = inventory.total
    return StoreFacts(store.url, quarantined, quarantined_bytes, total.objects, total.bytes, len(topics))


_Place = TypeVar("_Place")
_Answer = TypeVar("_Answer")

MOST_AT_ONCE = 8


def load_libraries(store_urls: Iterable[str]) -> None:
    """What opens clusters and these stores. Threads do not load it: libraries whose modules import each other in
    circles fail there, now and then."""
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401

    from tieredctl.kafka.client_libraries import load_client_libraries
    from tieredctl.storage.registry import load_client_library

    load_client_libraries()
    for url in store_urls:
        load_client_library(url)


def asked_together(ask: Callable[[_Place], _Answer], places: Sequence[_Place]) -> list[_Answer]:
    """What `ask`, which must not raise, gives for each place, in their order. Ctrl-C waits for none of them."""
    waiting: SimpleQueue[int | None] = SimpleQueue()
    answers: SimpleQueue[tuple[int, _Answer]] = SimpleQueue()

    def ask_what_waits() -> None:
        while (number := waiting.get()) is not None:
            answers.put((number, ask(places[number])))

    threads = min(MOST_AT_ONCE, len(places))
    for number in (*range(len(places)), *[None] * threads):
        waiting.put(number)
    for _ in range(threads):
        Thread(target=copy_context().run, args=(ask_what_waits,), daemon=True).start()
    by_number = dict(answers.get() for _ in places)
    return [by_number[number] for number in range(len(places))]
