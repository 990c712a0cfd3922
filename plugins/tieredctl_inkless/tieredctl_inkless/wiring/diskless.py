"""What `diskless …` opens and reads, in the one safe order: the bucket is listed first, then the control plane is read.

So whatever had a row while it was listed has it in what is read, unless it was removed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, segment_document
from tieredctl.ops.explanation.explain import explain_metadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.engine import Engine, LocalEngine
from tieredctl.ops.verification.report import Level
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket, demand_listed, demand_overlap, read_bucket
from tieredctl_inkless.ops.diskless.explain import DisklessExplanation, explain, find_log, with_own_tier, with_tiered
from tieredctl_inkless.ops.diskless.inspect import InspectedObject, inspect
from tieredctl_inkless.ops.diskless.object_engine import LocalObjects, ObjectEngine
from tieredctl_inkless.ops.diskless.scan import DisklessScan
from tieredctl_inkless.ops.diskless.status import Uncommitted, status_findings, uncommitted
from tieredctl_inkless.ops.diskless.verify import DisklessVerification, verify
from tieredctl_inkless.wiring.control_plane import ControlPlanePlace


@dataclass(frozen=True, slots=True)
class FoundStatus:
    """What `diskless status` shows."""

    source: Document
    tables: ControlPlaneTables
    bucket: Uncommitted | None
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class DisklessVerified:
    """What `diskless verify` found, and where."""

    source: Document
    result: DisklessVerification


def control_plane_status(place: ControlPlanePlace, bucket: StorePlace | None) -> FoundStatus:
    """Raises TieredctlError as the places, what they open and `demand_listed` do."""
    if bucket is None:
        control_plane = place.open()
        source, tables = dict(control_plane.describe()), control_plane.tables()
        return FoundStatus(source, tables, None, status_findings(tables, None, source["database"]))
    with _read(place, bucket) as (source, contents):
        demand_listed(contents)
        findings = status_findings(contents.tables, contents, source["database"])
        return FoundStatus(source, contents.tables, uncommitted(contents), findings)


def verify_diskless(
    place: ControlPlanePlace,
    bucket: StorePlace,
    level: Level,
    older_than_ms: int,
    *,
    engine: Engine | None = None,
) -> DisklessVerified:
    """Compares a bucket with what its control plane promises. Objects are read here, or where an engine reads that
    `engine_named` gave; the control plane is only asked here.

    Raises TieredctlError as the places, `demand_overlap` and `verify` do, and `usage` for an engine that reads no such
    objects.
    """
    chosen = LocalObjects() if engine is None or isinstance(engine, LocalEngine) else engine
    if not isinstance(chosen, ObjectEngine):
        raise TieredctlError(ErrorCode.USAGE, "This engine reads no diskless objects.", hint="Omit --engine.")
    with _read(place, bucket) as (source, contents):
        demand_overlap(contents)
        return DisklessVerified(source, verify(contents, chosen, level, older_than_ms))


@contextmanager
def scan_diskless(
    place: ControlPlanePlace, bucket: StorePlace, min_age_ms: int
) -> Iterator[tuple[Document, DisklessScan]]:
    """Where they are, and a scan that is ready to be run here.

    Raises TieredctlError as the places, `demand_overlap` and `demand_listed` do.
    """
    with _read(place, bucket) as (source, contents):
        demand_overlap(contents)
        demand_listed(contents)
        yield source, DisklessScan(contents, min_age_ms)


def inspect_diskless(place: ControlPlanePlace | None, bucket: StorePlace, key: str) -> tuple[Document, InspectedObject]:
    """Where it is, and an object, walked. Raises TieredctlError as the places and `inspect` do."""
    control_plane = None if place is None else place.open()
    source: Document = {} if control_plane is None else dict(control_plane.describe())
    store = bucket.open_store()
    return source | {"store": store.url}, inspect(store, key, control_plane)


def explain_diskless(
    place: ControlPlanePlace,
    bucket: StorePlace | None,
    metadata: MetadataPlace | None,
    where: TopicIdPartition,
    offset: int,
) -> tuple[Document, DisklessExplanation]:
    """Where that is, and where an offset lies; the topic's id may be empty. `metadata` is that of the same cluster's
    tiered segments, which is asked besides; without it, what the control plane's database may have of them.

    Raises TieredctlError as the places, `find_log` and `explain` do.
    """
    if metadata is not None:
        with metadata.open():  # refuse unreadable metadata now, not after asking the database
            pass
    control_plane = place.open()
    source = dict(control_plane.describe())
    name, log = find_log(control_plane, where.topic, where.partition, offset, where.topic_id or None)
    store = None if bucket is None else bucket.open_store()
    explanation = explain(name, log, offset, store, control_plane)
    if metadata is None:
        explanation = with_own_tier(explanation, name, offset, control_plane)
    else:
        explanation = with_tiered(explanation, _tiered(metadata, name, offset, explanation.findings))
    return source | {"store": store and store.url}, explanation


def _tiered(metadata: MetadataPlace, name: TopicIdPartition, offset: int, findings: list[Finding]) -> Document | None:
    """The segment that holds the offset by the metadata topic; None where none does."""
    with metadata.open() as stream:
        try:
            explanation = explain_metadata(stream, Selection.of(name.topic, name.topic_id, name.partition), offset)
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            explanation = None
        findings += [finding for finding in stream.findings if finding.kind.incomplete]
    return None if explanation is None or explanation.segment is None else segment_document(explanation.segment)


@contextmanager
def _read(place: ControlPlanePlace, bucket: StorePlace) -> Iterator[tuple[Document, DisklessBucket]]:
    """Where they are, and what is in them."""
    control_plane, store = place.open(), bucket.open_store()
    source = dict(control_plane.describe()) | {"store": store.url}
    with read_bucket(store, control_plane) as contents:
        yield source, contents
