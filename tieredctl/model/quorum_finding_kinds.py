"""What is found in the metadata log and its snapshots."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

_DUMP = "kafka-dump-log --cluster-metadata-decoder --files FILE"

QUORUM_FINDING_KINDS = (
    FindingKind(
        FindingCode.KRAFT_RECORD_UNKNOWN,
        Severity.WARNING,
        "metadata records of a type or version that a later release added: what they change is unknown",
        _DUMP,
        incomplete=True,
    ),
    FindingKind(
        FindingCode.KRAFT_RECORD_REFUSED,
        Severity.ERROR,
        "a metadata record that contradicts those before it: a node stops at it",
        _DUMP,
        incomplete=True,
    ),
)
