"""A coordinator's log in Kafka's own segment files: what was appended is there, whole, or not at all."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator.file_log import FileLog
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord
from tieredctl_proposals.model.diskless_records import DisklessRecord

from tests.coordinator.synced_disk import SyncedDisk
from tests.diskless_records import ONE_OF_EACH, file_committed
from tests.refusals import refused_with
from tieredctl.errors import DecodeError, ErrorCode

NAME = "cluster __diskless_metadata-0"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FileLog]:
    with FileLog(NAME, tmp_path, segment_bytes=600) as log:
        yield log


def _append(log: FileLog, *appended: tuple[DisklessRecord, ...]) -> None:
    for records in appended:
        log.append(records, 5)
    log.sync()


def _logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def test_what_was_appended_is_read_from_any_offset(log: FileLog) -> None:
    _append(log, ONE_OF_EACH, *[(file_committed(f"f{number}"),) for number in range(12)], ONE_OF_EACH)
    records = [*ONE_OF_EACH, *(file_committed(f"f{number}") for number in range(12)), *ONE_OF_EACH]
    expected = [LoggedRecord(offset, 5, record) for offset, record in enumerate(records)]

    assert [list(log.read(offset)) for offset in range(21)] == [expected[offset:] for offset in range(21)]


def test_the_high_watermark_follows_what_is_on_the_disk(log: FileLog) -> None:
    log.append(ONE_OF_EACH, 5)
    assert (log.high_watermark, log.end_offset, list(log.read(0))) == (0, 4, [])

    log.sync()

    assert (log.high_watermark, len(list(log.read(0)))) == (4, 4)


def test_what_is_replicated_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SyncedDisk(monkeypatch)
    with FileLog(NAME, tmp_path / "log", segment_bytes=600) as log:
        _append(log, *[ONE_OF_EACH] * 6)
        assert len(_logs(tmp_path / "log")) > 1
        assert all(disk.has(path) for path in (tmp_path / "log", *_logs(tmp_path / "log")))


def test_what_the_disk_refused_once_is_never_called_replicated(log: FileLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError("input/output error")

    log.append(ONE_OF_EACH, 5)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="input/output"):
            log.sync()

    with pytest.raises(ValueError, match="closed file"):
        log.sync()
    assert log.high_watermark == 0


def test_it_continues_where_it_was_closed(log: FileLog, tmp_path: Path) -> None:
    _append(log, *[ONE_OF_EACH] * 6)
    before = list(log.read(0))
    log.close()
    assert len(_logs(tmp_path)) > 1

    with FileLog(NAME, tmp_path) as again:
        assert list(again.read(0)) == before
        assert again.append(ONE_OF_EACH, 6) == len(before)


def test_cut_at_every_byte_of_the_last_append_it_has_all_of_it_or_nothing(log: FileLog, tmp_path: Path) -> None:
    _append(log, ONE_OF_EACH[:1])
    whole = _logs(tmp_path)[-1].stat().st_size
    _append(log, ONE_OF_EACH[1:])
    data = _logs(tmp_path)[-1].read_bytes()
    for size in range(whole, len(data)):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / _logs(tmp_path)[-1].name).write_bytes(data[:size])
        with FileLog(NAME, folder) as cut:
            assert cut.end_offset == 1
            cut.append(ONE_OF_EACH[1:], 5)
            cut.sync()
            assert [logged.record for logged in cut.read(0)] == list(ONE_OF_EACH)


def test_two_never_have_a_log_open(log: FileLog, tmp_path: Path) -> None:
    _append(log, ONE_OF_EACH)
    log.append(ONE_OF_EACH, 5)

    with refused_with(ErrorCode.LOCKED):
        FileLog(NAME, tmp_path)
    log.sync()
    assert len(list(log.read(0))) == 8
    log.close()
    with FileLog(NAME, tmp_path) as again:
        assert again.end_offset == 8


@pytest.mark.parametrize("fault", ["damage", "a batch that is missing", "a segment that is missing", "an end cut off"])
def test_what_is_amiss_before_the_last_end_is_refused_and_left_as_it_is(
    log: FileLog, tmp_path: Path, fault: str
) -> None:
    """An end that is cut off is taken away from the last segment alone."""
    _append(log, ONE_OF_EACH[:1])
    first_end = _logs(tmp_path)[0].stat().st_size
    _append(log, ONE_OF_EACH[:1])
    second_end = _logs(tmp_path)[0].stat().st_size
    _append(log, *[ONE_OF_EACH] * 9)
    log.close()
    first, second, *_ = _logs(tmp_path)
    data = first.read_bytes()
    match fault:
        case "damage":
            first.write_bytes(data[:90] + b"\xff\xff" + data[92:])
        case "a batch that is missing":
            first.write_bytes(data[:first_end] + data[second_end:])
        case "a segment that is missing":
            second.unlink()
        case "an end cut off":
            first.write_bytes(data[:-9])
    left = first.read_bytes()

    with pytest.raises(DecodeError):
        FileLog(NAME, tmp_path)

    assert first.read_bytes() == left


def test_pruned_it_keeps_the_segment_of_the_offset_and_all_after_it(log: FileLog, tmp_path: Path) -> None:
    _append(log, *[ONE_OF_EACH] * 9)
    records = list(log.read(0))

    log.prune(20)

    assert 0 < log.start_offset <= 20
    assert list(log.read(20)) == records[20:]
    log.prune(log.end_offset)
    assert log.start_offset == log.end_offset == 36
    log.close()
    with FileLog(NAME, tmp_path) as again:
        assert (again.start_offset, again.end_offset) == (36, 36)


def test_an_append_that_does_not_fit_on_the_disk_leaves_nothing(log: FileLog, tmp_path: Path) -> None:
    _append(log, ONE_OF_EACH)
    size = _logs(tmp_path)[-1].stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            log.append(ONE_OF_EACH, 5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (log.end_offset, _logs(tmp_path)[-1].stat().st_size) == (4, size)
    _append(log, ONE_OF_EACH)
    assert len(list(log.read(0))) == 8
