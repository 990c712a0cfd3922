"""Segments that real brokers copied, in the form of those that were made for faults."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.cluster import LAYOUT, Cluster
from tests.faults.segment_writer import WrittenBatch, WrittenSegment
from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Part


def captured_segment(cluster: Cluster, metadata: RemoteLogSegmentMetadata) -> WrittenSegment:
    """One of a cluster's segments."""
    keys = LAYOUT.promised_objects(metadata) | LAYOUT.optional_objects(metadata)
    parts = {part: cluster.objects[key] for part, key in keys.items() if key in cluster.objects}
    return WrittenSegment(metadata, parts, tuple(_batches(parts[Part.LOG])))


def small_segment(cluster: Cluster) -> WrittenSegment:
    """One with every part but an offset index: records, an ABORT marker, and two leader epochs in its checkpoint."""
    return next(
        captured_segment(cluster, metadata)
        for metadata in cluster.finished()
        if cluster.has(metadata, Part.TRANSACTION_INDEX) and len(cluster.data(metadata, Part.LEADER_EPOCH)) > 10
    )


def large_segment(cluster: Cluster) -> WrittenSegment:
    """One of about a MiB, in which two leaders wrote and whose indexes have entries: the last of its partition."""
    return next(
        captured_segment(cluster, metadata)
        for metadata in cluster.finished()
        if len(metadata.segment_leader_epochs) > 1 and cluster.data(metadata, Part.OFFSET_INDEX)
    )


def _batches(log: bytes) -> Iterator[WrittenBatch]:
    for block in scan_log([log], len(log), OneByOne()):
        assert isinstance(block, LogBlock)
        for position, header in zip(block.positions, block.headers, strict=True):
            yield WrittenBatch(block.file_position + position, header)
