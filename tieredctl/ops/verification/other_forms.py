"""Segments that are stored in another form than as segments: none of their objects is missing, and none is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ports.layout import Layout, OtherForm, Part
from tieredctl.ports.object_store import ObjectStore, list_unreserved


@dataclass(frozen=True)
class OtherForms:
    """Goes through all keys of the store once, on first use."""

    store: ObjectStore
    layout: Layout

    def judge(self, absent: Iterable[RemoteLogSegmentMetadata]) -> list[Finding]:
        """For segments without any of their objects, by partition: one finding for all of a partition that exist in
        another form, and one for each missing object of the others."""
        findings: list[Finding] = []
        for _, segments in groupby(absent, lambda metadata: metadata.topic_id_partition):
            elsewhere = []
            for metadata in segments:
                form = self._form_of(metadata)
                if form:
                    elsewhere.append((metadata, form))
                else:
                    findings += missing_objects(metadata, self.layout)
            if elsewhere:
                findings.append(_not_judged(elsewhere))
        return findings

    def not_judged(self, metadata: RemoteLogSegmentMetadata) -> Finding | None:
        """The finding for one segment without its objects that exists in another form."""
        form = self._form_of(metadata)
        return _not_judged([(metadata, form)]) if form else None

    def _form_of(self, metadata: RemoteLogSegmentMetadata) -> OtherForm | None:
        return self._by_segment.get(metadata.segment_id, self.layout.form_outside)

    @cached_property
    def _by_segment(self) -> dict[str, OtherForm]:
        forms = (self.layout.other_form(stored.key) for stored in list_unreserved(self.store))
        return {form.segment_id: form for form in forms if form and form.segment_id}


def missing_objects(metadata: RemoteLogSegmentMetadata, layout: Layout) -> list[Finding]:
    """A finding for each promised object of a segment."""
    promised = layout.promised_objects(metadata)
    findings = SegmentFindings(metadata, promised)
    for part in promised:
        report_missing(part, findings)
    return findings.found


def report_missing(part: Part, findings: SegmentFindings) -> None:
    """A promised object that is missing. Without log or manifest, all offsets of the segment are at risk."""
    metadata = findings.metadata
    offsets = (metadata.start_offset, metadata.end_offset) if part in (Part.LOG, Part.MANIFEST) else None
    findings.add(FindingCode.OBJECT_MISSING, part, f"{findings.keys[part]} is not in the store", offsets=offsets)


def _not_judged(segments: list[tuple[RemoteLogSegmentMetadata, OtherForm]]) -> Finding:
    first, form = segments[0]
    partition = first.topic_id_partition
    what = counted(len(segments), "segment is", "segments are")
    where = f"the table {form.table}" if form.table else "a table outside this store"
    offsets = (min(one.start_offset for one, _ in segments), max(one.end_offset for one, _ in segments))
    about = PartitionSubject(partition, offsets)
    evidence: dict[str, object] = {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "segments": len(segments),
        "offsets": list(offsets),
        "form": form.name,
        "table": form.table,
    }
    if len(segments) == 1:
        about = SegmentSubject(partition, offsets, first.segment_id)
        evidence["segmentId"] = first.segment_id
    message = f"{what} in {where}, in the form {form.name}: whether all records are there is unknown"
    subject = f"{partition.topic}-{partition.partition}"
    return Finding(FindingCode.SEGMENTS_IN_OTHER_FORM, subject, message, evidence, about=about)
