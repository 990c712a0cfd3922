"""KIP-1176, "Appendix: Performance Data": its tables, as far as bytes and arithmetic decide them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tieredctl.formats.record_batches import HEADER_BYTES

MIB = 1 << 20


class Latency(NamedTuple):
    """End to End Latency: 100 records of 1.6 KB."""

    byte_total: int
    batch_size_avg: int
    records_per_request_avg: int
    bytes_consumed_total: int
    fetch_size_avg: float
    consumed_records_per_request_avg: float


class Throughput(NamedTuple):
    """Producer/Consumer Perf Test Scripts: 100,000 records of 2,000 bytes."""

    produced_per_second: float
    produced_mib_per_second: float
    consumed_per_second: float
    consumed_mib_per_second: float
    rebalance_ms: int
    fetch_ms: int
    fetch_mib_per_second: float
    fetched_per_second: float


LATENCIES = [
    pytest.param(Latency(155_095, 31_019, 20, 154_790, 38_697.5, 25), id="perf_local_disk"),
    pytest.param(Latency(157_395, 31_479, 20, 157_090, 52_363.33333, 33.33333333), id="perf_cloud_native"),
]
THROUGHPUTS = [
    pytest.param(Throughput(20_542.32, 39.18, 23_364.49, 44.56, 3_635, 645, 295.71, 155_038.76), id="perf_local_disk"),
    pytest.param(
        Throughput(20_772.75, 39.62, 21_404.11, 40.83, 3_961, 711, 268.26, 140_646.98), id="perf_cloud_native"
    ),
]


@pytest.mark.parametrize("measured", LATENCIES)
def test_end_to_end_latency_consumers_count_what_producers_sent_without_batch_headers(measured: Latency) -> None:
    batches = 100 // measured.records_per_request_avg

    assert measured.byte_total == batches * measured.batch_size_avg
    assert measured.byte_total - measured.bytes_consumed_total == batches * HEADER_BYTES


@pytest.mark.parametrize("measured", LATENCIES)
def test_end_to_end_latency_fetches_that_had_records_were_four_and_three(measured: Latency) -> None:
    fetches = measured.bytes_consumed_total / measured.fetch_size_avg

    assert fetches == pytest.approx(round(fetches))
    assert 100 / measured.consumed_records_per_request_avg == pytest.approx(fetches)


@pytest.mark.parametrize("measured", THROUGHPUTS)
def test_perf_test_scripts_rates_and_times_are_of_100_000_records_of_2_000_bytes(measured: Throughput) -> None:
    consume_s, fetch_s = (measured.rebalance_ms + measured.fetch_ms) / 1_000, measured.fetch_ms / 1_000

    assert measured.produced_per_second * 2_000 / MIB == pytest.approx(measured.produced_mib_per_second, abs=0.01)
    assert 100_000 / consume_s == pytest.approx(measured.consumed_per_second, abs=0.01)
    assert 190.73 / consume_s == pytest.approx(measured.consumed_mib_per_second, abs=0.01)
    assert 190.73 / fetch_s == pytest.approx(measured.fetch_mib_per_second, abs=0.01)
    assert 100_000 / fetch_s == pytest.approx(measured.fetched_per_second, abs=0.01)


def test_analysis_consumers_are_slower_and_producers_are_not() -> None:
    local, cloud = (one.values[0] for one in THROUGHPUTS)
    assert isinstance(local, Throughput)
    assert isinstance(cloud, Throughput)

    assert cloud.produced_per_second > local.produced_per_second
    assert cloud.consumed_per_second / local.consumed_per_second == pytest.approx(0.92, abs=0.005)
