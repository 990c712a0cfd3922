"""A segment to which the metadata gives a negative size: all else that is known of it is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.cluster import Cluster, EventsInMemory, captured, exit_code
from tests.faults.segment_writer import WrittenSegment
from tieredctl.errors import ExitCode
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Part
from tieredctl.storage.file import FileStore

LATER_MS = 1_900_000_000_000
UNKNOWN = "segment-size-unknown"
each_level = pytest.mark.parametrize("level", list(Level))
each_deep_level = pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])


@pytest.fixture
def unknown(two_partitions: Cluster, real_segment: WrittenSegment) -> Cluster:
    return two_partitions.with_start_changed(real_segment.metadata, segment_size_in_bytes=-4096)


@each_level
def test_it_is_unknown_and_all_else_is_read_as_before(unknown: Cluster, two_partitions: Cluster, level: Level) -> None:
    found, sound = unknown.verify(level), two_partitions.verify(level)

    assert [finding.code for finding in found.findings] == [UNKNOWN]
    assert exit_code(found.findings) is ExitCode.FINDINGS
    assert (found.segments, found.objects) == (sound.segments, sound.objects)
    assert (found.batches, found.records, found.bytes_read) == (sound.batches, sound.records, sound.bytes_read)


@each_level
def test_a_missing_log_is_missing(unknown: Cluster, real_segment: WrittenSegment, level: Level) -> None:
    findings = unknown.without_part(real_segment.metadata, Part.LOG).findings(level)

    assert [finding.code for finding in findings] == [UNKNOWN, "object-missing"]


def test_a_damaged_batch_is_found(unknown: Cluster, real_segment: WrittenSegment) -> None:
    log = bytearray(unknown.data(real_segment.metadata, Part.LOG))
    log[80] ^= 0x40

    findings = unknown.with_part(real_segment.metadata, Part.LOG, bytes(log)).findings()

    assert [finding.code for finding in findings] == [UNKNOWN, "batch-corrupt"]


@each_deep_level
def test_a_log_that_ends_within_a_batch_is_damaged(
    unknown: Cluster, real_segment: WrittenSegment, level: Level
) -> None:
    log = unknown.data(real_segment.metadata, Part.LOG)

    findings = unknown.with_part(real_segment.metadata, Part.LOG, log[:-1]).findings(level)

    assert "batch-corrupt" in {finding.code for finding in findings}
    assert "size-mismatch" not in {finding.code for finding in findings}


@each_deep_level
def test_that_a_log_without_its_last_batch_may_be_cut_is_said(
    unknown: Cluster, real_segment: WrittenSegment, level: Level
) -> None:
    metadata, last = real_segment.metadata, real_segment.batches[-1]
    log = unknown.data(metadata, Part.LOG)

    findings = unknown.with_part(metadata, Part.LOG, log[: last.position]).findings(level)

    (short,) = (finding for finding in findings if finding.code == "offset-shortfall")
    assert short.severity.label == "warning"
    assert short.evidence["offsets"] == [last.header.base_offset, metadata.end_offset]


def test_the_other_layouts_log_is_as_long_as_its_manifest_says(captures: Path) -> None:
    folder = captures / "aiven-plain-4.3.1"
    cluster, layout = captured(folder), layout_named("aiven")
    first = cluster.finished()[0]
    stream = EventStream(EventsInMemory(cluster.with_start_changed(first, segment_size_in_bytes=-1).events))
    store = FileStore(str(folder / "bucket" / "tiered"))

    found = verify(stream, store, layout, LocalEngine(threads=1), VerifyOptions(Level.FULL, Clock(LATER_MS, LATER_MS)))

    assert [finding.code for finding in found.findings] == [UNKNOWN]
