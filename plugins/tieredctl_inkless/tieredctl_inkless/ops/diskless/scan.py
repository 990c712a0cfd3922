"""Scans a bucket: which file owns each object, and which promised objects are missing."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.errors import TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket
from tieredctl_inkless.ops.diskless.doubt import bucket_fit, doubt_about, doubt_finding, doubt_of_promises
from tieredctl_inkless.ops.diskless.judgement import Judge
from tieredctl_inkless.ops.diskless.moment import whole_moment
from tieredctl_inkless.ops.diskless.orphans import Judged, OrphanTotals
from tieredctl_inkless.ops.diskless.promised_objects import keys_missing, missing_objects, unlisted


class DisklessScan:
    """A scan, done as its objects are read; counts and findings are complete after the last of them."""

    def __init__(self, bucket: DisklessBucket, min_age_ms: int) -> None:
        self._bucket, self._min_age_ms = bucket, min_age_ms
        self._totals = OrphanTotals()
        self._gone = 0
        self.findings: list[Finding] = []
        self._missing: list[Finding] = []
        self._doubt: TieredctlError | None = None

    def documents(self) -> Iterator[Document]:
        """Every object, by key."""
        judged = self._judged()
        for one in judged:
            self._totals.add(one)
            yield one.document()
        self._finish(judged)

    def run(self) -> None:
        """Judges all objects."""
        judged = self._judged()
        self._totals = judged.totals()
        self._finish(judged)

    def totals(self) -> list[Document]:
        """A row for each status and cause."""
        return list(self._totals.rows())

    def summary(self) -> Document:
        """Objects and bytes by status, orphans by cause, what is too young, and whether nothing was left unknown."""
        incomplete = any(finding.kind.incomplete for finding in self.findings)
        return self._totals.summary() | {"gone": self._gone, "complete": not incomplete}

    def _judged(self) -> Judged:
        bucket = self._bucket
        self._missing = list(missing_objects(unlisted(bucket), bucket))
        self._doubt = doubt_about(bucket, bucket_fit(bucket, self._min_age_ms, bucket.tables.read_ms))
        self._doubt = self._doubt or doubt_of_promises(keys_missing(self._missing), bucket.store.url)
        doubt = None if self._doubt is None else self._doubt.message
        judge = Judge(whole_moment(bucket.tables, bucket.files, doubt), self._min_age_ms)
        return Judged(bucket.batches(), judge, bucket.control_plane, bucket.store)

    def _finish(self, judged: Judged) -> None:
        self._gone, url = judged.gone, self._bucket.store.url
        doubts = filter(None, [self._doubt, judged.doubt])
        self.findings += [doubt_finding(doubt, url) for doubt in doubts]
        self.findings += self._missing
        self.findings += self._totals.findings(url)
