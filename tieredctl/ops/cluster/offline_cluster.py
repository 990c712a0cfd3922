"""A cluster as the metadata log of one of its nodes has it: what there is when no broker answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replica import SnapshotId
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document

CLOCK_SKEW_MS = 10_000
"""How far the clocks of one cluster's machines may differ."""


@dataclass(frozen=True, slots=True)
class OfflineCluster:
    """An image of the cluster, and how far it is certain.

    Which records the quorum committed is in no file. What a snapshot contains was committed, and in a log of a single
    voter all is; the end of any other log may yet be truncated.
    """

    path: Path
    """The snapshot, or the folder of snapshots and log."""
    image: ClusterImage
    """As of the end of what was read."""
    topic_ids: frozenset[str]
    """Of all topics then."""
    committed_ms: int
    """When the last record was written that is certainly committed, by the controller's clock; -1 for none, and where
    that clock was wrong."""
    withdrawn_topic_ids: frozenset[str]
    """Topics that certainly were there, and are removed by a record that may not be committed."""
    snapshot: SnapshotId | None
    """What the image began with."""
    snapshot_bytes: int
    log_bytes: int
    """Of the log's records after the snapshot."""
    cluster_id: str | None
    """From the `meta.properties` of the log directory, if there is one."""
    voters: Sequence[int] = ()
    """The node ids of the controllers that vote; empty where no file has them."""
    in_transaction: bool = False
    """Whether the last records belong to a transaction that has not ended: they are not in the image."""
    clock_error_ms: int = 0
    """By how much a controller's clock was certainly wrong: times in the log fall by this much, or are after now."""
    is_confirmed: bool = True
    """Whether the log before the end of the snapshot gives the same cluster. If not, nothing but the file itself says
    what it says."""

    @property
    def lone_witness(self) -> str | None:
        """A sentence that says so where nothing but the file itself confirms what it says."""
        if self.is_confirmed:
            return None
        return f"Only {self.path} says which topics are gone: no log from before its end confirms it."

    @property
    def has_all_topics(self) -> bool:
        """Whether a topic that is not in the image was certainly not there."""
        return self.image.is_certain and not self.withdrawn_topic_ids

    def describe(self) -> Document:
        """For the `source` of a document."""
        image = self.image
        return {
            "kind": "kraft-snapshot",
            "kraftSnapshot": str(self.path),
            "clusterId": self.cluster_id,
            "snapshotId": None if self.snapshot is None else str(self.snapshot),
            "endOffset": image.end_offset,
            "lastContainedLogTimestamp": image.as_of_ms,
            "snapshotBytes": self.snapshot_bytes,
            "logBytes": self.log_bytes,
            "topics": len(image.topics),
            "unknownRecords": image.unknown_records.total(),
            "refusedRecords": len(image.refused),
            "openTransaction": self.in_transaction,
            "confirmedByLog": self.is_confirmed,
        }

    def findings(self) -> Iterator[Finding]:
        """What makes the image incomplete."""
        for name, count in sorted(self.image.unknown_records.items()):
            message = (
                f"records that this release of tieredctl does not know, {count} of them: what they change is unknown"
            )
            yield Finding(
                FindingCode.KRAFT_RECORD_UNKNOWN, f"{self.path}: {name}", message, {"type": name, "records": count}
            )
        for offset, name, reason in self.image.refused:
            evidence: dict[str, object] = {"type": name, "offset": offset}
            yield Finding(FindingCode.KRAFT_RECORD_REFUSED, f"{self.path}@{offset}: {name}", reason, evidence)
        if self.clock_error_ms > CLOCK_SKEW_MS:
            message = f"a controller's clock was wrong by {self.clock_error_ms} ms: when topics were removed is unknown"
            evidence = {"clockErrorMs": self.clock_error_ms}
            yield Finding(FindingCode.KRAFT_CLOCK_WRONG, str(self.path), message, evidence)

    def by_the_clock(self, now_ms: int) -> OfflineCluster:
        """The same, held against the time now: no record was written later."""
        error_ms = max(self.clock_error_ms, self.image.as_of_ms - now_ms)
        committed_ms = min(self.committed_ms, now_ms) if error_ms <= CLOCK_SKEW_MS else -1
        return replace(self, clock_error_ms=error_ms, committed_ms=committed_ms)
