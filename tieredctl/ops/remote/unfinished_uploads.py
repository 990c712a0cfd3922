"""`remote multipart`: multipart uploads that were neither completed nor aborted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.model.result_row import Column, JsonOnly, Quantity, ResultRow, Size, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import Totals, iso_8601
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import Capability, MultipartUpload, ObjectStore


@dataclass(frozen=True, slots=True)
class UploadRow(ResultRow):
    """An upload; None is what the layout does not explain."""

    key: Annotated[str, Column(importance=2, after="part")]
    upload_id: Wide[str]
    initiated: Annotated[str | None, Column(quantity=Quantity.MOMENT)]
    age_ms: JsonOnly[int]
    bytes: Size[int]
    segment_id: Wide[str | None] = None
    topic_id: JsonOnly[str | None] = None
    partition: JsonOnly[int | None] = None
    part: Part | None = None


@dataclass(slots=True)
class UnfinishedUploads:
    """A store's uploads that began more than `older_than_ms` ago."""

    store: ObjectStore
    layout: Layout
    now_ms: int
    older_than_ms: int
    total: Totals = field(default_factory=Totals)
    """Totals of all uploads read so far."""
    findings: list[Finding] = field(default_factory=list)
    """One finding for all of them, once the last was read."""

    def rows(self) -> Iterator[UploadRow]:
        """One row per upload, by ascending key. Raises TieredctlError for a store without multipart uploads."""
        if Capability.MULTIPART_UPLOADS not in self.store.capabilities:
            message = f"{self.store.url} has no multipart uploads, or does not list them."
            raise TieredctlError(ErrorCode.STORE_INCAPABLE, message, hint="Only S3 stores can list them.")
        for upload in self.store.multipart_uploads():
            if upload.initiated_ms <= self.now_ms - self.older_than_ms:
                yield self._row(upload)
        if self.total.objects:
            message = f"{counted(self.total.objects, 'upload')}, {size_text(self.total.bytes)}, never completed"
            evidence = {"uploads": self.total.objects, "bytes": self.total.bytes}
            self.findings.append(Finding(FindingCode.MULTIPART_DEBRIS, self.store.url, message, evidence))

    def summary(self) -> Document:
        """Totals of what was read so far."""
        return {"uploads": self.total.objects, "bytes": self.total.bytes}

    def _row(self, upload: MultipartUpload) -> UploadRow:
        size = self.store.multipart_upload_bytes(upload)
        self.total.objects += 1
        self.total.bytes += size
        initiated, age_ms = iso_8601(upload.initiated_ms), self.now_ms - upload.initiated_ms
        row = UploadRow(upload.key, upload.upload_id, initiated, age_ms, size)
        one = self.layout.explain(upload.key)
        if one is None:
            return row
        return replace(row, segment_id=one.segment_id, topic_id=one.topic_id, partition=one.partition, part=one.part)
