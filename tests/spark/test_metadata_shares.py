"""A large metadata partition is read by several tasks, and what they read together is what one would."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tieredctl_spark import metadata_shares
from tieredctl_spark.metadata_shares import EVERYTHING, Share, Wanted, planned_shares, share_tables

from tests.metadata_logs import COPIED, metadata_batches, started, updated, write_log
from tieredctl.errors import TieredctlError
from tieredctl.model.events import MetadataEvent
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
