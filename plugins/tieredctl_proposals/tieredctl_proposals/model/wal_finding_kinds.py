"""What the commands about combined objects (KIP-1176) find."""

from __future__ import annotations

from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl_proposals.model.finding_codes import ProposalCode

_INSPECT = "tieredctl wal inspect …"

WAL_FINDING_KINDS = (
    FindingKind(
        ProposalCode.WAL_OBJECT_MISSING,
        Severity.CRITICAL,
        "a combined object that the events promise is not in the store",
        _INSPECT,
        many="combined objects that the events promise are not in the store",
    ),
    FindingKind(
        ProposalCode.WAL_OBJECT_DAMAGED,
        Severity.CRITICAL,
        "a combined object does not hold what the events say",
        _INSPECT,
        many="combined objects that do not hold what the events say",
    ),
    FindingKind(
        ProposalCode.WAL_OFFSET_GAP,
        Severity.CRITICAL,
        "offsets between uploaded ones that no combined object holds",
        "tieredctl wal explain {topic}:{partition}@{startOffset} …",
        many="gaps between uploaded offsets that no combined object holds",
    ),
    FindingKind(
        ProposalCode.WAL_OBJECT_UNREFERENCED,
        Severity.WARNING,
        "an object that no event names, or whose deletion is on record",
        "tieredctl wal clean …",
        many="objects that no event names, or whose deletion is on record",
    ),
    FindingKind(
        ProposalCode.WAL_UPLOAD_UNFINISHED,
        Severity.WARNING,
        "an upload that began and never ended",
        "tieredctl wal clean …",
        many="uploads that began and never ended",
    ),
    FindingKind(
        ProposalCode.WAL_DELETION_UNFINISHED,
        Severity.WARNING,
        "a deletion that began and never ended",
        "tieredctl wal clean …",
        many="deletions that began and never ended",
    ),
    FindingKind(
        ProposalCode.WAL_EVENT_REFUSED,
        Severity.WARNING,
        "an event that the state machine does not allow, or of a leader of the past",
        _INSPECT,
        many="events that the state machine does not allow, or of leaders of the past",
    ),
    FindingKind(
        ProposalCode.WAL_METADATA_DAMAGED,
        Severity.ERROR,
        "events are missing or cannot be read: what they reported is unknown",
        "tieredctl wal verify …",
        incomplete=True,
    ),
    FindingKind(
        ProposalCode.WAL_LOG_DAMAGED,
        Severity.CRITICAL,
        "a broker's log is damaged: what follows was not uploaded",
        "tieredctl store inspect {file}",
    ),
    FindingKind(
        ProposalCode.WAL_LOG_BEHIND,
        Severity.ERROR,
        "a broker's log ends before what is uploaded of its partition",
        "tieredctl wal inspect --topic {topic} …",
    ),
)
