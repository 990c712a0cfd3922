"""Segments and clusters to put faults into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.captured_segments import large_segment, small_segment
from tests.faults.cluster import Cluster, captured
from tests.faults.segment_writer import WrittenSegment
from tests.faults.segments_made import all_shapes

CAPTURES = ("kafka-4.3.1", "kafka-3.9.1")


@pytest.fixture(scope="session", params=list(all_shapes()))
def segment(request: pytest.FixtureRequest) -> WrittenSegment:
    """Each shape of segment."""
    return all_shapes()[request.param]


@pytest.fixture(scope="session", params=[name for name, made in all_shapes().items() if len(made.batches) > 4])
def long_segment(request: pytest.FixtureRequest) -> WrittenSegment:
    """Each shape of more than four batches."""
    return all_shapes()[request.param]


@pytest.fixture(scope="session", params=CAPTURES)
def cluster(request: pytest.FixtureRequest, captures: Path) -> Cluster:
    """Each captured cluster."""
    return captured(captures / request.param)


@pytest.fixture(params=[1 << 22, 12_000], ids=["read at once", "read in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are read in pieces larger and smaller than themselves."""
    monkeypatch.setattr("tieredctl.ops.verification.opened_segment.STREAM_BYTES", request.param)
    monkeypatch.setattr("tieredctl.ops.verification.segment_check.STREAM_BYTES", request.param)


@pytest.fixture(scope="session")
def small(cluster: Cluster) -> WrittenSegment:
    """A captured segment of some hundred bytes that has a transaction index."""
    return small_segment(cluster)


@pytest.fixture(scope="session")
def large(cluster: Cluster) -> WrittenSegment:
    """A captured segment of about a MiB, the last of its partition, that two leaders wrote."""
    return large_segment(cluster)


@pytest.fixture(scope="session")
def two_partitions(cluster: Cluster, small: WrittenSegment, large: WrittenSegment) -> Cluster:
    """Those of the two segments, with all their segments."""
    return cluster.only(small.metadata.topic_id_partition, large.metadata.topic_id_partition)


@pytest.fixture(params=["small", "large"])
def real_segment(request: pytest.FixtureRequest, small: WrittenSegment, large: WrittenSegment) -> WrittenSegment:
    """Each of the two."""
    return small if request.param == "small" else large
