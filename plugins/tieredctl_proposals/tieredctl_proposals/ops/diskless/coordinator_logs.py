"""The logs of diskless coordinators, partitions of `__diskless_metadata`, and which of them are not whole.

A log that is missing, empty, damaged or compacted, pruned without a snapshot that it goes on from, or has a record that
is not known here, says less than its coordinator knows. What else that is, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from tieredctl.errors import DecodeError
from tieredctl.formats.record_chunks import NO_VALUE, RecordChunk
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.compaction import MetadataCompaction
from tieredctl.ops.metadata.coverage import MetadataCoverage
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.process.progress import note_more
from tieredctl_proposals.coordinator.apply import digest
from tieredctl_proposals.coordinator.schema import StateUnusable
from tieredctl_proposals.formats.diskless_records import decode_diskless_record
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC, DisklessRecord
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.ops.diskless.coordinator_snapshots import (
    SnapshotContents,
    Snapshots,
    listed_snapshots,
    opened_snapshot,
)

T = TypeVar("T")
INCOMPLETE = ProposalCode.COORDINATOR_LOG_INCOMPLETE
"""The code of the findings that say so."""
_NO_VALUE = "no value"
_NO_TIME = -1
_SPELLED_OUT = 10


class LoggedDisklessRecord(NamedTuple):
    """A record where it stands: its offset, and when it was appended (ms, by the coordinator's clock)."""

    coordinator: int
    """The partition of `__diskless_metadata`."""
    offset: int
    timestamp_ms: int
    record: DisklessRecord


@dataclass(slots=True)
class _Begin:
    """The snapshot that a log goes on from."""

    next_offset: int
    last_record: bytes | None
    is_proven: bool
    """Whether it has the same last record as the log; the log may begin after that."""


class CoordinatorLogs:
    """The logs of a source, as they are when they are read."""

    def __init__(
        self, source: MetadataSource, coordinators: int | None = None, snapshots: Snapshots | None = None
    ) -> None:
        """`coordinators`: how many there are, where the source may not tell. `snapshots` were listed before the source
        looked at its logs; without them, what was pruned is unknown."""
        self.source = source
        self._count = coordinators
        self._snapshots = snapshots or {}
        self._begun: dict[int, _Begin] = {}
        self.findings: list[Finding] = []
        """What is incomplete; grows while records are read."""
        self.first_ms: dict[int, int] = {}
        """When the first record of each was appended, of those that were read."""
        self.newest_ms: dict[int, int] = {}
        """When the newest record of each was appended, of those that were read."""
        self._truncated: dict[int, Finding] = {}
        """The finding about each log that was pruned and not read yet."""
        self._undecodable: dict[int, tuple[int, str, int]] = {}
        self._contradictions: dict[int, tuple[int, str]] = {}

    @classmethod
    def now(cls, source: MetadataSource, coordinators: int | None, log_dirs: Sequence[Path]) -> Self:
        """The logs as they are now, with the snapshots beside them in these log directories."""
        listed = listed_snapshots(log_dirs)
        source.advance()  # from here on it goes at least as far as each of them
        return cls(source, coordinators, listed)

    @property
    def here(self) -> list[int]:
        """The coordinators whose logs are here, ascending."""
        return self.source.metadata_partitions()

    @property
    def incomplete(self) -> set[int]:
        """The coordinators whose logs are here and not whole, of those that were read."""
        return {
            finding.about.metadata_partition for finding in self.findings if isinstance(finding.about, MetadataSubject)
        }

    def begin(self, number: int, load: Callable[[SnapshotContents], T]) -> T | None:
        """What `load` makes of the snapshot that a pruned log goes on from; to be asked before the records are read,
        which then begin after it.

        None where the log is not pruned, or where that is unknown: as in a coordinator's recovery the newest snapshot
        counts, but here every one that the log reaches back to has to be sound.
        """
        start = self.source.offset_range(number).start
        kept = self._snapshots.get(number, ())
        if not start or not kept:
            return None
        reached = [one for one in kept if one.next_offset >= start]
        if not reached:
            newest = kept[0].next_offset
            self.doubt(number, f"the newest snapshot ends at offset {newest}, and the log begins at {start}")
            return None
        for snapshot in reversed(reached):
            try:
                with opened_snapshot(snapshot, number, self.source.cluster_id) as contents:
                    if snapshot is not reached[0]:
                        continue
                    loaded, last, times = load(contents), contents.last_record(), contents.times()
            except StateUnusable as fault:
                self.doubt(number, f"snapshot {snapshot.next_offset} cannot be used: {fault}", file=str(snapshot.file))
                return None
        self._begun[number] = _Begin(reached[0].next_offset, last, is_proven=reached[0].next_offset == start)
        if times is not None:
            self.first_ms[number], self.newest_ms[number] = times
        return loaded

    def records(self, coordinator: int | None = None) -> Iterator[LoggedDisklessRecord]:
        """The records that can be decoded, of all coordinators or one, by coordinator, then offset."""
        for number in self.named(coordinator):
            yield from self.records_of(number)

    def named(self, coordinator: int | None) -> list[int]:
        """All coordinators whose logs are here, or the one that is named; notes what keeps these logs from being whole
        before any of them is read."""
        if coordinator is None:
            self._note_missing()
        for finding in self.source.findings():
            self._note(finding, coordinator)
        return self.here if coordinator is None else [coordinator]

    def demand_all(self, owners: Set[int]) -> None:
        """Notes, once all records were read, what else keeps them from being all that the coordinators know. `owners`
        are the coordinators that files name."""
        beyond = sorted(owner for owner in owners - {*self.here} if owner >= (self._least_count or 0))
        if beyond:
            message = f"files name coordinators as owners whose logs are not here: {_shown(beyond)}"
            evidence = {"metadataPartitions": self.here, "missingMetadataPartitions": beyond}
            self.findings.append(Finding(INCOMPLETE, DISKLESS_METADATA_TOPIC, message, evidence))
        if self._least_count is None:
            message = "nothing here tells how many coordinators there are: --coordinators says it"
            self.findings.append(Finding(INCOMPLETE, DISKLESS_METADATA_TOPIC, message))
        self.demand_records(self.here)

    def demand_records(self, coordinators: Sequence[int]) -> None:
        """Notes, once they were read, which of these logs have no record."""
        for number in set(coordinators) - self.newest_ms.keys() - self.incomplete:
            self.doubt(number, "the log has no record: what its coordinator did up to now cannot be told from it")

    def contradiction(self, coordinator: int, offset: int, why: str) -> None:
        """Notes a record that does not fit those before it. The first in each log counts, where nothing else is wrong
        with the log that explains it."""
        self._contradictions.setdefault(coordinator, (offset, why))

    def demand_fit(self, number: int) -> None:
        """Notes, once a log was read, that its records contradict one another."""
        if number in self._contradictions and number not in self.incomplete:
            offset, why = self._contradictions[number]
            message = f"the record at offset {offset} contradicts earlier ones: {why}"
            self.doubt(number, message, metadataOffset=offset)

    def doubt(self, number: int, message: str, **evidence: object) -> None:
        """Notes what keeps a coordinator's log from being whole."""
        evidence = {"metadataPartition": number, **evidence}
        self.findings.append(Finding(INCOMPLETE, _name(number), message, evidence, about=MetadataSubject(number)))

    def records_of(self, number: int) -> Iterator[LoggedDisklessRecord]:
        """The records of one coordinator among `named`, by offset."""
        if number in self._truncated and number not in self._begun:
            self.findings.append(self._truncated.pop(number))
        compaction = MetadataCompaction(number, self.source.offset_range(number).start)
        for chunk in self.source.chunks(number):
            for finding in chunk.findings:
                self._note(finding, number)
            compaction.take(chunk)
            if len(chunk):
                self.first_ms.setdefault(number, int(chunk.timestamps[0]))
            note_more("records read", len(chunk))
            yield from self._decoded(number, chunk)
        end = self.source.offset_range(number).end
        self._demand_snapshots(number, end)
        compaction.end(end)
        gap = compaction.finding()
        if gap is not None:
            self.findings.append(replace(gap, code=INCOMPLETE, subject=_name(number)))
        if number in self._undecodable:
            offset, reason, count = self._undecodable.pop(number)
            message = f"{counted(count, 'record')} cannot be decoded, the first at offset {offset}: {reason}"
            self.doubt(number, message, metadataOffset=offset, records=count)
        self.demand_fit(number)

    def _demand_snapshots(self, number: int, end: int) -> None:
        """Notes, once a log was read up to its end, what its snapshots know better."""
        newest = max((one.next_offset for one in self._snapshots.get(number, ())), default=0)
        begin = self._begun.get(number)
        if newest > end:
            self.doubt(number, f"a snapshot has the state up to offset {newest}, and the log ends at {end}")
        elif begin is not None and not begin.is_proven:
            self.doubt(number, f"snapshot {begin.next_offset} has another record than the log before its offset")

    def _is_after_snapshot(self, number: int, offset: int, record: DisklessRecord) -> bool:
        begin = self._begun.get(number)
        if begin is not None and offset == begin.next_offset - 1:
            begin.is_proven = begin.last_record == digest(record)
        return begin is None or offset >= begin.next_offset

    def _decoded(self, number: int, chunk: RecordChunk) -> Iterator[LoggedDisklessRecord]:
        for offset, timestamp, start, end in zip(
            chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends, strict=True
        ):
            try:
                if start == NO_VALUE:
                    raise DecodeError(_NO_VALUE, 0)
                record = decode_diskless_record(chunk.buffer[start:end])
            except DecodeError as error:
                first, reason, count = self._undecodable.get(number, (int(offset), error.message, 0))
                self._undecodable[number] = (first, reason, count + 1)
                continue
            self.newest_ms[number] = max(int(timestamp), self.newest_ms.get(number, _NO_TIME))
            if self._is_after_snapshot(number, int(offset), record):
                yield LoggedDisklessRecord(number, int(offset), int(timestamp), record)

    @property
    def _least_count(self) -> int | None:
        """How many coordinators there are at least; None where nothing tells."""
        return max((count for count in (self._count, self.source.partition_count) if count is not None), default=None)

    def _note_missing(self) -> None:
        least = self._least_count
        missing = MetadataCoverage(self.here, None if least is None else [least]).missing
        if missing:
            message = f"{counted(len(missing), 'coordinator')} without a log here: {_shown(missing)}"
            evidence: dict[str, object] = {"metadataPartitions": self.here, "missingMetadataPartitions": missing}
            self.findings.append(Finding(INCOMPLETE, DISKLESS_METADATA_TOPIC, message, evidence))

    def _note(self, finding: Finding, coordinator: int | None) -> None:
        """What a source found, which is about one log, or about the source as a whole."""
        about = finding.about
        if not isinstance(about, MetadataSubject):
            self.findings.append(finding)
        elif coordinator in (None, about.metadata_partition):
            noted = replace(finding, code=INCOMPLETE, severity_override=None)
            if finding.code is FindingCode.METADATA_TRUNCATED:
                self._truncated[about.metadata_partition] = noted
            else:
                self.findings.append(noted)


def _shown(coordinators: Sequence[int]) -> str:
    if len(coordinators) > _SPELLED_OUT:
        return f"{coordinators[0]} to {coordinators[-1]}"
    return ", ".join(map(str, coordinators))


def _name(coordinator: int) -> str:
    return f"{DISKLESS_METADATA_TOPIC}-{coordinator}"
