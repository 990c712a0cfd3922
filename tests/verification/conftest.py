"""Segments and clusters to put faults into."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    monkeypatch.setattr("tieredctl.ops.verification.headers_check.STREAM_BYTES", request.param)
