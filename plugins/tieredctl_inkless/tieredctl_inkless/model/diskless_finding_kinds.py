"""What `diskless …` finds besides what it has in common with `verify`."""

from __future__ import annotations

from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl_inkless.model.finding_codes import DisklessCode

INSPECT = "tieredctl diskless inspect {key} …"
EXPLAIN = "tieredctl diskless explain {topic}:{partition}@{offset} …"
_STATUS = "tieredctl diskless status …"

DISKLESS_FINDING_KINDS = (
    FindingKind(
        DisklessCode.BATCH_MISMATCH,
        Severity.CRITICAL,
        "an object does not hold the batches that the control plane describes",
        INSPECT,
        many="places where objects do not hold the batches that the control plane describes",
    ),
    FindingKind(
        DisklessCode.COORDINATES_OVERLAP,
        Severity.CRITICAL,
        "batches of the control plane claim the same bytes of an object",
        INSPECT,
        many="places where batches of the control plane claim the same bytes of an object",
    ),
    FindingKind(
        DisklessCode.FILE_ROW_MISSING,
        Severity.CRITICAL,
        "batches lie in a file that the control plane does not have: no broker finds them",
        EXPLAIN,
        many="times that batches lie in a file that the control plane does not have",
    ),
    FindingKind(
        DisklessCode.FILE_STATE_MISMATCH,
        Severity.ERROR,
        "a file's state contradicts its batches",
        INSPECT,
        many="files whose state contradicts their batches",
    ),
    FindingKind(
        DisklessCode.LOG_ROW_MISMATCH,
        Severity.ERROR,
        "what the control plane has of a partition contradicts the partition's batches",
        _STATUS,
        many="contradictions between what the control plane has of a partition and its batches",
    ),
    FindingKind(
        DisklessCode.PRODUCER_STATE_MISMATCH,
        Severity.ERROR,
        "the state of an idempotent producer is not that of the batch it names",
        EXPLAIN,
        many="states of idempotent producers that are not those of the batches they name",
    ),
    FindingKind(
        DisklessCode.CONTROL_PLANE_DOUBTFUL,
        Severity.ERROR,
        "the control plane may have lost rows, be late, or belong to another bucket: nothing is judged by it",
        "tieredctl diskless verify …",
        incomplete=True,
    ),
)
