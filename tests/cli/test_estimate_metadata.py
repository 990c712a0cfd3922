"""`estimate metadata` and `estimate cost`, from stated numbers and from log directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, copied, started, updated, write_events

DAY_MS = 86_400_000
PRICES = """
prices:
  - {store: "file:", perGiBMonth: 0.5, currency: USD, perThousandPuts: 10, perThousandGets: 2}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store that has a price."""
    (tmp_path / "config.yaml").write_text(PRICES)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    folder = tmp_path / "store"
    folder.mkdir()
    return f"file:{folder}"


def test_the_example_of_kip_405_comes_out(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "metadata", "--segments", "2600000", "-o", "json")

    (row,) = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert (row["segments"], row["bytesByKip405"]) == (2_600_000, 260_000_000)
    assert row["bytesMeasured"] == 2_600_000 * 600


def test_what_is_in_the_cache_counts_with_its_leader_epochs(tieredctl: Tieredctl, tmp_path: Path) -> None:
    deleted = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    write_events(tmp_path, *deleted, *copied(2, 10, 19), *copied(3, 20, 29, {0: 20, 1: 25}), started(4, 30, 39))

    (row,) = tieredctl("estimate", "metadata", "--log-dir", tmp_path, "-o", "json").document()["items"]

    assert (row["brokerId"], row["partitions"], row["segments"]) == (None, 1, 3)
    assert row["bytesMeasured"] == 3 * 500 + 4 * 100


def test_growth_is_that_of_the_time_between_first_and_last_event(tieredctl: Tieredctl, tmp_path: Path) -> None:
    later = started(2, 10, 19, event_timestamp_ms=FIRST_TIMESTAMP_MS + 2 * DAY_MS)
    write_events(tmp_path, started(1, 0, 9), later)

    summary = tieredctl("estimate", "metadata", "--log-dir", tmp_path, "-o", "json").document()["summary"]

    assert (summary["events"], summary["eventsPerDay"], summary["spanMs"]) == (2, 1, 2 * DAY_MS)
    assert summary["bytesPerDay"] == summary["bytes"] / 2


def test_without_such_a_time_there_is_no_growth(tieredctl: Tieredctl, tmp_path: Path) -> None:
    write_events(tmp_path, started(1, 0, 9))

    summary = tieredctl("estimate", "metadata", "--log-dir", tmp_path, "-o", "json").document()["summary"]

    assert summary["eventsPerDay"] is None


@pytest.mark.parametrize("words", [(), ("--segments", "5", "--log-dir", ".")])
def test_one_source_is_needed(tieredctl: Tieredctl, words: tuple[str, ...]) -> None:
    assert tieredctl("estimate", "metadata", *words).exit_code == 2


def cost(tieredctl: Tieredctl, store: str, log_dir: Path, *words: str) -> dict[str, Any]:
    now = str(FIRST_TIMESTAMP_MS + 10 * DAY_MS)
    where = ("--store", store, "--layout", "local", "--log-dir", str(log_dir))
    document = tieredctl("estimate", "cost", *where, "--now", now, "-o", "json", *words).document()
    (row,) = document["items"]
    return {**row, "summary": document["summary"]}


def test_a_month_costs_its_bytes_and_a_request_for_each_object(
    tieredctl: Tieredctl, store: str, tmp_path: Path
) -> None:
    events = [*copied(1, 0, 9, segment_size_in_bytes=1 << 30), *copied(2, 10, 19, segment_size_in_bytes=1 << 30)]
    write_events(tmp_path, *events, *[started(number, 20, 29) for number in range(3, 21)])

    row = cost(tieredctl, store, tmp_path)

    assert (row["segments"], row["bytes"], row["storageCost"]) == (2, 2 << 30, 1.0)
    assert (row["copiesPerDay"], row["objectsASegment"]) == (2.0, 5)  # twenty copies began in ten days
    assert (row["puts"], row["putsCost"]) == (300, 3.0)
    assert row["summary"]["cost"] == 4.0


def test_reads_cost_what_is_stated_and_are_reported_as_missing_otherwise(
    tieredctl: Tieredctl, store: str, tmp_path: Path
) -> None:
    write_events(tmp_path, *copied(1, 0, 9))

    stated = cost(tieredctl, store, tmp_path, "--reads-per-day", "1000")["summary"]
    unstated = cost(tieredctl, store, tmp_path)["summary"]

    assert (stated["gets"], stated["getsCost"], stated["notKnown"]) == (30_000, 60.0, [])
    assert unstated["gets"] is None
    assert "--reads-per-day" in unstated["notKnown"][0]


def test_a_store_without_a_price_is_a_mistake_of_usage(tieredctl: Tieredctl, store: str, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9))
    (tmp_path / "config.yaml").write_text("prices: []\n")

    outcome = tieredctl("estimate", "cost", "--store", store, "--layout", "local", "--log-dir", tmp_path)

    assert outcome.exit_code == 2
    assert "no price" in outcome.err
