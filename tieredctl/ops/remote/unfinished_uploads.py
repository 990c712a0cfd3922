"""`remote multipart`: uploads in parts that were begun and neither completed nor given up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import ListedObject, Totals, iso_8601, object_document
from tieredctl.storage.protocol import Capability, MultipartUpload, ObjectStore, StoredObject


@dataclass(slots=True)
class UnfinishedUploads:
    """The uploads of a store that were begun longer ago than `older_than_ms`."""

    store: ObjectStore
    layout: Layout
    now_ms: int
    older_than_ms: int
    total: Totals = field(default_factory=Totals)
    """Of all that were read so far."""
    findings: list[Finding] = field(default_factory=list)
    """One for all of them, once the last was read."""

    def rows(self) -> Iterator[Document]:
        """An upload a row, by ascending key. Raises TieredctlError for a store that has no such uploads."""
        if Capability.MULTIPART_UPLOADS not in self.store.capabilities:
            message = (
                f"{self.store.url} has no uploads in parts that could be left unfinished, or does not tell of them."
            )
            raise TieredctlError(
                ErrorCode.STORE_INCAPABLE, message, hint="Only stores of S3's kind are asked for them."
            )
        for upload in self.store.multipart_uploads():
            if upload.initiated_ms <= self.now_ms - self.older_than_ms:
                yield self._row(upload)
        if self.total.objects:
            message = f"{self.total.objects} uploads, {self.total.bytes} bytes, were begun and never completed"
            evidence = {"uploads": self.total.objects, "bytes": self.total.bytes}
            self.findings.append(Finding(FindingCode.MULTIPART_DEBRIS, self.store.url, message, evidence))

    def summary(self) -> Document:
        """Of what was read so far."""
        return {"uploads": self.total.objects, "bytes": self.total.bytes}

    def _row(self, upload: MultipartUpload) -> Document:
        size = self.store.multipart_upload_bytes(upload)
        self.total.objects += 1
        self.total.bytes += size
        stored = StoredObject(upload.key, size, upload.initiated_ms, "")
        said = object_document(ListedObject(stored, self.layout.explain(upload.key)))
        return {
            "key": upload.key,
            "uploadId": upload.upload_id,
            "initiated": iso_8601(upload.initiated_ms),
            "ageMs": self.now_ms - upload.initiated_ms,
            "bytes": size,
            **{name: said[name] for name in ("segmentId", "topicId", "partition", "part")},
        }
