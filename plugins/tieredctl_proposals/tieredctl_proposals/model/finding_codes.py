"""The codes of findings that this package alone makes."""

from __future__ import annotations

from tieredctl.model.finding_codes import AnyFindingCode


class ProposalCode(AnyFindingCode):
    """What a finding is."""

    WAL_OBJECT_MISSING = "wal-object-missing"
    WAL_OBJECT_DAMAGED = "wal-object-damaged"
    WAL_OFFSET_GAP = "wal-offset-gap"
    WAL_OBJECT_UNREFERENCED = "wal-object-unreferenced"
    WAL_UPLOAD_UNFINISHED = "wal-upload-unfinished"
    WAL_DELETION_UNFINISHED = "wal-deletion-unfinished"
    WAL_EVENT_REFUSED = "wal-event-refused"
    WAL_METADATA_DAMAGED = "wal-metadata-damaged"
    WAL_LOG_DAMAGED = "wal-log-damaged"
    WAL_LOG_BEHIND = "wal-log-behind"
    COORDINATOR_LOG_INCOMPLETE = "coordinator-log-incomplete"
