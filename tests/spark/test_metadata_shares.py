"""A large metadata partition is read by several tasks, and what they read together is what one would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tieredctl_spark import metadata_shares
from tieredctl_spark.metadata_shares import EVERYTHING, Share, Wanted, planned_shares, share_tables

from tests.metadata_logs import COPIED, metadata_batches, started, updated, write_log
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.wiring.places import MetadataPlace

WITHOUT_FINDINGS = Wanted(has_findings=False)
ALTERED = (b"\x09no event", None)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A metadata partition in five files: with values that are not events, damage, and a gap."""
    for file in range(5):
        values: list[MetadataEvent | bytes | None] = [started(file * 10 + one, one, one) for one in range(8)]
        first = file * 10
        batches = metadata_batches([*values, *ALTERED], first_offset=first)
        if file == 2:
            del batches[4]
        if file == 3:
            batches[5] = batches[5][:-1] + bytes([batches[5][-1] ^ 1])
        write_log(tmp_path, 0, batches, first_offset=first)
    write_log(tmp_path, 1, metadata_batches([updated(1, COPIED)]))
    return tmp_path


def read(place: MetadataPlace, shares: list[Share], wanted: Wanted = EVERYTHING) -> pa.Table:
    return pa.concat_tables(table for share in shares for table in share_tables(place, share, wanted))


@pytest.mark.parametrize("most_offsets", [1, 10, 20, 1_000])
def test_rows_and_findings_are_those_of_an_undivided_partition(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, most_offsets: int
) -> None:
    place = MetadataPlace((log_dir,))
    whole = read(place, planned_shares(place))
    monkeypatch.setattr(metadata_shares, "MOST_OFFSETS", most_offsets)

    shares = planned_shares(place)

    divided = read(place, shares)
    assert sorted(map(repr, divided.to_pylist())) == sorted(map(repr, whole.to_pylist()))
    assert whole["finding"].null_count == 5 * 10 - 2 + 1
    assert len(shares) == {1: 8, 10: 8, 20: 6, 1_000: 3}[most_offsets]


def test_findings_are_left_out_where_nobody_asks_for_them(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_shares, "MOST_OFFSETS", 10)
    place = MetadataPlace((log_dir,))

    rows = read(place, planned_shares(place, WITHOUT_FINDINGS), WITHOUT_FINDINGS)

    assert rows["finding"].null_count == rows.num_rows == 49


def test_a_topic_that_was_recreated_since_the_planning_is_not_read(captures: Path) -> None:
    place = MetadataPlace((captures / "kafka-4.3.1/data",))
    (share, *_) = [one for one in planned_shares(place) if one.metadata_partition == 0]
    assert share.metadata_topic_id is not None

    with pytest.raises(TieredctlError, match="was deleted and recreated"):
        list(share_tables(place, Share(0, metadata_topic_id="A" * 22)))


EVENTS = metadata_batches([started(one, one, one) for one in range(6)])


def planned_over(folder: Path, most_offsets: int, monkeypatch: pytest.MonkeyPatch) -> tuple[MetadataPlace, list[Share]]:
    """Of a log of six records, in three files."""
    for first in (0, 2, 4):
        write_log(folder, 0, EVENTS[first : first + 2], first_offset=first)
    monkeypatch.setattr(metadata_shares, "MOST_OFFSETS", most_offsets)
    place = MetadataPlace((folder,))
    return place, planned_shares(place)


@pytest.mark.parametrize("most_offsets", [2, 1_000], ids=["divided", "whole"])
@pytest.mark.parametrize("left", [1, 2, 3, 5])
def test_a_log_that_ends_earlier_where_it_is_read_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_offsets: int, left: int
) -> None:
    place, shares = planned_over(tmp_path, most_offsets, monkeypatch)
    shutil.rmtree(tmp_path / "__remote_log_metadata-0")
    write_log(tmp_path, 0, EVENTS[:left])

    with pytest.raises(TieredctlError, match=f"up to {left} where it is read, but .* were there when") as raised:
        read(place, shares)

    assert raised.value.code is ErrorCode.UNREADABLE


@pytest.mark.parametrize("most_offsets", [2, 1_000], ids=["divided", "whole"])
def test_a_log_that_begins_later_where_it_is_read_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_offsets: int
) -> None:
    place, shares = planned_over(tmp_path, most_offsets, monkeypatch)
    for path in (tmp_path / "__remote_log_metadata-0").glob(f"{0:020}.*"):
        path.unlink()

    with pytest.raises(TieredctlError, match="holds offsets from 2 up to"):
        read(place, shares)


@pytest.mark.parametrize("most_offsets", [2, 1_000], ids=["divided", "whole"])
def test_a_log_that_has_grown_or_lies_in_other_files_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_offsets: int
) -> None:
    place, shares = planned_over(tmp_path, most_offsets, monkeypatch)
    shutil.rmtree(tmp_path / "__remote_log_metadata-0")
    write_log(tmp_path, 0, EVENTS[:3])
    write_log(tmp_path, 0, [*EVENTS[3:], *metadata_batches([started(9, 9, 9)], first_offset=6)], first_offset=3)

    rows = read(place, shares)

    assert set(rows["metadataOffset"].to_pylist()) >= set(range(7))


def test_an_export_that_was_replaced_by_a_shorter_one_is_not_believed(tmp_path: Path) -> None:
    export = tmp_path / "events.jsonl"
    for folder, count in (("long", 6), ("short", 2)):
        write_log(tmp_path / folder, 0, EVENTS[:count])
    with MetadataPlace((tmp_path / "long",)).open() as stream:
        export_metadata(stream, export, force=False)
    place = MetadataPlace(export=export)
    shares = planned_shares(place)
    with MetadataPlace((tmp_path / "short",)).open() as stream:
        export_metadata(stream, export, force=True)

    with pytest.raises(TieredctlError, match="up to 2 where it is read, but offsets from 0 up to 6"):
        read(place, shares)
