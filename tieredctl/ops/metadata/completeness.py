"""Whether the metadata that was read is whole: decided here, and by what was found in it alone.

Whoever removes by the metadata, writes to it, or calls something missing asks here. What is not whole may lack the one
event that says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.metadata.coverage import MISSING, READ_ALL, MetadataCoverage
from tieredctl.ports.metadata_source import MetadataSource, cut_short

BEGINNING_LOST = FindingCode.METADATA_TRUNCATED
"""The code of the finding that says that events were deleted from the beginning of a log. It stays for good, also once
`recover metadata` has written the events of stored segments again."""
_NEEDS_THE_LOST = (
    "This needs the lost events: they may have named what looks as if nobody named it. What needs only what became of "
    "segments whose first event is there can go on: `recover metadata`, `recover indexes`, `verify`."
)


def doubts(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of metadata that say that some of it is missing, or could not be read."""
    return (finding for finding in findings if finding.severity >= Severity.ERROR or finding.makes_incomplete)


def is_whole(findings: Iterable[Finding]) -> bool:
    """Whether metadata with these findings has every event of the cluster."""
    return next(doubts(findings), None) is None


def is_whole_for_partitions_here(findings: Iterable[Finding]) -> bool:
    """Whether metadata with these findings has every event of those user partitions that it has some of: each has all
    of them in one metadata partition, so that others may be missing."""
    return is_whole(finding for finding in findings if finding.code != MISSING)


def doubts_since_it_begins(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The same, but for a beginning that was lost. Its events can be asked of a segment whose first event is there: a
    log has all later ones, and brokers read no other. They cannot prove that anything was never named, so that nobody
    who removes may ask here."""
    return (finding for finding in doubts(findings) if finding.code != BEGINNING_LOST)


def demand_whole_since_it_begins(findings: Iterable[Finding]) -> None:
    """Raises as `demand_whole` does, but for a lost beginning, with the limits of `doubts_since_it_begins`."""
    demand_whole(doubts_since_it_begins(findings))


def demand_whole(findings: Iterable[Finding]) -> None:
    """Raises TieredctlError `metadata-incomplete` unless metadata with these findings has every event."""
    hints: dict[AnyFindingCode, str] = {MISSING: READ_ALL, BEGINNING_LOST: _NEEDS_THE_LOST}
    for finding in doubts(findings):
        hint = hints.get(finding.code)
        message = f"{finding.code}: {finding.subject}: {finding.message}."
        raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=hint)


class ReadStream(Protocol):
    """Events that were read, as `EventStream` has them."""

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def source(self) -> MetadataSource: ...

    @property
    def coverage(self) -> MetadataCoverage: ...

    def end_offset(self, metadata_partition: int) -> int: ...


def lost_between(earlier: ReadStream, later: ReadStream) -> list[Finding]:
    """The findings about what a reading of the metadata had and a later one lacks; both were read.

    What such a later reading does not say is no movement: it excuses nothing that was found by the earlier one.
    """
    known = {(one.code, one.subject) for one in earlier.findings if one.code is not BEGINNING_LOST}
    # A log that lost more of its beginning has another finding than before.
    new = (one for one in doubts(later.findings) if (one.code, one.subject) not in known)
    lost = [one for one in new if one not in earlier.findings]
    there = {*later.source.metadata_partitions()}
    for number in earlier.source.metadata_partitions():
        before, now = earlier.end_offset(number), later.end_offset(number) if number in there else 0
        if now < before:
            lost.append(cut_short(number, now, before, "earlier readings"))
    return lost


def demand_nothing_lost(stream: ReadStream, why: str) -> None:
    """Raises TieredctlError `metadata-incomplete` where what was not found in a stream that was read, which `why` says,
    may be in metadata that is not here, or was lost, or cannot be read."""
    stream.coverage.demand_all(why)
    for finding in doubts(stream.findings):
        message = f"{why.removesuffix('.')}, but events may be lost: {finding.code}: {finding.subject}"
        raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, f"{message}: {finding.message}.")
