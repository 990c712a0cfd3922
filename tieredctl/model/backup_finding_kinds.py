"""What is found in backup sets, and while one is made or restored."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

BACKUP_FINDING_KINDS = (
    FindingKind(
        FindingCode.BACKUP_DAMAGED,
        Severity.CRITICAL,
        "a backup set has a file or a manifest that is missing, altered, cut or another's",
        "tieredctl backup verify --from URL",
    ),
    FindingKind(
        FindingCode.BACKUP_INCOMPLETE,
        Severity.WARNING,
        "something of the cluster could not be read, and is not in the backup set",
        "tieredctl backup run --to URL …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.BACKUP_OLD,
        Severity.WARNING,
        "the newest set from which the cluster can be restored is older than it may be, or there is none",
        "tieredctl backup run --to URL …",
    ),
)
