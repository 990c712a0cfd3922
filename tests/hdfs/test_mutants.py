"""Twenty thousand damaged files of the layout `hdfs`: each is found, or holds what was copied all the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from struct import pack_into, unpack_from

import pytest
from tieredctl_hdfs.header import HEADER_BYTES
from tieredctl_hdfs.layout import HdfsLayout

from tests.conftest import inputs
from tests.faults.captured_segments import small_segment
from tests.faults.cluster import captured
from tests.faults.segment_writer import WrittenSegment
from tests.faults.segments_made import all_shapes
from tests.hdfs.segment_files import segment_file
from tests.shares import divided
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.segment_parts import transaction_index_entries
from tieredctl.ops.metadata_recovery.event_rebuilding import epochs_within
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ports.layout import Part
from tieredctl.storage.memory import MemoryStore

MUTANTS = 20_000
LAYOUT = HdfsLayout()
Mutation = Callable[[random.Random, bytearray], None]


def flip(source: random.Random, file: bytearray) -> None:
    file[source.randrange(len(file))] ^= 1 << source.randrange(8)


def cut(source: random.Random, file: bytearray) -> None:
    del file[source.randrange(len(file)) :]


def move_a_boundary(source: random.Random, file: bytearray) -> None:
    at = 1 + 4 * source.randrange(6)
    (position,) = unpack_from(">i", file, at)
    pack_into(">i", file, at, position + source.choice((-24, -12, -8, -1, 1, 8, 12, 24)))


def name_another_place(source: random.Random, file: bytearray) -> None:
    pack_into(">i", file, 1 + 4 * source.randrange(6), source.choice((-1, 0, 24, len(file), len(file) + 1, 2**31 - 1)))


def lose_bytes(source: random.Random, file: bytearray) -> None:
    begin = source.randrange(HEADER_BYTES, len(file))
    del file[begin : begin + source.randint(1, 40)]


def repeat_bytes(source: random.Random, file: bytearray) -> None:
    begin = source.randrange(HEADER_BYTES, len(file))
    file[begin:begin] = file[begin : begin + source.randint(1, 40)]


def blank_bytes(source: random.Random, file: bytearray) -> None:
    begin = source.randrange(len(file))
    end = min(begin + source.randint(1, 40), len(file))
    file[begin:end] = bytes(end - begin)


def append(source: random.Random, file: bytearray) -> None:
    file += source.randbytes(source.randint(1, 40))


MUTATIONS: tuple[Mutation, ...] = (
    *(flip, cut, move_a_boundary, name_another_place),
    *(lose_bytes, repeat_bytes, blank_bytes, append),
)


@pytest.fixture(scope="module")
def segments(captures: Path) -> list[WrittenSegment]:
    made = [segment for segment in all_shapes().values() if len(segment_file(segment.parts)) < 20_000]
    return [*made, small_segment(captured(captures / "kafka-4.3.1"))]


def test_every_mutant_is_told_or_says_the_same(segments: list[WrittenSegment]) -> None:
    told = Counter[bool]()
    for seed in divided(range(inputs(MUTANTS))):
        source = random.Random(seed)
        segment, mutation = source.choice(segments), MUTATIONS[seed % len(MUTATIONS)]
        file = bytearray(segment_file(segment.parts))
        mutation(source, file)

        findings, parts = looked_at(segment, bytes(file))

        told[bool(findings)] += 1
        for part in () if findings else {*parts, *segment.parts}:
            was, now = segment.parts.get(part, b""), parts.get(part, b"")
            assert was == now or says_the_same(segment, part, was, now), (seed, mutation.__name__, part)
    assert told[True] > 5 * told[False]


def says_the_same(segment: WrittenSegment, part: Part, was: bytes, now: bytes) -> bool:
    """Whether only what was before the segment differs: nothing that was copied with it can contradict that."""
    start, end = segment.metadata.start_offset, segment.metadata.end_offset

    def within(data: bytes) -> object:
        if part is Part.LEADER_EPOCH:
            return epochs_within(read_leader_epoch_checkpoint(data), start, end)
        return [one._replace(first_offset=max(one.first_offset, start)) for one in transaction_index_entries(data)]

    return part in {Part.LEADER_EPOCH, Part.TRANSACTION_INDEX} and within(was) == within(now)


def looked_at(segment: WrittenSegment, file: bytes) -> tuple[list[str], dict[Part, bytes]]:
    """What verification finds, and where it finds nothing, the parts as they are read."""
    store, metadata = MemoryStore(), segment.metadata
    keys = LAYOUT.promised_objects(metadata)
    store.put(keys[Part.LOG], file)
    report = check_segment(SegmentTask(metadata, keys, Level.FULL), store, LAYOUT)
    if report.findings:
        assert all(finding.evidence["key"] == keys[Part.LOG] for finding in report.findings), report.findings
        return [finding.code for finding in report.findings], {}
    reader = LAYOUT.open_segment(store, metadata)
    return [], {part: reader.read(part) for part in reader.parts()}
