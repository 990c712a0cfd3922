"""Findings about objects that mix partitions, and about diskless partitions: what they name, and in which evidence."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.model.finding_codes import AnyFindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.finding_subjects import Offsets
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, partition_document
from tieredctl_inkless.model.diskless_subjects import DisklessObjectSubject, DisklessPartitionSubject
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows

_MOST_NAMED = 20


def object_finding(
    code: AnyFindingCode,
    key: str,
    message: str,
    *,
    position: int | None = None,
    severity: Severity | None = None,
    **evidence: object,
) -> Finding:
    """About an object, or its bytes from `position` on."""
    place = {} if position is None else {"position": position}
    about = DisklessObjectSubject(key, -1 if position is None else position)
    return Finding(code, key, message, {"key": key, **place, **evidence}, severity, about)


def partition_finding(
    code: AnyFindingCode,
    partition: TopicIdPartition,
    message: str,
    *,
    offsets: Offsets | None = None,
    severity: Severity | None = None,
    **evidence: object,
) -> Finding:
    """About a partition, or some of its offsets (inclusive)."""
    place = {} if offsets is None else {"offsets": list(offsets), "offset": offsets[0]}
    about = DisklessPartitionSubject(partition, offsets)
    return Finding(
        code, str(partition), message, {**partition_document(partition), **place, **evidence}, severity, about
    )


def batch_documents(rows: BatchRows, names: Sequence[TopicIdPartition]) -> list[Document]:
    """The first of some batches, for evidence."""
    return [
        {
            **partition_document(names[partition]),
            "batchId": batch_id,
            "offsets": [base, last],
            "position": start,
            "size": size,
        }
        for batch_id, partition, base, last, start, size in zip(
            *(
                numbers[:_MOST_NAMED].tolist()
                for numbers in (rows.ids, rows.partitions, rows.bases, rows.lasts, rows.starts, rows.sizes)
            ),
            strict=True,
        )
    ]
