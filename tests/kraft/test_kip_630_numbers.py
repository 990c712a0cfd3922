"""KIP-630, "Loading State and Frequency of Compaction" and "Amount of Data Replicated"."""

from __future__ import annotations

from tieredctl.kraft.read_rates import least_dirty_bytes, read_rates
from tieredctl.kraft.replicated_data import amount_of_data_replicated

MEBIBYTE, KIBIBYTE = 1 << 20, 1 << 10


def test_amount_of_data_replicated() -> None:
    """100K topics of 10 partitions, replication factor 3, 100 brokers."""
    amount = amount_of_data_replicated(100_000, 10, 3, 100)

    assert amount.partitions == 30_000
    assert round(amount.changes_in_log / MEBIBYTE, 2) == 1.14
    assert round(amount.in_snapshot / MEBIBYTE, 2) == 1.14
    # "113.29 MB" is cut off, not rounded: 113.297
    assert int(amount.changes_sent / MEBIBYTE * 100) / 100 == 113.29
    assert round(amount.changes_sent / MEBIBYTE, 2) == 113.30
    assert amount.event_in_log == 8
    assert round(amount.event_sent / KIBIBYTE, 2) == 0.77


def test_amount_of_data_replicated_calls_binary_units_mb_and_kb() -> None:
    amount = amount_of_data_replicated(100_000, 10, 3, 100)

    assert (amount.changes_in_log, amount.changes_sent, amount.event_sent) == (1_200_000, 118_800_000, 792)


def test_loading_state_and_frequency_of_compaction() -> None:
    """100 MB of state that changes by 1 MB/s, compacted every 50 MB: in 50 seconds."""
    rates = read_rates(state_bytes=100, change_per_second=1, dirty_bytes=50)

    assert rates == (1, 1, 3)
    assert (rates.with_snapshots, rates.with_compaction) == (1, 5)


def test_loading_state_takes_half_of_the_state_for_half_of_the_log() -> None:
    """A dirty ratio of 50 % is reached at 100 MB, not at 50 MB: Kafka counts it of the whole log."""
    dirty = least_dirty_bytes(state_bytes=100, clean_ratio=0.5)

    assert dirty == 100
    assert read_rates(100, 1, dirty).old_segments == 2
