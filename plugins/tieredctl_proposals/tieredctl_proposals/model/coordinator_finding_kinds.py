"""What the commands about diskless coordinators' logs (KIP-1164) find."""

from __future__ import annotations

from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl_proposals.model.finding_codes import ProposalCode

COORDINATOR_FINDING_KINDS = (
    FindingKind(
        ProposalCode.COORDINATOR_LOG_INCOMPLETE,
        Severity.ERROR,
        "a diskless coordinator's log is missing, not whole, or not understood: what its coordinator knows is unknown",
        "tieredctl diskless format --log-dir DIR",
        incomplete=True,
    ),
)
