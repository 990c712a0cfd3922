"""`estimate` of a follower, metadata, cost and a write-ahead log: from stated numbers, and from log directories."""

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
STATED = "--partition-bytes 12TB --local-bytes 1TB --pending-bytes 100GB"


def test_each_way_has_its_bytes_its_time_and_its_ratios(tieredctl: Tieredctl) -> None:
    words = ("estimate", "follower-bootstrap", *STATED.split(), "-o", "json")
    outcome = tieredctl(*words, "--throughput", "100MB")

    rows = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert [row["way"] for row in rows] == ["everything", "local", "pending-upload"]
    assert [row["bytes"] for row in rows] == [12 * 10**12, 10**12, 10**11]
    assert [row["seconds"] for row in rows] == [120_000, 10_000, 1_000]
    assert [row["ratioToEverything"] for row in rows] == [1, 0.0833, 0.0083]
    assert [row["ratioToLocal"] for row in rows] == [None, None, 0.1]
    assert {row["seconds"] for row in tieredctl(*words).document()["items"]} == {None}


def test_what_the_kips_measured_stands_beside(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "follower-bootstrap", *STATED.split())

    assert "KIP-405: 2 of 230 minutes, 4 of 520 minutes" in outcome.out
    assert "KIP-1023: 10 to 15 % of local" in outcome.out


def test_what_cannot_be_estimated_is_a_mistake_of_usage(tieredctl: Tieredctl) -> None:
    for line in (
        "follower-bootstrap",
        f"follower-bootstrap {STATED.rpartition(' --')[0]}",
        f"follower-bootstrap orders:0 {STATED}",
        "follower-bootstrap orders:0",
        f"follower-bootstrap {STATED} --throughput 0",
        f"follower-bootstrap {STATED} --throughput fast",
        "follower-bootstrap --partition-bytes 1 --local-bytes 2 --pending-bytes 0",
        "metadata",
        "metadata --segments 5 --log-dir .",
        "wal-cost --inbound fast",
        "wal-cost --inbound 999999TB",
        "wal-cost --upload-interval 0ms",
        "wal-cost --upload-bytes 0",
        "wal-cost --wal-retention soon",
        "wal-cost --replication-factor 0",
        "wal-cost --price-file /nowhere/prices.yaml",
    ):
        assert tieredctl("estimate", *line.split()).exit_code == 2, line


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
    assert (row["segments"], row["bytesByKip405"], row["bytesMeasured"]) == (2_600_000, 260_000_000, 2_600_000 * 600)


def test_what_is_in_the_cache_counts_with_its_leader_epochs(tieredctl: Tieredctl, tmp_path: Path) -> None:
    deleted = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    write_events(tmp_path, *deleted, *copied(2, 10, 19), *copied(3, 20, 29, {0: 20, 1: 25}), started(4, 30, 39))

    (row,) = tieredctl("estimate", "metadata", "--log-dir", tmp_path, "-o", "json").document()["items"]

    assert (row["brokerId"], row["partitions"], row["segments"]) == (None, 1, 3)
    assert row["bytesMeasured"] == 3 * 500 + 4 * 100


def test_growth_is_that_of_the_time_between_first_and_last_event(tieredctl: Tieredctl, tmp_path: Path) -> None:
    later = started(2, 10, 19, event_timestamp_ms=FIRST_TIMESTAMP_MS + 2 * DAY_MS)
    write_events(tmp_path / "one", started(1, 0, 9))
    write_events(tmp_path / "two", started(1, 0, 9), later)

    one, two = (
        tieredctl("estimate", "metadata", "--log-dir", tmp_path / name, "-o", "json").document()["summary"]
        for name in ("one", "two")
    )

    assert (two["events"], two["eventsPerDay"], two["spanMs"]) == (2, 1, 2 * DAY_MS)
    assert two["bytesPerDay"] == two["bytes"] / 2
    assert one["eventsPerDay"] is None


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
    assert cost(tieredctl, store, tmp_path, "--price", "2")["storageCost"] == 4.0


