"""KIP-630, "Amount of Data Replicated"."""

from __future__ import annotations

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
