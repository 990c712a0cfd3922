"""With the disk, no record is missing in silence that a broker's checkpoints promise there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.records.captured_topics import captured_records
from tests.records.kafka_records import rows_of
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.records.request import Isolation, OnDamage, RecordRequest

TOPIC, END = "slow7", 287


@pytest.fixture
def copied(captures: Path, tmp_path: Path) -> Path:
    for part in ("data", "remote"):
        shutil.copytree(captures / "kafka-4.3.1" / part, tmp_path / part)
    return tmp_path


def read(capture: Path, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> tuple[set[int], list[Finding], int]:
    """The offsets of the records that are returned, what was found, and how many offsets are lost."""
    with captured_records(capture, TOPIC, with_local=True) as opened:
        (partition,) = opened.partitions
        records = opened.read(partition, RecordRequest(isolation=isolation, on_damage=OnDamage.SKIP))
        rows = rows_of(records)
        return {row[0] for row in rows}, [*opened.findings, *records.findings], records.lost_offsets


def logs_of(capture: Path) -> list[Path]:
    return sorted((capture / "data" / f"{TOPIC}-0").glob("*.log"))


@pytest.mark.parametrize(("gone", "isolation"), list(zip(("emptied", "removed"), Isolation, strict=True)))
def test_a_log_that_is_gone_loses_what_the_checkpoints_say_it_had(
    copied: Path, gone: str, isolation: Isolation
) -> None:
    active = logs_of(copied)[-1]
    if gone == "emptied":
        os.truncate(active, 0)
    else:
        active.unlink()

    offsets, findings, lost = read(copied, isolation)

    assert offsets == set(range(int(active.stem)))
    assert [one.code for one in findings] == [FindingCode.OFFSET_GAP]
    assert lost == END - int(active.stem)
    assert exit_code_of(findings) is ExitCode.CORRUPTION


def test_a_log_cut_between_batches_loses_what_is_cut(copied: Path) -> None:
    active = logs_of(copied)[-1]
    first = active.read_bytes()
    os.truncate(active, int.from_bytes(first[8:12]) + 12)

    offsets, _, lost = read(copied)

    assert len(offsets) + lost == END
    assert 0 < lost < END - int(active.stem)


@pytest.mark.parametrize("gone", ["files", "folder"])
def test_a_partition_that_no_log_directory_has_is_reported(copied: Path, gone: str) -> None:
    if gone == "folder":
        shutil.rmtree(logs_of(copied)[0].parent)
    for log in logs_of(copied):
        log.unlink()

    _, findings, _ = read(copied)

    assert [one.code for one in findings] == [FindingCode.CHECK_NOT_MADE]
    assert exit_code_of(findings) is ExitCode.INCOMPLETE


def test_a_log_that_a_broker_trims_while_its_partition_is_read_is_not_read_and_not_lost(copied: Path) -> None:
    active = logs_of(copied)[-1]
    with captured_records(copied, TOPIC, with_local=True) as opened:
        (partition,) = opened.partitions
        active.unlink()

        records = opened.read(partition, RecordRequest(on_damage=OnDamage.SKIP))
        offsets = {row[0] for row in rows_of(records)}

    assert offsets == set(range(int(active.stem)))
    assert [one.code for one in records.findings] == [FindingCode.UNREADABLE]
    assert exit_code_of(records.findings) is ExitCode.INCOMPLETE
