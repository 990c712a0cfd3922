"""Bytes that are altered on their way from the store, and not in it, are never called damaged.

The bucket is on a real server; a proxy in front of it alters answers, as plain http lets anybody do.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from tests.faults.captured_segments import large_segment
from tests.faults.cluster import LAYOUT, Cluster, captured, key_of
from tests.faults.expectations import DAMAGE
from tests.faults.segment_writer import WrittenSegment
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Rule
from tests.rigs.lies import altered
from tests.rigs.object_servers import ObjectServer
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store

PARTS = (Part.LOG, Part.OFFSET_INDEX, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH)
each_part = pytest.mark.parametrize("part", PARTS)


def last_byte_flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@dataclass
class FlippedElsewhere:
    """Another byte each time."""

    times: int = 0

    def __call__(self, data: bytes) -> bytes:
        self.times += 1
        position = len(data) // (self.times + 1)
        return data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]


@dataclass(frozen=True)
class SegmentBehindProxy:
    segment: WrittenSegment
    proxy: FaultyProxy

    def check(self, level: Level = Level.FULL) -> SegmentReport:
        options = {"endpoint": self.proxy.endpoint, "addressing-style": "path"}
        keys = {part: key_of(self.segment.metadata, part) for part in self.segment.parts}
        task = SegmentTask(self.segment.metadata, keys, level)
        return check_segment(task, open_store(f"s3://{BUCKET}/transit", options), LAYOUT)

    def alter(self, part: Part, change: object = last_byte_flipped, most: int | None = None) -> Rule:
        """The answers to the first reads of a part."""
        assert callable(change)
        rule = Rule(altered(change), "GET", key_of(self.segment.metadata, part), most=most)
        self.proxy.rules.append(rule)
        return rule


@pytest.fixture(scope="module")
def kafka_4(captures: Path) -> Cluster:
    return captured(captures / "kafka-4.3.1")


@pytest.fixture
def behind_proxy(moto: ObjectServer, kafka_4: Cluster) -> Iterator[SegmentBehindProxy]:
    bucket, segment = S3Bucket(moto.endpoint), large_segment(kafka_4)
    for part, data in segment.parts.items():
        bucket.put(f"transit/{key_of(segment.metadata, part)}", data)
    with FaultyProxy(moto.endpoint) as proxy:
        yield SegmentBehindProxy(segment, proxy)


def codes(report: SegmentReport) -> list[str]:
    return sorted(finding.code for finding in report.findings)


@each_part
def test_a_read_that_is_altered_once_is_a_warning(behind_proxy: SegmentBehindProxy, part: Part) -> None:
    rule = behind_proxy.alter(part, most=1)

    report = behind_proxy.check()

    assert codes(report) == ["altered-in-transit"]
    assert rule.met > 1


@pytest.mark.parametrize("part", PARTS[:3])
def test_it_is_not_damage_at_headers_either(behind_proxy: SegmentBehindProxy, part: Part) -> None:
    behind_proxy.alter(part, most=2)

    report = behind_proxy.check(Level.HEADERS)

    assert set(codes(report)) <= {"altered-in-transit"}  # headers that look wrong are read in full at once


@each_part
def test_what_every_read_finds_is_damage(behind_proxy: SegmentBehindProxy, part: Part) -> None:
    behind_proxy.alter(part)

    assert codes(behind_proxy.check()) == [DAMAGE[part]]


def test_damage_that_a_read_hid_is_found_nevertheless(behind_proxy: SegmentBehindProxy) -> None:
    behind_proxy.alter(Part.TIME_INDEX)
    behind_proxy.alter(Part.LOG, most=1)

    assert codes(behind_proxy.check()) == ["altered-in-transit", "index-damaged"]


def test_where_no_two_reads_agree_nothing_is_known(behind_proxy: SegmentBehindProxy) -> None:
    behind_proxy.alter(Part.LOG, FlippedElsewhere())

    report = behind_proxy.check()

    assert codes(report) == ["unreadable"]


class BehindABadConnection(MemoryStore):
    """A store whose every read over the first connection has another byte at its end."""

    is_bad = True

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        return last_byte_flipped(data) if self.is_bad else data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        pieces = super().stream(key, start, chunk_size)
        return map(last_byte_flipped, pieces) if self.is_bad else pieces

    def reconnected(self) -> Self:
        other = copy(self)
        other.is_bad = False
        return other


def test_what_is_read_again_is_read_over_another_connection(kafka_4: Cluster) -> None:
    segment, store = large_segment(kafka_4), BehindABadConnection()
    for part, data in segment.parts.items():
        store.put(key_of(segment.metadata, part), data)
    keys = {part: key_of(segment.metadata, part) for part in segment.parts}

    report = check_segment(SegmentTask(segment.metadata, keys, Level.FULL), store, LAYOUT)

    assert codes(report) == ["altered-in-transit"]


def test_a_sound_segment_is_read_once(behind_proxy: SegmentBehindProxy) -> None:
    behind_proxy.check()

    reads = [request.path for request in behind_proxy.proxy.requests if request.method == "GET"]
    assert len(reads) == len(set(reads)) >= len(behind_proxy.segment.parts)
