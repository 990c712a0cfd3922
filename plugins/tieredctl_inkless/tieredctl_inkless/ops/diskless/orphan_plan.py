"""Makes a plan from a bucket and its control plane: the orphaned objects, or a refusal if anything is uncertain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.removal import PlanHeader, PlannedObject, PlanTotals
from tieredctl.ops.orphan_removal.limits import PlannedSoFar, PlanOptions, demand_age, demand_promised
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl_inkless.diskless.control_plane import KEYS_AT_ONCE
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket, demand_listed
from tieredctl_inkless.ops.diskless.doubt import bucket_fit, doubt_about
from tieredctl_inkless.ops.diskless.fresh_control_plane import LAYOUT, REMOVABLE, FreshControlPlane
from tieredctl_inkless.ops.diskless.judgement import Judge, JudgedObject
from tieredctl_inkless.ops.diskless.moment import whole_moment
from tieredctl_inkless.ops.diskless.orphans import Judged
from tieredctl_inkless.ops.diskless.promised_objects import unlisted


@dataclass(slots=True)
class DisklessPlanning:
    """A plan in the making, of a bucket that was listed before its control plane was read."""

    bucket: DisklessBucket
    fresh: FreshControlPlane
    writer: PlanWriter
    options: PlanOptions
    now_ms: int
    planned: PlannedSoFar = field(init=False)
    not_ours: int = 0
    """Orphaned objects that no plan may remove."""

    def __post_init__(self) -> None:
        self.planned = PlannedSoFar(self.writer, self.options)

    def run(self) -> PlanTotals:
        """Judges, and writes the plan. Raises TieredctlError if anything speaks against removing."""
        options, bucket, url = self.options, self.bucket, self.bucket.store.url
        demand_age(self.fresh.min_age_ms, allow_young=options.allow_young)
        demand_listed(bucket)
        fit = bucket_fit(bucket, self.fresh.min_age_ms, self.now_ms)
        if doubt := doubt_about(bucket, fit):
            raise doubt
        self.fresh.take(bucket.tables)
        self.writer.begin(self._header())
        for one in self._orphans():
            self._add(one)
        if self.writer.objects:
            missing = self.fresh.still_promised([bucket.files.keys[number] for number in unlisted(bucket)])
            demand_promised(missing, options.max_missing, url)
        return self.writer.end(fit.listed)

    def _orphans(self) -> Iterator[JudgedObject]:
        """By the tables that were read after the listing, and again by what is said of these very keys now."""
        bucket = self.bucket
        judge = Judge(whole_moment(bucket.tables, bucket.files, None), self.fresh.min_age_ms)
        orphans = Judged(bucket.batches(), judge, bucket.control_plane, bucket.store).orphans()
        while some := list(islice(orphans, KEYS_AT_ONCE)):
            yield from self._still_orphans(some)

    def _still_orphans(self, some: Sequence[JudgedObject]) -> Iterator[JudgedObject]:
        judged = self.fresh.judged(one.stored for one in some)
        return (one for one in judged if one.status is ObjectStatus.ORPHAN)

    def _add(self, one: JudgedObject) -> None:
        stored, cause = one.stored, one.cause
        is_young = stored.last_modified_ms > self.now_ms - self.fresh.min_age_ms
        if is_young or cause is None or cause not in self.options.causes:
            return
        if cause not in REMOVABLE:
            self.not_ours += 1
            return
        self.planned.add(PlannedObject(*stored[:4], one.status.value, cause.value, one.proof))

    def _header(self) -> PlanHeader:
        options = self.options
        assert options.cluster_id is not None, "no control plane knows it"
        return PlanHeader(
            plan_id=options.plan_id,
            created_ms=self.now_ms,
            valid_until_ms=self.now_ms + options.valid_for_ms,
            cluster_id=options.cluster_id,
            store=self.bucket.store.url,
            layout=LAYOUT,
            mode=options.mode,
            min_age_ms=self.fresh.min_age_ms,
            max_percent=options.max_percent,
            max_missing=options.max_missing,
            metadata_end_offsets={},
            control_plane=f"{self.fresh.database}/{self.fresh.written}",
        )
