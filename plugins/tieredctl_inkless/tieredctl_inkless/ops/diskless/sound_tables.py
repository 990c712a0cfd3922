"""Whether a control plane can be trusted with what is removed: one that lost something would call it orphaned."""

from __future__ import annotations

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables
from tieredctl_inkless.ops.diskless.batch_rows import numbered
from tieredctl_inkless.ops.diskless.file_check import check_files, file_rows
from tieredctl_inkless.ops.diskless.offset_check import check_offsets

_LOSSES = (FindingCode.FILE_ROW_MISSING, FindingCode.OFFSET_GAP)
"""What a control plane looks like that lost rows: an object without a file may be one of theirs."""


def demand_sound(tables: ControlPlaneTables) -> None:
    """Raises TieredctlError `control-plane-doubtful` for a standby, and where rows of files or batches are lost."""
    demand_primary(is_standby=tables.is_standby)
    partitions, rows, _ = numbered(tables)
    found, doubted = check_files(file_rows(tables, rows), rows, partitions.names)
    found += check_offsets(tables, rows, partitions, rows.ids[doubted] if len(rows) else np.zeros(0, np.int64))
    for finding in found:
        if finding.code in _LOSSES:
            message = f"The control plane lost rows: {finding.code}: {finding.subject}: {finding.message}."
            hint = "An object without a file may hold those records. See `tieredctl diskless verify`."
            raise TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, message, hint=hint)


def demand_primary(*, is_standby: bool) -> None:
    """Raises TieredctlError `control-plane-doubtful` for a standby: it may lack the last commits."""
    if is_standby:
        message = "The control plane is a standby, which may lack the last commits: nothing is removed by it."
        hint = "Give --control-plane the primary, to which brokers commit."
        raise TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, message, hint=hint)
