"""What a cloud charges for WAL tiering (KIP-1176), and for the replication that it replaces."""

from __future__ import annotations

from typing import NamedTuple


class WalPrices(NamedTuple):
    """In US dollars. A GB has 10^9 bytes, and a month 30 days, as in the KIP's estimate."""

    instance_per_hour: float
    disk_per_gb_month: float
    cross_zone_per_gb: float
    """The price of each direction: a GB that is sent to another zone costs this twice."""
    object_storage_per_gb_month: float
    per_thousand_puts: float
    per_thousand_gets: float
    upload_per_gb: float
    retrieval_per_gb: float
    free_bytes_per_request: float
    """How much of each request is uploaded or retrieved without a charge."""
