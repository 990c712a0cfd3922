"""The result of a verification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tieredctl.errors import ExitCode
from tieredctl.model.findings import Finding, counts_by_code, exit_code_of
from tieredctl.ops.verification.report import Level, SegmentReport
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(slots=True)
class Verification:
    """Counts, and findings by partition and offset."""

    level: Level
    segments: int = 0
    objects: int = 0
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    skipped: int = 0
    outside_subset: int = 0
    """Segments that are not in the share that was to be looked at."""
    not_looked_at: int = 0
    """Segments that were not asked for because the store had stopped answering."""
    silent: str = ""
    """The store's last error, where some were not asked for."""
    transaction_indexes_unknown: int = 0
    """For how many segments this level does not show whether they lack a transaction index."""
    findings: list[Finding] = field(default_factory=list)
    metadata: ReplayedMetadata | None = field(default=None, compare=False)
    """What the store was held against, where it was one replay."""

    @property
    def complete(self) -> bool:
        return exit_code_of(f for f in self.findings if f.kind.incomplete) is not ExitCode.INCOMPLETE

    def add(self, report: SegmentReport) -> None:
        """Counts a segment that was read."""
        self.bytes_read += report.bytes_read
        self.batches += report.batches
        self.records += report.records
        self.findings += report.findings

    def pass_over(self, report: SegmentReport, why: str) -> None:
        """Counts segments that were to be read as not checked."""
        self.segments -= report.segments
        self.objects -= report.objects
        self.not_looked_at += report.segments
        self.silent = why

    def summary(self) -> dict[str, Any]:
        return {
            "level": self.level.value,
            "segments": self.segments,
            "objects": self.objects,
            "bytesRead": self.bytes_read,
            "batches": self.batches,
            "records": self.records,
            "skipped": self.skipped,
            **({"outsideSubset": self.outside_subset} if self.outside_subset else {}),
            "notLookedAt": self.not_looked_at,
            "transactionIndexesUnknown": self.transaction_indexes_unknown,
            "findings": len(self.findings),
            "codes": counts_by_code(self.findings),
            "complete": self.complete,
        }
