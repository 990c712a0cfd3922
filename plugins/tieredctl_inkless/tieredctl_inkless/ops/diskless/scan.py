"""Scans a bucket: which file owns each object, and which promised objects are missing."""

from __future__ import annotations

from tieredctl.errors import TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.orphans.promised_segments import listing_was_short
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket
from tieredctl_inkless.ops.diskless.doubt import bucket_fit, doubt_about, doubt_finding, doubt_of_promises
from tieredctl_inkless.ops.diskless.judgement import Judge
from tieredctl_inkless.ops.diskless.moment import whole_moment
from tieredctl_inkless.ops.diskless.orphans import Judged, JudgedScan
from tieredctl_inkless.ops.diskless.promised_objects import keys_missing, missing_objects, unlisted


class DisklessScan(JudgedScan):
    """A scan by the control plane."""

    def __init__(self, bucket: DisklessBucket, min_age_ms: int) -> None:
        super().__init__()
        self._bucket, self._min_age_ms = bucket, min_age_ms
        self._missing: list[Finding] = []
        self._doubt: TieredctlError | None = None

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
        if self._bucket.passed_over:
            self.findings.append(listing_was_short(self._bucket.passed_over, url))
        self.findings += self._totals.findings(url)
