"""The objects of one remote segment, and whether they are in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.verification.other_forms import OtherForms, report_missing
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore


class SegmentObjects(NamedTuple):
    """A segment's objects as documents, and a finding for each promised one that is missing."""

    items: Sequence[Document]
    findings: Sequence[Finding]


def segment_objects(store: ObjectStore, layout: Layout, segment: RemoteLogSegmentMetadata) -> SegmentObjects:
    """The objects that the layout promises for a segment in COPY_SEGMENT_FINISHED, and any others that exist. `size` is
    in bytes, as stored; null for missing ones. Raises TieredctlError as the store does."""
    promised = layout.promised_objects(segment)
    keys = promised | layout.optional_objects(segment)
    findings = SegmentFindings(segment, keys)
    items: list[Document] = []
    for part, key in keys.items():
        stored = store.head(key)
        if stored is not None or part in promised:
            size = stored.size if stored else None
            items.append({"part": part.value, "key": key, "size": size, "inStore": stored is not None})
        if stored is None and part in promised:
            report_missing(part, findings)
    if len(findings.found) == len(promised):
        return SegmentObjects(items, OtherForms(store, layout).judge([segment]))
    return SegmentObjects(items, findings.found)
