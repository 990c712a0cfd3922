"""Whether the metadata that was read is whole: decided here, and by what was found in it alone.

Whoever removes by the metadata, writes to it, or calls something missing asks here. What is not whole may lack the one
event that says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.metadata.coverage import MISSING, READ_ALL


def doubts(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Those findings of metadata that say that some of it is missing, or could not be read."""
    return (finding for finding in findings if finding.severity >= Severity.ERROR or finding.makes_incomplete)


def is_whole(findings: Iterable[Finding]) -> bool:
    """Whether metadata with these findings has every event of the cluster."""
    return next(doubts(findings), None) is None


def is_whole_for_partitions_here(findings: Iterable[Finding]) -> bool:
    """Whether metadata with these findings has every event of those user partitions that it has some of: each has all
    of them in one metadata partition, so that others may be missing."""
    return is_whole(finding for finding in findings if finding.code != MISSING)


def demand_whole(findings: Iterable[Finding]) -> None:
    """Raises TieredctlError `metadata-incomplete` unless metadata with these findings has every event."""
    for finding in doubts(findings):
        hint = READ_ALL if finding.code == MISSING else None
        message = f"{finding.code}: {finding.subject}: {finding.message}."
        raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=hint)
