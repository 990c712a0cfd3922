"""A captured node is sound; with one thing broken, that is found, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kraft_snapshots import snapshot_bytes, topic_record
from tieredctl.errors import ExitCode
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import uuid_text
from tieredctl.ops.snapshots.record_files import left_over_files, record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck

LOG = "00000000000000000000.log"
FIRST, SECOND, LATEST = (kraft_snapshot_name(*one) for one in ((50, 1), (85, 1), (107, 2)))
NO_OP = encode_kraft_record(KraftRecordType.NO_OP, 0, {})
TOPIC = topic_record(uuid_text(bytes(range(16))))
Break = Callable[[Path], object]


def check(folder: Path) -> SnapshotCheck:
    found = SnapshotCheck()
    found.read_node(folder, record_files([folder]), left_over_files(folder))
    return found


@pytest.fixture
def node(captures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captures / "kafka-4.3.1/data/__cluster_metadata-0", tmp_path / "__cluster_metadata-0"))


def flipped(name: str, from_end: int) -> Break:
    def change(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[-from_end] ^= 1
        (folder / name).write_bytes(data)

    return change


def cut(name: str, by: int) -> Break:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-by])


def renamed(name: str, to: str) -> Break:
    return lambda folder: (folder / name).rename(folder / to)


def with_segment(offset: int, epoch: int) -> Break:
    batch = encode_batch([Record(offset, 1, None, NO_OP)], partition_leader_epoch=epoch)
    return lambda folder: (folder / f"{offset:020}.log").write_bytes(batch)


def appended(offset: int, epoch: int, value: bytes = NO_OP) -> Break:
    batch = encode_batch([Record(offset, 1, None, value)], partition_leader_epoch=epoch)
    return lambda folder: (folder / LOG).write_bytes((folder / LOG).read_bytes() + batch)


def ending_before(offset: int) -> Break:
    def change(folder: Path) -> None:
        data, position = (folder / LOG).read_bytes(), 0
        while (header := read_batch_header(data, position, len(data))).last_offset < offset:
            position += header.size
        (folder / LOG).write_bytes(data[:position])

    return change


def beginning_at(offset: int) -> Break:
    def change(folder: Path) -> None:
        with_segment(offset, 2)(folder)
        (folder / LOG).unlink()

    return change


def together(*changes: Break) -> Break:
    return lambda folder: [change(folder) for change in changes]


def written(name: str, content: bytes) -> Break:
    return lambda folder: (folder / name).write_bytes(content)


CASES: dict[str, tuple[Break, dict[FindingCode, int], ExitCode]] = {
    "nothing": (lambda folder: folder, {}, ExitCode.CLEAN),
    "a bit of a snapshot": (flipped(FIRST, 200), {FindingCode.KRAFT_SNAPSHOT_DAMAGED: 1}, ExitCode.CORRUPTION),
    "a snapshot without its footer": (cut(FIRST, 75), {FindingCode.KRAFT_SNAPSHOT_DAMAGED: 1}, ExitCode.CORRUPTION),
    "an empty snapshot": (written(FIRST, b""), {FindingCode.KRAFT_SNAPSHOT_DAMAGED: 1}, ExitCode.CORRUPTION),
    "a record that is none": (
        together(
            written(kraft_snapshot_name(0, 1), snapshot_bytes(1, TOPIC, b"\x01\x02\x00\xff")),
        ),
        {FindingCode.KRAFT_SNAPSHOT_DAMAGED: 1},
        ExitCode.CORRUPTION,
    ),
    "a snapshot's end offset": (
        renamed(SECOND, kraft_snapshot_name(86, 1)),
        {FindingCode.KRAFT_SNAPSHOT_MISNAMED: 1},
        ExitCode.FINDINGS,
    ),
    "a snapshot's epoch": (
        renamed(SECOND, kraft_snapshot_name(85, 0)),
        {FindingCode.KRAFT_SNAPSHOT_MISNAMED: 2},
        ExitCode.FINDINGS,
    ),
    "a bit of the log": (flipped(LOG, 1000), {FindingCode.KRAFT_LOG_DAMAGED: 1}, ExitCode.CORRUPTION),
    "a log cut short": (cut(LOG, 3), {FindingCode.KRAFT_LOG_TORN: 1}, ExitCode.CLEAN),
    "a gap in the log": (appended(130, 2), {FindingCode.KRAFT_LOG_DAMAGED: 1}, ExitCode.CORRUPTION),
    "an epoch that goes back": (appended(123, 1), {FindingCode.KRAFT_LOG_DAMAGED: 1}, ExitCode.CORRUPTION),
    "a segment that is missing": (with_segment(130, 2), {FindingCode.KRAFT_LOG_DAMAGED: 1}, ExitCode.CORRUPTION),
    "a log that no snapshot reaches": (
        beginning_at(200),
        {
            FindingCode.KRAFT_LOG_START_UNCOVERED: 1,
            FindingCode.FOLDER_PASSED_OVER: 3,
        },
        ExitCode.CORRUPTION,
    ),
    "a log that is behind": (ending_before(100), {FindingCode.KRAFT_LOG_BEFORE_SNAPSHOT: 1}, ExitCode.FINDINGS),
    "other leader epochs": (
        written("leader-epoch-checkpoint", b"0\n2\n1 0\n2 88\n"),
        {FindingCode.KRAFT_EPOCHS_DISAGREE: 1},
        ExitCode.FINDINGS,
    ),
    "leader epochs that cannot be read": (
        written("leader-epoch-checkpoint", b"7\nx"),
        {FindingCode.KRAFT_EPOCHS_DISAGREE: 1},
        ExitCode.FINDINGS,
    ),
    "no leader epochs": (
        lambda folder: (folder / "leader-epoch-checkpoint").unlink(),
        {FindingCode.KRAFT_EPOCHS_DISAGREE: 1},
        ExitCode.CLEAN,
    ),
    "left-over files": (
        together(written(f"{SECOND}.part", b""), written(f"{FIRST}.deleted", b"")),
        {FindingCode.FOLDER_PASSED_OVER: 2},
        ExitCode.CLEAN,
    ),
    "a later release's record": (
        appended(123, 2, b"\x01\x63\x00\x01"),
        {FindingCode.KRAFT_RECORD_UNKNOWN: 1},
        ExitCode.INCOMPLETE,
    ),
    "a link to nothing": (
        together(lambda folder: (folder / FIRST).unlink(), lambda folder: (folder / FIRST).symlink_to("nowhere")),
        {FindingCode.UNREADABLE: 1},
        ExitCode.INCOMPLETE,
    ),
}


@pytest.mark.parametrize(("change", "expected", "code"), CASES.values(), ids=CASES.keys())
def test_what_is_broken_is_found_and_nothing_else(
    node: Path, change: Break, expected: dict[FindingCode, int], code: ExitCode
) -> None:
    change(node)

    found = check(node).findings

    codes = [finding.code for finding in found]
    assert {code: codes.count(code) for code in codes} == expected
    assert exit_code_of(found) == code


def test_every_captured_node_is_sound(captures: Path) -> None:
    for capture in ["kafka-3.9.1", "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1"]:
        found = check(captures / capture / "data/__cluster_metadata-0")
        assert found.findings == [], capture
        assert found.snapshots >= 3, capture
        assert found.records > 200, capture


def test_many_faults_of_one_file_are_counted(node: Path) -> None:
    (node / FIRST).write_bytes(snapshot_bytes(1, *[b"\x01\x02\x00\xff"] * 500))

    damaged = [found for found in check(node).findings if found.code is FindingCode.KRAFT_SNAPSHOT_DAMAGED]

    assert len(damaged) == 11
    assert damaged[-1].message == "490 more faults"


def test_a_snapshot_alone_is_held_against_its_name(node: Path) -> None:
    alone = (node / SECOND).rename(node / kraft_snapshot_name(85, 9))
    found = SnapshotCheck()

    found.read_files(record_files([alone]))

    assert [finding.code for finding in found.findings] == [FindingCode.KRAFT_SNAPSHOT_MISNAMED]
