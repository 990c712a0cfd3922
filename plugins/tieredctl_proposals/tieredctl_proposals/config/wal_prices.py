"""Prices for `estimate wal-cost`: KIP-1176's, which come with tieredctl, and those of a user's file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_proposals.model.wal_prices import WalPrices

_LONGEST_FILE = 1 << 20
_FIELDS = {
    "instancePerHour": "instance_per_hour",
    "diskPerGbMonth": "disk_per_gb_month",
    "crossZonePerGb": "cross_zone_per_gb",
    "objectStoragePerGbMonth": "object_storage_per_gb_month",
    "perThousandPuts": "per_thousand_puts",
    "perThousandGets": "per_thousand_gets",
    "uploadPerGb": "upload_per_gb",
    "retrievalPerGb": "retrieval_per_gb",
    "freeBytesPerRequest": "free_bytes_per_request",
}


def kip_1176_prices() -> WalPrices:
    """The prices that give the KIP's own table."""
    data = files(__package__).joinpath("wal_prices.yaml").read_bytes()
    return WalPrices(**_amounts(data, "wal_prices.yaml"))


def wal_prices(file: Path) -> WalPrices:
    """The prices of a YAML file; what it does not name keeps the KIP's price.

    Raises TieredctlError `bad-config` for a file that cannot be used.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise _bad(str(file), f"it cannot be read: {error.strerror}") from None
    if len(data) > _LONGEST_FILE:
        raise _bad(str(file), "it is too long")
    return kip_1176_prices()._replace(**_amounts(data, str(file)))


def _amounts(data: bytes, name: str) -> dict[str, float]:
    from tieredctl.config.strict_yaml import NotYaml, parsed

    try:
        prices = parsed(data)
    except NotYaml as error:
        raise _bad(name, str(error)) from None
    if not isinstance(prices, Mapping):
        raise _bad(name, "it is not a mapping of names to prices")
    return {_field(name, key): _amount(name, key, amount) for key, amount in prices.items()}


def _field(name: str, key: object) -> str:
    field = _FIELDS.get(key) if isinstance(key, str) else None
    if field is None:
        raise _bad(name, f"there is no price {key!r}; there are {', '.join(_FIELDS)}")
    return field


def _amount(name: str, key: object, amount: object) -> float:
    # Far above any price, and far below where a sum of them would not be a number any more.
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= 1e12:
        raise _bad(name, f"{key} is not a price")
    return float(amount)


def _bad(name: str, reason: str) -> TieredctlError:
    return TieredctlError(ErrorCode.BAD_CONFIG, f"{name} cannot be used: {reason}.")
