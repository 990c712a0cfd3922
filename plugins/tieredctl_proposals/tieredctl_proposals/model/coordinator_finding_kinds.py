"""What the commands about diskless coordinators' logs (KIP-1164) find."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

COORDINATOR_FINDING_KINDS = (
    FindingKind(
        FindingCode.COORDINATOR_LOG_INCOMPLETE,
        Severity.ERROR,
        "a diskless coordinator's log is missing, not whole, or not understood: what its coordinator knows is unknown",
        "tieredctl diskless format --log-dir DIR",
        incomplete=True,
    ),
)
