"""KIP-1176, "Appendix: Cost Estimate for a typical workload": its table, line by line, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.config.wal_prices import kip_1176_prices, wal_prices
from tieredctl_proposals.ops.wal_cost import KIP_1176_WORKLOAD, WalCostRow, wal_cost

from tieredctl.errors import TieredctlError

KIP_TABLE = {
    "Storage/Instance Cost": (866, 776),
    "Transfer Cost": (1612, 648),
    "Total Cost": (2478, 1424),
}


def rows(**workload: int) -> dict[str, WalCostRow]:
    found = wal_cost(replace(KIP_1176_WORKLOAD, **workload), kip_1176_prices())
    return {row.line: row for row in found.rows}


def test_each_sum_of_the_comparison_table_is_the_kips_to_the_dollar_and_the_result_is_43_percent() -> None:
    found, summary = rows(), wal_cost(KIP_1176_WORKLOAD, kip_1176_prices()).summary

    assert {line: (round(found[line].before), round(found[line].after)) for line in KIP_TABLE} == KIP_TABLE
    assert (summary["before"], summary["after"]) == (2478, 1424)
    assert f"{summary['saving']:.0%}" == "43%"


def test_the_workload_example_is_100_uploads_a_second_of_about_112_gb_an_hour() -> None:
    summary = wal_cost(KIP_1176_WORKLOAD, kip_1176_prices()).summary

    assert (summary["uploadsPerSecond"], round(summary["gbPerHour"])) == (100, 112)
    assert 300_000 <= summary["objectBytes"] <= 500_000  # "a log segment in the size of 300-500KB every 10-20ms"


def test_at_the_30_mb_a_second_that_it_states_the_table_is_another() -> None:
    stated = rows(inbound_per_second=30_000_000)

    assert (stated["Total Cost"].before, stated["Total Cost"].after) == (2413.44, 1419.84)


def test_a_sum_is_that_of_its_lines() -> None:
    found = rows()

    for sum_line, group in (("Storage/Instance Cost", "storage"), ("Transfer Cost", "transfer")):
        for side in ("before", "after"):
            parts = [
                getattr(row, side)
                for row in found.values()
                if row.group == group and row.counted and row.line != sum_line
            ]
            assert sum(parts) == pytest.approx(getattr(found[sum_line], side), abs=0.02)


def test_what_the_kip_leaves_out_is_shown_and_not_counted() -> None:
    left_out = {name: row for name, row in rows().items() if not row.counted}

    assert left_out["read requests"].after == 51.84
    assert left_out["replication across zones, other direction"].before == 1612.22
    assert left_out["Total Cost with every line"].before == 4090.29


def test_an_object_that_is_full_sooner_is_uploaded_sooner() -> None:
    by_time, by_size = rows(), rows(upload_bytes=155_500)

    assert by_size["write requests"].after == 2 * by_time["write requests"].after


def test_what_a_request_has_above_its_free_bytes_is_charged() -> None:
    slower = rows(upload_interval_ms=20)  # 622 kB each

    assert slower["upload"].after == pytest.approx(50 * 2_592_000 * (622_000 - 524_288) / 1e9 * 0.008, abs=0.01)


@given(st.integers(0, 10**15), st.integers(1, 10**13), st.integers(1, 10**15) | st.none(), st.integers(0, 99))
def test_no_workload_breaks_the_arithmetic(inbound: int, interval: int, size: int | None, followers: int) -> None:
    workload = replace(
        KIP_1176_WORKLOAD,
        inbound_per_second=inbound,
        upload_interval_ms=interval,
        upload_bytes=size,
        followers_before=followers,
        followers_after=followers,
    )

    found = wal_cost(workload, kip_1176_prices())

    assert all(getattr(row, side) >= 0 for row in found.rows for side in ("before", "after"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "not a mapping"),
        ("", "not a mapping"),
        ("{", "not valid YAML"),
        ("instance: 1", "there is no price 'instance'"),
        ("1: 1", "there is no price 1"),
        ("instancePerHour: -1", "not a price"),
        ("instancePerHour: .nan", "not a price"),
        ("instancePerHour: .inf", "not a price"),
        ("instancePerHour: true", "not a price"),
        ("instancePerHour: cheap", "not a price"),
        ("instancePerHour: " + "9" * 400, "not a price"),
    ],
)
def test_a_price_file_that_cannot_be_used_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)

    with pytest.raises(TieredctlError, match=message):
        wal_prices(file)
