"""Topics that are gone by the controllers' log in the scanned log directories: as if it had been named, or unknown."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import (
    AGED,
    CAPTURE,
    CLUSTER_ID,
    ENOUGH,
    LISTED,
    ORPHANS,
    broker_of,
    crashed_cluster_on_disk,
    objects_in,
    without_own,
)
from tests.metadata_quorum_files import NO_OP
from tieredctl.errors import ExitCode
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header

STORES = {
    "kafka-4.3.1": ("remote/kafka-tiered-storage", "local"),
    "kafka-3.9.1": ("remote/kafka-tiered-storage", "local"),
    "aiven-plain-4.3.1": ("bucket", "aiven"),
    CAPTURE: ("bucket", "aiven"),
}
OF_THE_DELETED_TOPIC = 78
"""Objects of the crash capture that are orphaned because their topic is gone, and for nothing else."""
ANOTHER = "aiven-plain-4.3.1"
LATER_RECORD = b"\x01\x63\x00\x01"
"""Of a type that no release has yet."""


def scan(tieredctl: Tieredctl, capture: Path, log_dir: Path, *words: str | Path) -> Outcome:
    store, layout = STORES[capture.name]
    where = ("--store", f"file:{capture / store}", "--layout", layout, "--log-dir", log_dir)
    return tieredctl("orphans", "scan", *where, "--min-age", "0s", "-o", "jsonl", *words)


def verdicts(outcome: Outcome) -> set[tuple[str, str, str | None]]:
    return {(one["key"], one["status"], one["cause"]) for one in outcome.lines()}


def test_the_log_beside_finds_what_it_finds_when_it_is_named(tieredctl: Tieredctl, captures: Path) -> None:
    for name in STORES:
        data = captures / name / "data"

        beside = scan(tieredctl, captures / name, data)
        named = scan(tieredctl, captures / name, data, "--kraft-snapshot", data)

        assert (beside.exit_code, beside.lines()) == (named.exit_code, named.lines()), name
        assert "are gone" not in beside.err, (name, beside.err)


def log_of(data: Path) -> Path:
    (log,) = (data / "__cluster_metadata-0").glob("*.log")
    return log


def snapshots_of(data: Path) -> list[Path]:
    return sorted((data / "__cluster_metadata-0").glob("*.checkpoint"))


def cut(file: Path, bytes_less: int) -> None:
    file.chmod(0o600)
    os.truncate(file, file.stat().st_size - bytes_less)


def flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def append(log: Path, value: bytes, after_ms: int = 0) -> None:
    """One more record, some time after the last one."""
    content, position = log.read_bytes(), 0
    while position < len(content):
        last = read_batch_header(content, position, len(content))
        position += last.size
    record = Record(last.last_offset + 1, last.max_timestamp + after_ms, None, value)
    log.write_bytes(content + encode_batch([record], partition_leader_epoch=last.partition_leader_epoch))


def as_it_was_early(data: Path) -> None:
    """A copy of the log from before the metadata ended: what was deleted since, it has."""
    first, *later = snapshots_of(data)
    for one in later:
        one.unlink()
    log, ends = log_of(data), int(first.name.split("-")[0]) + 20
    content, position = log.read_bytes(), 0
    while (batch := read_batch_header(content, position, len(content))).base_offset < ends:
        position += batch.size
    os.truncate(log, position)


def emptied(data: Path) -> None:
    for file in (data / "__cluster_metadata-0").iterdir():
        file.unlink()


def with_a_file_in_its_place(data: Path) -> None:
    shutil.rmtree(data / "__cluster_metadata-0")
    (data / "__cluster_metadata-0").touch()


def of_nobody(data: Path) -> None:
    (data / "meta.properties").unlink()


ALTERED: Mapping[str, Callable[[Path], object]] = {
    "no log at all": lambda data: shutil.rmtree(data / "__cluster_metadata-0"),
    "an empty folder": emptied,
    "snapshots without their log": lambda data: log_of(data).unlink(),
    "an empty log": lambda data: cut(log_of(data), log_of(data).stat().st_size),
    "a log that lacks its last minutes": lambda data: cut(log_of(data), 900),
    "a log that ends before its snapshots": lambda data: cut(log_of(data), 9_000),
    "an older copy": as_it_was_early,
    "a flipped bit": lambda data: flip(log_of(data), 12_000),
    "a cut snapshot": lambda data: cut(snapshots_of(data)[-1], 700),
    "a record of a later release": lambda data: append(log_of(data), LATER_RECORD),
    "a clock that ran ahead": lambda data: append(log_of(data), NO_OP, 1 << 42),
    "a log of nobody's": of_nobody,
    "a file in its place": with_a_file_in_its_place,
}


@pytest.fixture
def unproven(tieredctl: Tieredctl, captures: Path) -> set[tuple[str, str, str | None]]:
    """The verdicts where nothing tells which topics are gone."""
    return verdicts(scan(tieredctl, captures / CAPTURE, broker_of(captures / CAPTURE)))


def test_a_log_that_proves_nothing_finds_no_more_than_none(
    tieredctl: Tieredctl, captures: Path, unproven: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    for number, (case, alter) in enumerate(ALTERED.items()):
        data = shutil.copytree(captures / CAPTURE / "data", tmp_path / str(number))
        alter(data)

        outcome = scan(tieredctl, captures / CAPTURE, data)

        assert outcome.exit_code == ExitCode.FINDINGS, (case, outcome.err)
        assert verdicts(outcome) == unproven, case
        says_why = "It is unknown which topics are gone: " in outcome.err
        assert says_why is (data / "__cluster_metadata-0").exists(), (case, outcome.err)
        assert "Only " not in outcome.err, case


def test_another_clusters_log_or_one_that_is_not_named_finds_no_more_than_none(
    tieredctl: Tieredctl, captures: Path, unproven: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    own, data = captures / CAPTURE / "data", shutil.copytree(captures / CAPTURE / "data", tmp_path / "data")
    shutil.rmtree(data / "__cluster_metadata-0")
    shutil.copytree(captures / ANOTHER / "data" / "__cluster_metadata-0", data / "__cluster_metadata-0")

    of_another = scan(tieredctl, captures / CAPTURE, data)
    named = scan(tieredctl, captures / CAPTURE, own, "--kraft-snapshot", snapshots_of(own)[-1])
    in_the_past = scan(tieredctl, captures / CAPTURE, own, "--as-of", "2100-01-01T00:00Z")

    assert verdicts(of_another) == verdicts(named) == unproven
    assert {one["topicLive"] for one in in_the_past.lines()} == {None}


def test_a_log_whose_snapshot_nothing_confirms_says_that_it_alone_tells(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    data = shutil.copytree(captures / CAPTURE / "data", tmp_path / "data")
    *earlier, last = snapshots_of(data)
    for one in earlier:
        one.unlink()
    log, begins = log_of(data), int(last.name.split("-")[0])
    content, position = log.read_bytes(), 0
    while (batch := read_batch_header(content, position, len(content))).base_offset < begins:
        position += batch.size
    log.with_name(f"{batch.base_offset:020}.log").write_bytes(content[position:])
    log.unlink()

    outcome = scan(tieredctl, captures / CAPTURE, data)

    assert "Only " in outcome.err
    assert sum(cause == "topic-gone" for _, _, cause in verdicts(outcome)) == OF_THE_DELETED_TOPIC


def test_what_the_log_beside_proves_is_planned_and_removed_and_put_back(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    made = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    before = made.objects()
    data = captures / CAPTURE / "data"
    where = ("--log-dir", data)

    planned = tieredctl(
        *("orphans", "plan", *made.store, "--layout", "aiven", *where, "--to", made.plan_file, *AGED, *ENOUGH)
    )
    applied = tieredctl(
        *("orphans", "apply", made.plan_file, "--offline-metadata", *where, *ENOUGH, "--min-age", "1h"),
        *("--yes", "--cluster-id", CLUSTER_ID),
    )
    left = without_own(objects_in(made.bucket))
    restored = made.restore()

    assert [one.exit_code for one in (planned, applied, restored)] == [0, 0, 0], applied.err
    assert len(left) == LISTED - ORPHANS - OF_THE_DELETED_TOPIC
    assert without_own(objects_in(made.bucket)) == without_own(before)


def test_a_plan_by_the_log_beside_is_skipped_where_nothing_proves_it_any_more(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    made = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    store = (*made.store, "--layout", "aiven", "--to", made.plan_file, *AGED, *ENOUGH)
    tieredctl("orphans", "plan", *store, "--log-dir", captures / CAPTURE / "data")

    applied = made.apply(*ENOUGH)

    assert applied.exit_code == ExitCode.INCOMPLETE
    assert len(without_own(made.objects())) >= LISTED - ORPHANS, applied.err
