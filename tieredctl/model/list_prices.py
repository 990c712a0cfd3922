"""What the three clouds ask for their usual class, for whoever has configured no price."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.model.prices import StoragePrice

AS_OF = "2025"
"""The year that the prices are of: clouds change them, rarely."""


class ListPrice(NamedTuple):
    """A price, and what it is the price of."""

    price: StoragePrice
    of: str


_S3 = ListPrice(StoragePrice(0.023, "USD", 0.005, 0.0004), "S3 Standard in us-east-1, the first 50 TB")
_GOOGLE = ListPrice(StoragePrice(0.020, "USD", 0.005, 0.0004), "Google's Standard class in us-central1")
_AZURE = ListPrice(StoragePrice(0.0208, "USD", 0.0055, 0.00044), "Azure's hot tier, by Microsoft's sample prices")
_BY_SCHEME = {"s3": _S3, "gs": _GOOGLE, "az": _AZURE, "abfss": _AZURE}


def list_price(store_url: str) -> ListPrice | None:
    """The list price of the cloud that a store's URL is of, which a compatible server does not ask; None of any other
    store."""
    return _BY_SCHEME.get(store_url.partition(":")[0])
