"""The codes of findings that this package alone makes."""

from __future__ import annotations

from tieredctl.model.finding_codes import AnyFindingCode


class DisklessCode(AnyFindingCode):
    """What a finding is."""

    BATCH_MISMATCH = "batch-mismatch"
    COORDINATES_OVERLAP = "coordinates-overlap"
    FILE_ROW_MISSING = "file-row-missing"
    FILE_STATE_MISMATCH = "file-state-mismatch"
    LOG_ROW_MISMATCH = "log-row-mismatch"
    PRODUCER_STATE_MISMATCH = "producer-state-mismatch"
    CONTROL_PLANE_DOUBTFUL = "control-plane-doubtful"