def test_reads_cost_what_is_stated_and_are_reported_as_missing_otherwise(
    tieredctl: Tieredctl, store: str, tmp_path: Path
) -> None:
    write_events(tmp_path, *copied(1, 0, 9))

    stated = cost(tieredctl, store, tmp_path, "--reads-per-day", "1000")["summary"]
    unstated = cost(tieredctl, store, tmp_path)["summary"]
    (tmp_path / "config.yaml").write_text("prices: []\n")
    words = ("estimate", "cost", "--store", store, "--layout", "local", "--log-dir", tmp_path)
    priceless, given, senseless = (
        tieredctl(*words),
        tieredctl(*words, "--price", "1"),
        tieredctl(*words, "--price", "nan"),
    )

    assert (stated["gets"], stated["getsCost"], stated["notKnown"]) == (30_000, 60.0, [])
    assert (unstated["gets"], len(unstated["notKnown"])) == (None, 1)
    assert (priceless.exit_code, given.exit_code, senseless.exit_code) == (2, 0, 2)


@pytest.mark.usefixtures("asked_once", "cloud_environment")
def test_only_a_clouds_own_store_has_its_list_price(
    tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text("prices: []\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    write_events(tmp_path, *copied(1, 0, 9, segment_size_in_bytes=1 << 30))
    listed = cost(tieredctl, "s3://own", tmp_path)
    given = cost(tieredctl, "s3://own", tmp_path, "--price", "1")

    assert (listed["storageCost"], given["storageCost"], given["putsCost"]) == (0.02, 1.0, listed["putsCost"])
    # The price of requests is still the list's, and named.
    assert listed["summary"]["priceOf"] is not None
    assert given["summary"]["priceOf"] not in {None, listed["summary"]["priceOf"]}
    for variable, store, option in (
        ("AWS_ENDPOINT_URL_S3", "s3://not-aws", "region=eu-west-1"),
        ("STORAGE_EMULATOR_HOST", "gs://not-googles", None),
        ("AZURE_STORAGE_SERVICE_ENDPOINT", "az://not-azures", None),
        (None, "s3://not-aws", "endpoint=http://127.0.0.1:9"),
    ):
        with monkeypatch.context() as patch:
            if variable:
                patch.setenv(variable, "http://127.0.0.1:9")
            words = ("--store", store, "--layout", "local", "--log-dir", tmp_path)
            options = ("--store-option", option) if option else ()
            unlisted = tieredctl("estimate", "cost", *words, *options)
            priced = tieredctl("estimate", "cost", *words, *options, "--price", "1", "-o", "json")
        assert unlisted.exit_code == 2, store
        assert (priced.document()["summary"]["priceOf"], priced.document()["items"][0]["putsCost"]) == (None, None)


def test_without_options_wal_cost_gives_the_kips_own_figures_and_those_of_a_file_of_prices(
    tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "prices.yaml").write_text("perThousandPuts: 0.00113\nuploadPerGb: 0.0032\nfreeBytesPerRequest: 0\n")

    outcome = tieredctl("estimate", "wal-cost", "-o", "json")
    priced = tieredctl("estimate", "wal-cost", "--price-file", tmp_path / "prices.yaml", "-o", "json")

    summary = outcome.document()["summary"]
    lines = {row["line"]: row["after"] for row in priced.document()["items"]}
    assert outcome.exit_code == 0
    assert (summary["before"], summary["after"], summary["saving"]) == (2478, 1424, 0.4253)
    assert (lines["write requests"], lines["upload"], lines["instance"]) == (292.9, 257.96, 650.88)
    heading = tieredctl("estimate", "wal-cost").out.splitlines()[0]
    assert heading.split() == ["LINE", "BEFORE", "AFTER", "COUNTED"]
