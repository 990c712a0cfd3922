"""Copies and deletions that never ended, whose objects tieredctl removed: nothing is left to do about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.verification.options import RemovedObjects, RemovedSegments
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import KnownSegment

REMOVED = "what tieredctl removed from the store"


class RemovalNotes(NamedTuple):
    """A store, and how to read what tieredctl noted there."""

    store: ObjectStore
    layout: Layout
    read: Callable[[ObjectStore], RemovedObjects]


class Leftovers(NamedTuple):
    """What is unfinished still, and what was removed."""

    unfinished: list[KnownSegment]
    findings: list[Finding]


def left_unfinished(unfinished: Iterable[KnownSegment], clock: Clock, notes: RemovalNotes) -> Leftovers:
    """Without those whose objects were removed by the notes, and are not there now. Young ones may still end, and are
    not looked for. Raises TieredctlError as the store does."""
    every = list(unfinished)
    old = [one for one in every if clock.now_ms - one.entered_ms > clock.older_than_ms]
    removed = RemovedSegments(lambda: notes.read(notes.store))
    gone = set[str]()
    for segment in old:
        keys = list(notes.layout.promised_objects(segment.metadata).values())
        plan = removed.plan_of_any(keys)
        if plan is not None and not any(in_parallel(notes.store, notes.store.head, keys)):
            gone.add(segment.metadata.segment_id)
            removed.add(segment.metadata.topic_id_partition, plan)
    return Leftovers([one for one in every if one.metadata.segment_id not in gone], removed.findings())


def with_removed(cluster: ClusterSnapshot, notes: RemovalNotes) -> ClusterSnapshot:
    """The snapshot with what was removed apart from what is stuck."""
    looking = Looking(list(cluster.not_looked_at))
    left = looking.at(REMOVED, lambda: left_unfinished(cluster.unfinished, cluster.clock, notes))
    if left is None:
        return replace(cluster, not_looked_at=looking.findings)
    return replace(cluster, unfinished=left.unfinished, removed=left.findings)
