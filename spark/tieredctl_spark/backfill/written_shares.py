"""What tasks of a backfill write, and report of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.places import MetadataPlace, Remote
from tieredctl_spark.finding_rows import finding_row
from tieredctl_spark.kept_frames import task_rows
from tieredctl_spark.record_rows import read_share, record_table
from tieredctl_spark.record_shares import RecordShare
from tieredctl_spark.tables.kinds import RECORDS, UNREADABLE
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter

_PART_SCHEMA = pa.schema(
    {
        "share": pa.int64(),
        "table": pa.string(),
        "path": pa.string(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "nextOffset": pa.int64(),
        "lostOffsets": pa.int64(),
        "exitCode": pa.int32(),
        "unread": pa.string(),
    }
)
"""A row for each file of each share, and at last one with `nextOffset` and no file."""


@dataclass(frozen=True, slots=True)
class HistoryShare:
    """What one task reads, and which of its offsets are no longer in remote storage."""

    share: RecordShare
    gone: Sequence[tuple[int, int]] = ()

    @property
    def number(self) -> int:
        """The number of its partition."""
        return self.share.remote.partition.partition

    @property
    def start(self) -> int:
        """Its first offset."""
        start = self.share.request.start
        assert isinstance(start, int)
        return start

    @property
    def end(self) -> int:
        """The offset after its last one."""
        end = self.share.request.end
        assert isinstance(end, int)
        return end

    def findings(self) -> Iterator[Finding]:
        """What is known before it is read."""
        yield from self.share.findings
        partition = self.share.remote.partition
        subject = f"{partition.topic}-{partition.partition}"
        for offsets in self.gone:
            evidence: dict[str, object] = {
                "topic": partition.topic,
                "topicId": partition.topic_id,
                "partition": partition.partition,
                "offsets": list(offsets),
            }
            message = f"offsets {offsets[0]} to {offsets[1]} were deleted before they were read"
            yield Finding(
                FindingCode.OFFSET_GAP, subject, message, evidence, about=PartitionSubject(partition, offsets)
            )


@dataclass(frozen=True, slots=True)
class WrittenShare:
    """What became of a share. Nothing is kept of one that met what only another key or user may be able to read."""

    files: Mapping[str, list[DataFile]]
    """The files by table."""
    next_offset: int
    """Up to where (exclusive) all was read that can be."""
    lost_offsets: int
    exit_code: int
    """The exit code by what was passed over."""
    unread: str | None = None
    """Why it was not read to its end, if it was not."""


def write_shares(
    session: SparkSession,
    metadata: MetadataPlace,
    remote: Remote[ObjectStore],
    shares: Sequence[HistoryShare],
    writer: TableWriter,
) -> list[WrittenShare]:
    """Writes the records of some shares, each in a task of its own, and tells what became of each, in their order."""

    def written(number: int) -> Iterator[pa.Table]:
        for part in _parts(metadata, remote, shares[number], writer):
            yield pa.Table.from_pylist([{"share": number, **part}], _PART_SCHEMA)

    parts: list[list[dict[str, Any]]] = [[] for _ in shares]
    for row in task_rows(session, len(shares), written, _PART_SCHEMA).toArrow().to_pylist():
        parts[row["share"]].append(row)
    return [_written(some) for some in parts]


def unreadable_rows(findings: Iterable[Finding]) -> pa.Table:
    """Findings as rows of UNREADABLE."""
    return pa.Table.from_pylist([_unreadable(finding) for finding in findings], UNREADABLE.columns)


def _parts(
    metadata: MetadataPlace, remote: Remote[ObjectStore], planned: HistoryShare, writer: TableWriter
) -> Iterator[dict[str, Any]]:
    share = planned.share
    with read_share(metadata, remote, share) as records:
        allowed = takewhile(lambda _: records.refusal is None, records)
        files = [_file_part(RECORDS.name, file) for file in writer.write_grown(RECORDS, map(record_table, allowed))]
    if records.refusal is not None:
        unread = f"{records.refusal.code}: {records.refusal.message}"
        yield {"nextOffset": planned.start, "lostOffsets": 0, "exitCode": int(ExitCode.CLEAN), "unread": unread}
        return
    yield from files
    findings = [*planned.findings(), *records.findings[len(share.remote.findings) :]]
    if findings:
        yield _file_part(UNREADABLE.name, writer.write(UNREADABLE, unreadable_rows(findings)))
    reached = planned.end if records.next_offset is None else records.next_offset
    is_open = f"the transaction that begins at offset {reached} has no end in remote storage"
    yield {
        "nextOffset": reached,
        "lostOffsets": records.lost_offsets + sum(last - first + 1 for first, last in planned.gone),
        # Doubts about the metadata may pass: they count in the run that has them.
        "exitCode": int(exit_code_of(findings[len(share.findings) :])),
        "unread": is_open if reached < planned.end else None,
    }


def _file_part(table: str, file: DataFile) -> dict[str, Any]:
    return {"table": table, "path": file.path, "rows": file.rows, "bytes": file.bytes}


def _written(parts: Sequence[Mapping[str, Any]]) -> WrittenShare:
    files: dict[str, list[DataFile]] = {}
    for part in parts:
        if part["table"] is not None:
            files.setdefault(part["table"], []).append(DataFile(part["path"], part["rows"], part["bytes"]))
    end = parts[-1]
    return WrittenShare(files, end["nextOffset"], end["lostOffsets"], end["exitCode"], end["unread"])


def _unreadable(finding: Finding) -> dict[str, Any]:
    row, about = finding_row(finding), finding.about
    known = {name: row[name] for name in ("code", "severity", "message", "evidence")}
    if isinstance(about, PartitionSubject):
        partition, (first, last) = about.partition, about.offsets or (None, None)
        known |= {"topic": partition.topic, "topicId": partition.topic_id, "partition": partition.partition}
        known |= {"firstOffset": first, "lastOffset": last}
    if isinstance(about, SegmentSubject):
        known |= {"segmentId": about.segment_id, "part": about.part, "key": about.key}
    return known
