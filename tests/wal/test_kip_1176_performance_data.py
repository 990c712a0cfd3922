"""KIP-1176, "Appendix: Performance Data": what its tables derive from each other, and where they do not agree.

The figures are its authors' measurements: nothing here measures tieredctl.
"""

from __future__ import annotations

import pytest

LOCAL, CLOUD = "perf_local_disk", "perf_cloud_native"
MEBIBYTE = 1 << 20

CONSUMER_METRICS = {
    LOCAL: {"bytes": 154790, "fetch-size-avg": 38697.5, "fetch-size-max": 97514, "records-per-request-avg": 25},
    CLOUD: {
        "bytes": 157090,
        "fetch-size-avg": 52363.33333,
        "fetch-size-max": 157090,
        "records-per-request-avg": 33.33333333,
    },
}
LATENCIES_MS = {
    LOCAL: (523.6274, 528.1985, 1019.5718, 1020.3517, 1020.9279, 1020.9279, 1020.9279),
    CLOUD: (915.0023, 919.2508, 921.7726, 924.0798, 942.0901, 942.0901, 942.0901),
}
"""Min, p50, p75, p90, p99, p99.9, max."""
MEANS_MS = {LOCAL: 708.9731, CLOUD: 919.7159}
PRODUCED_RECORDS_A_SECOND = {LOCAL: 20_542.32, CLOUD: 20_772.75}
PRODUCED_MB_A_SECOND = {LOCAL: 39.18, CLOUD: 39.62}
CONSUMED = {
    LOCAL: {"rebalance": 3_635, "fetch": 645, "records/s": 23_364.49, "MB/s": 44.56, "fetch MB/s": 295.71},
    CLOUD: {"rebalance": 3_961, "fetch": 711, "records/s": 21_404.11, "MB/s": 40.83, "fetch MB/s": 268.26},
}
RECORDS, RECORD_BYTES = 100_000, 2_000
TOPICS = pytest.mark.parametrize("topic", [LOCAL, CLOUD])


@TOPICS
def test_end_to_end_latency_metrics_a_fetch_has_the_average_bytes_and_records(topic: str) -> None:
    metrics = CONSUMER_METRICS[topic]
    fetches = metrics["bytes"] / metrics["fetch-size-avg"]

    assert fetches == pytest.approx(round(fetches))
    assert 100 / metrics["records-per-request-avg"] == pytest.approx(fetches)


def test_end_to_end_latency_metrics_the_largest_fetch_of_cloud_native_would_have_been_the_only_one() -> None:
    """The slip: all bytes came in the largest of three fetches."""
    metrics = CONSUMER_METRICS[CLOUD]

    assert metrics["fetch-size-max"] == metrics["bytes"]
    assert metrics["bytes"] / metrics["fetch-size-avg"] == pytest.approx(3)


@TOPICS
def test_end_to_end_latency_statistics_rise(topic: str) -> None:
    latencies = LATENCIES_MS[topic]

    assert list(latencies) == sorted(latencies)
    assert latencies[0] < MEANS_MS[topic] < latencies[-1]


def test_analysis_the_mean_latency_is_not_comparable_but_30_percent_higher() -> None:
    assert MEANS_MS[CLOUD] / MEANS_MS[LOCAL] == pytest.approx(1.30, abs=0.005)


@TOPICS
def test_perf_test_scripts_producer_metrics(topic: str) -> None:
    produced = PRODUCED_RECORDS_A_SECOND[topic] * RECORD_BYTES / MEBIBYTE

    assert round(produced, 2) == PRODUCED_MB_A_SECOND[topic]


@TOPICS
def test_perf_test_scripts_consumer_metrics(topic: str) -> None:
    metrics, consumed = CONSUMED[topic], RECORDS * RECORD_BYTES / MEBIBYTE
    seconds = (metrics["rebalance"] + metrics["fetch"]) / 1000

    assert round(consumed, 2) == 190.73
    assert round(RECORDS / seconds, 2) == pytest.approx(metrics["records/s"], abs=0.01)
    assert round(consumed / seconds, 2) == pytest.approx(metrics["MB/s"], abs=0.01)
    assert round(consumed / metrics["fetch"] * 1000, 2) == pytest.approx(metrics["fetch MB/s"], abs=0.01)


def test_analysis_consumers_are_slightly_slower() -> None:
    assert CONSUMED[CLOUD]["records/s"] / CONSUMED[LOCAL]["records/s"] == pytest.approx(0.916, abs=0.001)
