"""Whether a segment in a combined object has the batches that its events promise."""

from __future__ import annotations

from dataclasses import dataclass, field

from tieredctl.errors import DecodeError
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import HEADER_BYTES, BatchHeader, read_batch_header
from tieredctl.model.finding_subjects import PartitionSubject, Subject
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import partition_document
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.lineage import epoch_for_offset
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.wal.replayed import KnownWalSegment


@dataclass(slots=True)
class ObjectReport:
    """What was found in one object."""

    key: str
    findings: list[Finding] = field(default_factory=list)
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    silent: bool = False
    """Whether the store did not answer."""

    def add(self, position: int, message: str, segment: KnownWalSegment | None = None) -> None:
        """Damage from a byte of the object on."""
        self.findings.append(object_finding(self.key, position, message, segment))


def object_finding(key: str, position: int, message: str, segment: KnownWalSegment | None = None) -> Finding:
    """Damage of an object, from one of its bytes on; of one of its segments, where that is known."""
    evidence: dict[str, object] = {"key": key, "position": position}
    about = Subject()
    if segment is not None:
        offsets = segment.metadata.start_offset, segment.metadata.end_offset
        partition = segment.metadata.topic_id_partition
        evidence |= {"segmentId": segment.segment_id, "offsets": list(offsets)}
        evidence |= partition_document(partition)
        about = PartitionSubject(partition, offsets)
    return Finding(ProposalCode.WAL_OBJECT_DAMAGED, key, message, evidence, about=about)


def check_first_batch(store: ObjectStore, report: ObjectReport, segment: KnownWalSegment) -> None:
    """Compares the header of a segment's first batch with its events. Raises TieredctlError as reading does."""
    position = segment.start_file_position
    data = store.read(report.key, position, position + HEADER_BYTES)
    report.bytes_read += len(data)
    try:
        header = read_batch_header(data, 0, len(data))
    except DecodeError as error:
        report.add(position, error.reason, segment)
        return
    report.batches += 1
    report.records += header.records_count
    _check_header(report, segment, header, position, segment.metadata.start_offset)


def check_batches(store: ObjectStore, report: ObjectReport, segment: KnownWalSegment) -> None:
    """Reads a segment, and compares every batch with its events. Raises TieredctlError as reading does."""
    start, metadata = segment.start_file_position, segment.metadata
    data = store.read(report.key, start, start + metadata.segment_size_in_bytes)
    report.bytes_read += len(data)
    if len(data) != metadata.segment_size_in_bytes:
        report.add(start + len(data), f"it ends {metadata.segment_size_in_bytes - len(data)} bytes too early", segment)
    following: int | None = metadata.start_offset
    for block in scan_log([data], len(data), OneByOne()):
        if isinstance(block, Damage):
            report.add(start + block.position, block.reason, segment)
            following = None
            continue
        for position, header in zip(block.positions, block.headers, strict=True):
            report.batches += 1
            report.records += header.records_count
            _check_header(report, segment, header, start + block.file_position + position, following)
            following = header.last_offset + 1
    if following is not None and following <= metadata.end_offset and not report.findings:
        report.add(segment.end_file_position, f"it ends before offset {metadata.end_offset}", segment)


def _check_header(
    report: ObjectReport, segment: KnownWalSegment, header: BatchHeader, position: int, following: int | None
) -> None:
    """Where the one before was damaged, nothing is expected to follow."""
    if following is not None and header.base_offset != following:
        report.add(position, f"a batch begins at offset {header.base_offset}, where {following} comes next", segment)
    elif not segment.metadata.start_offset <= header.base_offset <= header.last_offset <= segment.metadata.end_offset:
        offsets = f"{header.base_offset} to {header.last_offset}"
        report.add(position, f"a batch has offsets {offsets}, outside of its segment", segment)
    epoch = epoch_for_offset(segment.metadata.segment_leader_epochs, header.base_offset)
    if epoch != header.partition_leader_epoch:
        message = f"a batch has leader epoch {header.partition_leader_epoch}, its events say {epoch}"
        report.add(position, message, segment)
