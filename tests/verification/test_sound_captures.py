"""What real brokers copied is sound, and all of it is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.captured_segments import captured_segment
from tests.faults.cluster import Cluster, checked, exit_code
from tieredctl.errors import ExitCode
from tieredctl.ops.verification.report import Level


@pytest.fixture(params=list(Level))
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    return chosen


def test_nothing_is_found(cluster: Cluster, level: Level) -> None:
    result = cluster.verify(level)

    assert result.findings == []
    assert exit_code(result.findings) is ExitCode.CLEAN
    assert result.complete


def test_every_segment_and_every_object_is_counted(cluster: Cluster, level: Level) -> None:
    result = cluster.verify(level)

    assert result.segments == len(cluster.finished())
    assert result.objects == len(cluster.objects)
    assert result.skipped == 0


def test_full_reads_every_byte_of_every_object(cluster: Cluster) -> None:
    result = cluster.verify(Level.FULL)

    assert result.bytes_read == sum(map(len, cluster.objects.values()))


def test_headers_reads_less_but_something_of_every_segment(cluster: Cluster) -> None:
    result = cluster.verify(Level.HEADERS)

    assert result.segments <= result.batches < cluster.verify(Level.FULL).batches
    assert 0 < result.bytes_read < sum(map(len, cluster.objects.values())) / 4


def test_listing_reads_nothing(cluster: Cluster) -> None:
    result = cluster.verify(Level.LISTING)

    assert (result.bytes_read, result.batches, result.records) == (0, 0, 0)


def test_as_many_batches_and_records_as_kafka_itself_counts(
    captures: Path, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    capture = captures / request.node.callspec.params["cluster"]
    segments = {metadata.segment_id: metadata for metadata in cluster.finished()}
    dumps = list((capture / "oracle" / "segments").rglob("*.log.txt"))
    assert len(dumps) > 10

    for dump in dumps:
        text = dump.read_text()
        metadata = segments[dump.name[21 : 21 + 22]]
        report = checked(captured_segment(cluster, metadata))

        assert report.batches == len(re.findall(r"^baseOffset: ", text, re.MULTILINE))
        assert report.records == sum(map(int, re.findall(r"^baseOffset: .*? count: (\d+)", text, re.MULTILINE)))
