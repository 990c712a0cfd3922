"""`doctor`: a live cluster, asked in the one order that is safe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tieredctl.config.plan_key import usable_key
from tieredctl.model.clock import Clock
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.diagnosis import Diagnosis, diagnose, diagnose_standstill
from tieredctl.ops.doctor.gathering import (
    gather_settings,
    of_stopped_cluster,
    with_group_offsets,
    with_metadata_logs,
    with_objects,
    with_tiered_data,
)
from tieredctl.ops.doctor.metadata_progress import Watch, brokers_at_a_standstill
from tieredctl.ops.doctor.removed_leftovers import RemovalNotes, with_removed
from tieredctl.ops.doctor.unseen import with_unseen
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.second_look import look_twice
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.removed_keys import read_removed_keys
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, QuorumPlace, StorePlace
from tieredctl.wiring.timelines import demand_own, local_metadata_logs, local_replicas
from tieredctl.wiring.topics_place import TopicsPlace


class Diagnosed(NamedTuple):
    """What is wrong with a cluster, and which cluster it is."""

    diagnosis: Diagnosis
    source: Document
    facts: ClusterSnapshot | None = None
    """What a live cluster's diagnosis rests on; None at a standstill."""


def diagnose_cluster(
    cluster: ClusterPlace,
    clock: Clock,
    *,
    release: Release | None = None,
    store: StorePlace | None = None,
    log_dirs: Sequence[Path] = (),
    controllers: QuorumPlace | None = None,
    notes: StorePlace | None = None,
) -> Diagnosed:
    """All checks of a live cluster that need no bulk read. What may be movement is looked at twice.

    Brokers that are at a standstill answer from old state, so nothing more is asked of them. `release` is the brokers'
    release, if given; with `store`, small objects are read too, with `notes` only what tieredctl removed from there,
    with `log_dirs` what is on these disks, and with `controllers` the leader is asked for its snapshot. Raises
    TieredctlError as the places do.
    """
    replicas, metadata_logs = local_replicas(log_dirs), local_metadata_logs(log_dirs)
    remote = None if store is None else store.open()
    noted = remote if notes is None else notes.open()
    read_removed = partial(read_removed_keys, key=usable_key())
    with ExitStack() as stack:

        def read() -> EventStream:
            return stack.enter_context(MetadataPlace(cluster=cluster).open())

        live = stack.enter_context(cluster.open_with_groups())
        source = live.describe()
        demand_own(log_dirs, live.cluster_id)
        if standstill := brokers_at_a_standstill(live, Watch()):
            return Diagnosed(diagnose_standstill(standstill), source)
        topics = stack.enter_context(TopicsPlace(cluster=cluster).lookup())
        leader = None if controllers is None else stack.enter_context(controllers.open())

        def look() -> ClusterSnapshot:
            facts = with_unseen(with_tiered_data(gather_settings(live, clock, release), live, read), live, topics)
            if noted is not None and facts.unfinished:
                facts = with_removed(facts, RemovalNotes(*noted, read_removed))
            facts = with_group_offsets(facts, live)
            facts = with_metadata_logs(facts, metadata_logs, leader)
            if remote is not None:
                facts = with_objects(facts, *remote, read)
            return replace(facts, replicas=replicas)

        facts, findings = look_twice(look, lambda facts_read: diagnose(facts_read).findings)
        return Diagnosed(replace(diagnose(facts), findings=findings), source, facts)


def diagnose_offline(
    cluster: OfflineClusterPlace, clock: Clock, *, release: Release | None = None, log_dirs: Sequence[Path] = ()
) -> Diagnosed:
    """The checks that a cluster's metadata log allows, when no broker answers: releases, topics' own settings, the
    metadata topic; and with `log_dirs` what is stuck in remote storage, and what is on these disks.

    What the log does not have is reported as not checked. Raises TieredctlError as the places do.
    """
    replicas = local_replicas(log_dirs)
    with ExitStack() as stack:
        offline = stack.enter_context(cluster.open())

        def read() -> EventStream:
            stream = stack.enter_context(MetadataPlace(tuple(log_dirs)).open())
            demand_same_cluster(stream.source.cluster_id, offline.cluster_id)
            return stream

        facts = of_stopped_cluster(gather_settings(offline, clock, release), read if log_dirs else None)
        notes = [*facts.not_looked_at, *offline.offline.findings()]
        return Diagnosed(diagnose(replace(facts, replicas=replicas, not_looked_at=notes)), offline.describe())
