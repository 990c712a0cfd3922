"""Files in a folder: each record in one of them, wherever a run was stopped, and nothing mixed."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from errno import ENOLCK
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.faults.cluster import LAYOUT, Cluster, made_of, update
from tests.records.captured_topics import captured_records
from tests.records.test_damage import SEGMENTS, middle_of, with_a_bit_flipped
from tests.records.test_lineage import remote_partition, segment
from tieredctl.cli.records.binary_output import write_arrow, write_parquet
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ports.layout import Part
from tieredctl.records import part_folder
from tieredctl.records.asked_records import TextPattern
from tieredctl.records.part_folder import MANIFEST, ByteSink, opened_part_folder
from tieredctl.records.partition_parts import PartWriter, write_parts
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.records.topic_reading import TopicReading

TOPIC = "orders7"
SMALL = 7_000
"""Bytes of a part, so that a capture becomes several."""
SELECTION = {"isolation": "read_uncommitted", "topicId": "AAAAAAAAAAAAAAAAAAAABQ"}


def write_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: ByteSink) -> None:
    for batch in batches:
        for row in batch.to_pylist():
            out.write(json.dumps([row["partition"], row["offset"], row.get("damage"), repr(row)]).encode() + b"\n")


@pytest.fixture(scope="module")
def reading(captures: Path) -> Iterator[TopicReading]:
    with captured_records(captures / "kafka-4.3.1", TOPIC) as opened:
        yield TopicReading(opened.partitions, opened.store, opened.layout, RecordRequest())


def of_segment(name: str, on_damage: OnDamage, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> TopicReading:
    """A segment with a bit flipped, in the middle of its log."""
    records = with_a_bit_flipped(SEGMENTS[name]).read(RecordRequest(isolation=isolation, on_damage=on_damage))
    return TopicReading([records._remote], records._store, records._layout, records._request)


def not_begun(reading: TopicReading, **changes: Any) -> TopicReading:
    return replace(reading, **changes, findings=[], open_transactions=[])


def written(
    folder: Path,
    reading: TopicReading,
    write: PartWriter = write_lines,
    selection: Mapping[str, Any] = SELECTION,
    part_bytes: int = SMALL,
) -> TopicReading:
    """The account of what a run wrote into a folder."""
    account = not_begun(reading)
    with opened_part_folder(folder, selection) as parts:
        write_parts(account, parts, "lines", write, part_bytes)
    return account


def test_a_partition_without_events_has_not_ended_where_events_may_be_missing(
    reading: TopicReading, tmp_path: Path
) -> None:
    written(tmp_path, reading)
    before, rest = content(tmp_path), reading.partitions[1:]
    with pytest.raises(TieredctlError, match="ends at offset 0"):
        written(tmp_path, replace(reading, partitions=rest))

    doubt = Finding(FindingCode.METADATA_PARTITION_MISSING, "__remote_log_metadata", "a partition is missing here")
    account = replace(reading, partitions=rest, findings=[doubt], open_transactions=[])
    with opened_part_folder(tmp_path, SELECTION) as parts:
        write_parts(account, parts, "lines", write_lines, SMALL)

    assert (account.failure, account.findings, content(tmp_path)) == (None, [doubt], before)


def rows(folder: Path) -> list[list[Any]]:
    """In the order of the parts' names."""
    files = sorted(folder.glob("*.lines"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


def all_rows(reading: TopicReading) -> list[list[Any]]:
    found = (row for batch in not_begun(reading).batches() for row in batch.to_pylist())
    return [[row["partition"], row["offset"], row.get("damage"), repr(row)] for row in found]


@contextmanager
def seen_at_each_step(folder: Path, copies: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Copies the folder as a process that is killed there would leave it: around each step that changes names."""

    seen: list[list[str]] = []

    def copy() -> None:
        names = sorted(os.listdir(folder))
        if names not in seen:
            seen.append(names)
            shutil.copytree(folder, copies / f"{len(seen)}")

    def around(name: str) -> None:
        step = getattr(os, name)

        def copying(*args: Any, **named: Any) -> Any:
            copy()
            done = step(*args, **named)
            copy()
            return done

        patched.setattr(os, name, copying)

    with monkeypatch.context() as patched:
        for name in ("replace", "fsync"):
            around(name)
        yield


def test_each_record_is_in_one_part_and_parts_are_small(reading: TopicReading, tmp_path: Path) -> None:
    selections: Sequence[dict[str, Any]] = (
        {},
        {"pattern": TextPattern("abba|^1")},
        {"most": 100},
        {"request": RecordRequest(isolation=Isolation.READ_COMMITTED)},
        {"request": RecordRequest(start=7, end=50)},
    )
    for number, changes in enumerate(selections):
        asked, folder = not_begun(reading, **changes), tmp_path / str(number)

        account = written(folder, asked)

        assert rows(folder) == all_rows(asked) != [], changes
        assert account.returned == len(rows(folder))
        assert changes or len([*folder.glob("*.lines")]) > len(reading.partitions)
        again = content(folder)
        assert written(folder, asked).returned == account.returned
        assert content(folder) == again, changes


def test_killed_at_each_step_the_next_run_ends_as_if_never_killed(
    reading: TopicReading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, copies = tmp_path / "folder", tmp_path / "copies"
    reading = not_begun(reading, partitions=reading.partitions[:2])
    copies.mkdir()
    with seen_at_each_step(folder, copies, monkeypatch):
        written(folder, reading)
    states = [*copies.iterdir()]

    assert len(states) > 2 * len([*folder.glob("*.lines")])
    for state in states:
        was_begun = (state / MANIFEST).exists()
        account = written(state, reading)

        assert content(state) == content(folder), sorted(os.listdir(state))
        assert account.returned == len(rows(folder))
        assert not was_begun or not [*state.glob(".*")]


def test_interrupted_in_any_part_the_next_run_goes_on(reading: TopicReading, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "folder"
    written(whole, reading)
    for number in range(len([*whole.glob("*.lines")])):

        def write(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: ByteSink) -> None:
            write_lines(schema, batches, out)
            if len([*folder.glob("*.lines")]) == number:  # noqa: B023
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            written(folder, reading, write)
        assert len([*folder.glob("*.lines")]) == number
        assert not [*folder.glob(".*")]

    written(folder, reading)
    assert content(folder) == content(whole)


def test_what_was_not_there_yet_is_added_by_the_next_run(reading: TopicReading, tmp_path: Path) -> None:
    partition = reading.partitions[0]
    assert len(partition.spans) > 1
    before = replace(partition, spans=partition.spans[:1])

    first = written(tmp_path / "folder", not_begun(reading, partitions=[before]))
    account = written(tmp_path / "folder", not_begun(reading, partitions=[partition]))

    assert 0 < first.returned < account.returned
    assert rows(tmp_path / "folder") == all_rows(not_begun(reading, partitions=[partition]))


def test_what_retention_took_between_two_runs_is_lost(tmp_path: Path) -> None:
    first, middle, last = segment(0, 50, 0), segment(50, 150, 0), segment(150, 200, 0)
    kept = made_of([first, middle, last])
    some_gone, all_gone = (
        kept.with_events(*(update(one.metadata, RemoteLogSegmentState.DELETE_SEGMENT_STARTED) for one in gone))
        for gone in ([first, middle], [first, middle, last])
    )
    for number, (on_damage, isolation) in enumerate((how, which) for how in OnDamage for which in Isolation):
        folder, request = tmp_path / str(number), RecordRequest(isolation=isolation, on_damage=on_damage)

        def run(cluster: Cluster, into: Path = folder, request: RecordRequest = request) -> TopicReading:
            reading = TopicReading([remote_partition(cluster)], cluster.store(), LAYOUT, request)
            return written(into, reading)

        assert run(made_of([first])).findings == []
        for cluster, lost in ((all_gone, [50, 199]), (some_gone, [50, 149]), (some_gone, [50, 149])):
            into = tmp_path / f"{number}-{lost[1]}"
            if not into.exists():
                shutil.copytree(folder, into)

            account = run(cluster, into)

            assert [(one.code, one.evidence["offsets"]) for one in account.findings] == [(FindingCode.OFFSET_GAP, lost)]
            assert account.lost_offsets == lost[1] - lost[0] + 1
            assert account.ends_at_damage is (on_damage is OnDamage.FAIL)
            wanted = [*range(50), *([50] if on_damage is OnDamage.ROW else [])]
            if on_damage is not OnDamage.FAIL and cluster is some_gone:
                wanted += range(150, 200)
            assert [row[1] for row in rows(into)] == wanted, (on_damage, lost)


def test_a_log_that_lost_what_the_folder_has_is_not_added_to(reading: TopicReading, tmp_path: Path) -> None:
    written(tmp_path, reading)
    partition, *others = reading.partitions
    shorter = replace(partition, spans=partition.spans[:1])

    for partitions in ([shorter, *others], others):
        assert refusal(tmp_path, not_begun(reading, partitions=partitions)) == "world-changed"


@pytest.mark.parametrize("on_damage", OnDamage)
def test_what_cannot_be_read_is_reported_by_every_run(on_damage: OnDamage, tmp_path: Path) -> None:
    asked = of_segment("indexed_by_batch", on_damage)
    direct = not_begun(asked)
    expected = all_rows(asked)
    list(direct.batches())

    for state in ("first", "second"):
        account = written(tmp_path / "folder", asked)

        assert rows(tmp_path / "folder") == expected, state
        assert account.findings == direct.findings != []
        assert exit_code_of(account.findings) == exit_code_of(direct.findings)
        assert (account.returned, account.lost_offsets) == (direct.returned, direct.lost_offsets)
        assert account.ends_at_damage is direct.ends_at_damage is (on_damage is OnDamage.FAIL)


def test_damage_between_parts_is_neither_lost_nor_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (on_damage, isolation) in enumerate((how, which) for how in OnDamage for which in Isolation):
        asked = of_segment("transactions", on_damage, isolation)
        assert middle_of(SEGMENTS["transactions"]) < len(SEGMENTS["transactions"].parts[Part.LOG])
        direct, folder, copies = not_begun(asked), tmp_path / f"f{number}", tmp_path / f"c{number}"
        list(direct.batches())
        copies.mkdir()

        with seen_at_each_step(folder, copies, monkeypatch):
            written(folder, asked, part_bytes=1)

        assert rows(folder) == all_rows(asked)
        for state in copies.iterdir():
            account = written(state, asked, part_bytes=1)
            assert content(state) == content(folder)
            assert (account.findings, account.lost_offsets) == (direct.findings, direct.lost_offsets)


def refusal(folder: Path, reading: TopicReading, selection: Mapping[str, Any] = SELECTION) -> ErrorCode:
    before = content(folder)
    with pytest.raises(TieredctlError) as raised:
        written(folder, reading, selection=selection)
    assert content(folder) == before
    return raised.value.code


def test_what_was_altered_is_not_added_to(reading: TopicReading, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    written(whole, reading)
    names = sorted(content(whole))

    def altered(name: str, data: bytes | None) -> Path:
        folder = tmp_path / "altered"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        if data is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(data)
        return folder

    for name in (MANIFEST, names[1], names[-1]):
        data = (whole / name).read_bytes()
        middle = len(data) // 2
        for change in (b"", data[:-2], data + b"{}", data[:middle] + b"~" + data[middle + 1 :]):
            assert refusal(altered(name, change), reading) == "parts-unusable", (name, len(change))
    assert refusal(altered(names[1], None), reading) == "parts-unusable"
    for data in (b"[" * 100_000, b"null", b"{}", b'{"sha256": ""}', b"\xff"):
        assert refusal(altered(MANIFEST, data), reading) == "parts-unusable", data[:20]
    assert refusal(altered("orders7-0-00000000000000009999.lines", b"{}"), reading) == "parts-unusable"
    unlisted = altered(names[0], (whole / names[0]).read_bytes())
    (unlisted / MANIFEST).unlink()
    assert refusal(unlisted, reading) == "parts-unusable"


def test_another_selection_is_not_mixed_in(reading: TopicReading, tmp_path: Path) -> None:
    written(tmp_path / "folder", reading)

    for name in SELECTION:
        assert refusal(tmp_path / "folder", reading, {**SELECTION, name: "other"}) == "parts-unusable"


def test_two_runs_do_not_write_into_one_folder(reading: TopicReading, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        flock(descriptor, LOCK_EX)
        assert refusal(tmp_path, reading) == "locked"
    finally:
        os.close(descriptor)


def test_a_folder_that_cannot_be_locked_is_not_written(
    reading: TopicReading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(ENOLCK, os.strerror(ENOLCK))

    monkeypatch.setattr(part_folder, "flock", refuse)

    assert refusal(tmp_path, reading) == "unwritable"


def test_a_full_disk_leaves_nothing_half(reading: TopicReading, tmp_path: Path) -> None:
    for name, write in (("lines", write_lines), ("parquet", write_parquet), ("arrow", write_arrow)):
        folder, whole = tmp_path / name, tmp_path / f"{name}.whole"
        written(whole, reading, write)
        sizes = [len(data) for data in content(whole).values()]
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) - 1, hard))
        try:
            with pytest.raises(TieredctlError, match="cannot be written: File too large") as raised:
                written(folder, reading, write)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert raised.value.code is ErrorCode.UNWRITABLE
        assert not [*folder.glob(".*")]
        written(folder, reading, write)
        assert content(folder) == content(whole)
