"""A part that was copied with a segment, cut anywhere or with any of its bytes altered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.lost_metadata import LostMetadata, led
from tests.shares import divided
from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint, read_leader_epoch_checkpoint
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.ops.inspection.inspect import inspect
from tieredctl.ops.metadata_recovery.event_rebuilding import EpochRun, Unfit, epoch_runs, epochs_of_log, epochs_within
from tieredctl.ops.metadata_recovery.segment_judgement import Fate
from tieredctl.ports.layout import Part

LINEAGE = ((0, 0), (2, 12), (11, 105))


class Copied(NamedTuple):
    """A captured checkpoint, and the batches of the segment that it was copied with."""

    checkpoint: bytes
    log: tuple[EpochRun, ...]


def copied_with_segments(captures: Path) -> set[Copied]:
    found = set()
    for path in captures.rglob("*.leader_epoch_checkpoint"):
        log = path.with_suffix(".log").read_bytes()
        runs: list[EpochRun] = []
        for block in scan_log(iter([log]), len(log), AsColumns(), int(path.name[:20])):
            assert not isinstance(block, Damage)
            runs += epoch_runs(block.headers)
        found.add(Copied(path.read_bytes(), tuple(runs)))
    return found


def cuts(data: bytes) -> Iterator[bytes]:
    for end in range(len(data)):
        yield data[:end]


def alterations(data: bytes) -> Iterator[bytes]:
    for position, byte in enumerate(data):
        for other in range(256):
            if other != byte:
                yield data[:position] + bytes([other]) + data[position + 1 :]


def test_every_captured_checkpoint_is_read_as_it_is(captures: Path) -> None:
    checkpoints = {path.read_bytes() for path in captures.rglob("*leader?epoch?checkpoint")} - {b"0\n0\n", b""}

    assert len(checkpoints) > 3
    for data in checkpoints:
        assert encode_leader_epoch_checkpoint(leader_epoch_entries(data)) == data


def test_no_captured_checkpoint_is_read_where_it_is_cut(captures: Path) -> None:
    for data in {path.read_bytes() for path in captures.rglob("*leader?epoch?checkpoint")}:
        for cut in cuts(data):
            with pytest.raises(DecodeError):
                leader_epoch_entries(cut)


def test_what_differs_is_read_only_where_it_is_a_checkpoint_as_brokers_write_it(captures: Path) -> None:
    for data in {path.read_bytes() for path in captures.rglob("*leader?epoch?checkpoint")}:
        for altered in alterations(data):
            try:
                entries = leader_epoch_entries(altered)
            except DecodeError:
                continue
            assert encode_leader_epoch_checkpoint(entries) == altered


def test_no_alteration_of_a_captured_checkpoint_gives_its_segment_other_epochs(captures: Path) -> None:
    for checkpoint, log in copied_with_segments(captures):
        start, end = log[0].first, log[-1].last
        written = epochs_within(read_leader_epoch_checkpoint(checkpoint), start, end)
        for altered in (checkpoint, *divided([*cuts(checkpoint), *alterations(checkpoint)])):
            try:
                read = epochs_of_log(altered, log, start)
            except Unfit:
                assert altered != checkpoint
                continue
            assert read == written, (checkpoint, altered)


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda data: data[:-1], "is not as a broker writes it"),
        (lambda data: data[:-2], "is not as a broker writes it"),
        (lambda data: data.replace(b"2 12", b"2 13"), "gives offset 12 leader epoch 0, its log 2"),
        (lambda data: data.replace(b"2 12", b"2 11"), "gives offset 11 leader epoch 2, its log 0"),
        (lambda data: data.replace(b"2 12", b"3 12"), "gives offset 12 leader epoch 3, its log 2"),
        (lambda data: data.replace(b"11 105", b"2 105"), "do not rise"),
        (lambda data: data.replace(b"0 0", b"0  0"), "is not as a broker writes it"),
        (lambda _data: b"0\n0\n", "has no leader epoch"),
    ],
)
def test_metadata_is_not_recovered_by_an_altered_checkpoint(alter: Callable[[bytes], bytes], reason: str) -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9, epochs=LINEAGE)
    segment = cluster.copy(2, 10, 119, epochs=LINEAGE)
    cluster.change(segment, Part.LEADER_EPOCH, alter(segment.parts[Part.LEADER_EPOCH]))

    assert cluster.fates() == {1: Fate.RECOVER, 2: Fate.DAMAGED}

    (finding,) = [one for one in cluster.plan().all_findings() if one.code == "segment-not-recovered"]
    assert finding.evidence["segmentId"] == segment.metadata.segment_id
    assert reason in finding.message


def test_no_way_back_is_named_by_a_checkpoint_that_another_segment_contradicts() -> None:
    cluster = LostMetadata(live=led(120, 120, 125, ((11, 120),)))
    cluster.copy(1, 0, 19, epochs=LINEAGE)
    segment = cluster.copy(2, 20, 119, epochs=LINEAGE)
    altered = segment.parts[Part.LEADER_EPOCH].replace(b"2 12", b"2 13")
    cluster.change(segment, Part.LEADER_EPOCH, altered)

    (plan,) = cluster.plan().partitions

    assert plan.row().restore is None
    assert "contradicts segment" in plan.findings[0].message


@pytest.mark.parametrize("end", [-1, -2])
def test_store_inspect_calls_a_cut_copied_checkpoint_damaged(tmp_path: Path, end: int) -> None:
    path = tmp_path / f"{0:020}-AAAAAAAAAAAAAAAAAAAAAQ.leader_epoch_checkpoint"
    path.write_bytes(encode_leader_epoch_checkpoint([EpochEntry(0, 126), EpochEntry(2, 212)])[:end])

    with pytest.raises(DecodeError, match="not as a broker writes it"):
        inspect(path)


def test_store_inspect_calls_a_copied_index_that_ends_in_zeros_damaged(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}-AAAAAAAAAAAAAAAAAAAAAQ.index"
    path.write_bytes(bytes.fromhex("0000000500000040") + bytes(8))

    with pytest.raises(DecodeError, match="its last 8 bytes are zeros"):
        inspect(path)
