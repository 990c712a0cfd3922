"""Makes a plan from a scan: the orphaned objects, each with its evidence, or a refusal if anything is uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Ints
from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import ObjectStatus, OrphanCause
from tieredctl.model.removal import PlanHeader, PlannedObject, PlannedUpload, PlanTotals
from tieredctl.ops.cluster.live_topics import demand_all_topics
from tieredctl.ops.metadata.completeness import demand_whole
from tieredctl.ops.orphan_removal.fresh_metadata import FolderCheck, Verdict, verdicts_on
from tieredctl.ops.orphan_removal.limits import PlannedSoFar, PlanOptions, StoreOverlap, demand_age, demand_promised
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl.ops.orphans.judgement import Judge, Verdicts, judged_objects, verdict_of
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.orphans.scan import Scan
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import Capability, ObjectStore, StoredObject


@dataclass(slots=True)
class Planning:
    """A plan in the making."""

    scan: Scan
    writer: PlanWriter
    options: PlanOptions
    installed_layouts: Sequence[Layout] = ()
    """No folder of the store may look like the root of one of these."""
    uploads_of: ObjectStore | None = None
    """The store whose incomplete uploads are planned too, except those that a copy in progress may own."""
    lists_all: bool = True
    """Whether the scan is of all of the store's objects. If not, the store itself is listed, to tell whether the plan
    is too large a share of it, and whether all that is promised is there."""
    planned: PlannedSoFar = field(init=False)
    _overlap: StoreOverlap = field(default_factory=StoreOverlap)

    def __post_init__(self) -> None:
        self.planned = PlannedSoFar(self.writer, self.options)

    def run(self) -> PlanTotals:
        """Scans, and writes the plan. Raises TieredctlError if anything speaks against removing."""
        demand_age(self.scan.options.min_age_ms, allow_young=self.options.allow_young)
        folders = FolderCheck(self.scan.subject, self.installed_layouts)
        has_begun = False
        for judge, objects, verdicts in self.scan.judged():
            if not has_begun:
                self._begin()
                has_begun = True
            folders.look_at(objects)
            self._overlap.look_at(objects)
            self._add(judge, objects, verdicts)
        if not has_begun:
            self._begin()
        self._demand_whole()
        if not self.lists_all:
            self._look_at_store(folders)
        folders.demand_none()
        self._overlap.demand(self.scan.subject, self.scan.layout.name)
        if self.writer.objects or self.uploads_of:
            demand_promised(self.scan.missing(), self.options.max_missing, self.scan.subject)
        self._add_uploads()
        return self.writer.end(self._overlap.listed)

    def _look_at_store(self, folders: FolderCheck) -> None:
        store, owners, judge, promised = self.scan.store, self.scan.known, self.scan.judge, self.scan.promised
        assert store is not None
        assert owners is not None
        assert judge is not None
        assert promised is not None
        overlap = self._overlap = StoreOverlap()
        with live_listing(store) as listing:
            batches = UnreservedObjects(listing).batches()
            for columns, verdicts in judged_objects(judge, owners, batches, self.scan.layout):
                folders.look_at(columns)
                overlap.look_at(columns)
                promised.take(columns, verdicts)

    def _begin(self) -> None:
        self._demand_whole()
        stream = self.scan.stream
        assert stream is not None
        options, scanned = self.options, self.scan.options
        demand_all_topics(scanned.topic_sources, stream.source)
        self.writer.begin(
            PlanHeader(
                plan_id=options.plan_id,
                created_ms=scanned.now_ms,
                valid_until_ms=scanned.now_ms + options.valid_for_ms,
                cluster_id=_cluster_id(stream.source, options.cluster_id),
                store=self.scan.subject,
                layout=self.scan.layout.name,
                mode=options.mode,
                min_age_ms=scanned.min_age_ms,
                max_percent=options.max_percent,
                max_missing=options.max_missing,
                metadata_end_offsets={
                    number: stream.source.offset_range(number).end for number in stream.source.metadata_partitions()
                },
                foreign_topic_ids=options.foreign_topic_ids,
                unknown_keys=options.unknown_keys,
            )
        )

    def _demand_whole(self) -> None:
        demand_whole(self.scan.stream.findings if self.scan.stream else ())

    def _add(self, judge: Judge, objects: ObjectColumns, verdicts: Verdicts) -> None:
        for row in self._chosen(objects, verdicts).tolist():
            planned = self._planned(judge, objects, verdicts, row)
            if planned.status != ObjectStatus.ORPHAN and not self._is_named(objects, row, planned):
                continue
            self.planned.add(planned)

    def _chosen(self, objects: ObjectColumns, verdicts: Verdicts) -> Ints:
        """The rows of orphans, and of others that might have been named."""
        wanted: set[Verdict] = {(ObjectStatus.ORPHAN, cause) for cause in OrphanCause if cause in self.options.causes}
        if self.options.foreign_topic_ids:
            wanted.add((ObjectStatus.FOREIGN, None))
        if self.options.unknown_keys:
            wanted.add((ObjectStatus.UNKNOWN, None))
        # An object that is named may still be written too.
        old = verdicts.modified_ms <= self.scan.options.now_ms - self.scan.options.min_age_ms
        codes = [code for code in np.unique(verdicts.codes).tolist() if verdict_of(code) in wanted]
        rows = np.zeros(len(verdicts.codes), np.bool_)
        rows[self.scan.selected(objects)] = True
        return np.flatnonzero(rows & old & np.isin(verdicts.codes, codes))

    def _is_named(self, objects: ObjectColumns, row: int, planned: PlannedObject) -> bool:
        explained = objects.explained(row)
        if planned.status == ObjectStatus.FOREIGN:
            return explained is not None and explained.topic_id in self.options.foreign_topic_ids
        return planned.key in self.options.unknown_keys

    def _planned(self, judge: Judge, objects: ObjectColumns, verdicts: Verdicts, row: int) -> PlannedObject:
        status, cause = verdict_of(int(verdicts.codes[row]))
        version = objects.versions[row].as_py()
        return PlannedObject(
            key=key_text(objects.keys[row].as_py()),
            size=int(objects.sizes[row]),
            last_modified_ms=int(objects.last_modified_ms[row]),
            version=None if version is None else version.decode(),
            status=status.value,
            cause=cause.value if cause else None,
            evidence=self.scan.evidence(judge, objects, verdicts, row),
        )

    def _add_uploads(self) -> None:
        store = self.uploads_of
        if store is None or self.scan.judge is None or self.scan.known is None:
            return
        if Capability.MULTIPART_UPLOADS not in store.capabilities:
            return  # it has no uploads to leave unfinished
        uploads = list(store.multipart_uploads())
        begun = [StoredObject(upload.key, 0, upload.initiated_ms, "") for upload in uploads]
        verdicts = verdicts_on(begun, self.scan.layout, self.scan.known, self.scan.judge)
        floor_ms = self.scan.options.now_ms - self.scan.options.min_age_ms
        for upload, (status, _) in zip(uploads, verdicts, strict=True):
            if status in (ObjectStatus.ORPHAN, ObjectStatus.OWNED) and upload.initiated_ms <= floor_ms:
                self.writer.add(PlannedUpload(*upload, store.multipart_upload_bytes(upload)))


def _cluster_id(source: MetadataSource, given: str | None) -> str:
    of_metadata = source.cluster_id
    if of_metadata is not None and given is not None and of_metadata != given:
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, f"The metadata belongs to cluster {of_metadata}, not {given}.")
    cluster_id = given if of_metadata is None else of_metadata
    if cluster_id is None:
        message = "The metadata does not say which cluster it belongs to."
        raise TieredctlError(
            ErrorCode.USAGE, message, hint="Give --cluster-id, as `kafka-cluster cluster-id` prints it."
        )
    return cluster_id
