"""Compares a cluster as of two points: two snapshots, or a snapshot and the end of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kraft.difference import Change, changes
from tieredctl.kraft.entries import Kind
from tieredctl.model.findings import Finding
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Wide
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.documents import Document


@dataclass(frozen=True, slots=True)
class ChangeRow(ResultRow):
    """A change as a result shows it; `before` and `after` as in `Change`."""

    kind: Wide[Kind]
    subject: Wide[str]
    change: JsonOnly[str]
    before: JsonOnly[Mapping[str, Any] | None]
    after: JsonOnly[Mapping[str, Any] | None]
    words: Annotated[str, Column("CHANGE")]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from `before` to `after`."""

    before: OfflineCluster
    after: OfflineCluster
    changes: Sequence[Change]

    def source(self) -> Document:
        return {"before": self.before.describe(), "after": self.after.describe()}

    def rows(self) -> Iterator[ChangeRow]:
        """One for each change."""
        for one in self.changes:
            yield ChangeRow(one.kind, one.subject, _change(one), one.before, one.after, one.words)

    def summary(self) -> Document:
        """How many things changed, and the sizes of what they were read from."""
        counts = Counter(map(_change, self.changes))
        before, after = self.before, self.after
        return {
            "changes": len(self.changes),
            **{name: counts[name] for name in ("added", "removed", "changed")},
            "byKind": dict(Counter(change.kind.value for change in self.changes)),
            "records": after.image.end_offset - before.image.end_offset,
            "milliseconds": after.image.as_of_ms - before.image.as_of_ms,
            "snapshotBytesBefore": before.snapshot_bytes,
            "snapshotBytesAfter": after.snapshot_bytes,
            "snapshotBytesRatio": _ratio(after.snapshot_bytes, before.snapshot_bytes),
            "logBytes": after.log_bytes,
            "logBytesRatio": _ratio(after.log_bytes, after.snapshot_bytes),
        }

    def findings(self) -> list[Finding]:
        return [*self.before.findings(), *self.after.findings()]


def compare(before: OfflineCluster, after: OfflineCluster) -> Comparison:
    """Raises TieredctlError `another-cluster` if the two are of different clusters: by their ids, or, without them,
    because both have topics and share none."""
    ids = before.cluster_id, after.cluster_id
    if None not in ids and ids[0] != ids[1]:
        message = f"{before.path} is from cluster {ids[0]}, and {after.path} from {ids[1]}."
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Compare two points of one cluster.")
    if None in ids and before.topic_ids and after.topic_ids and before.topic_ids.isdisjoint(after.topic_ids):
        message = f"{before.path} and {after.path} have no topic id in common: they are not from one cluster."
        hint = "Compare two points of one cluster; in a log directory, meta.properties says which it is."
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint=hint)
    return Comparison(before, after, list(changes(before.image, after.image)))


def _change(change: Change) -> str:
    return "added" if change.before is None else "removed" if change.after is None else "changed"


def _ratio(part: int, whole: int) -> float | None:
    """The ratio; None where there is nothing to divide by."""
    return round(part / whole, 4) if whole else None
