"""The configuration file: `$TIEREDCTL_CONFIG`, else `tieredctl/config.yaml` where the system keeps such files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tieredctl.errors import TieredctlError
from tieredctl.model.prices import StoragePrice

VARIABLE = "TIEREDCTL_CONFIG"
_LONGEST_FILE = 1 << 20
_PRICES = "prices"
_PRICE_FIELDS = {"store", "perGiBMonth", "currency"}
_REQUEST_PRICE_FIELDS = ("perThousandPuts", "perThousandGets")


def storage_price(store_url: str) -> StoragePrice | None:
    """What storing in a store costs, by the price table of the configuration; None where it does not say.

    Of several prices the one decides whose `store` is the longest beginning of the URL. Raises TieredctlError
    `bad-config` for a file that cannot be used, and where one was named that is not there.
    """
    prices = _settings().get(_PRICES, [])
    if not isinstance(prices, list):
        raise _bad(f"{_PRICES} is no list")
    fitting = [price for price in map(_price, prices) if store_url.startswith(price[0])]
    return max(fitting, key=lambda price: len(price[0]))[1] if fitting else None


def _price(entry: object) -> tuple[str, StoragePrice]:
    if not isinstance(entry, Mapping) or set(entry) - set(_REQUEST_PRICE_FIELDS) != _PRICE_FIELDS:
        fields = ", ".join(sorted(_PRICE_FIELDS))
        raise _bad(f"each of {_PRICES} has {fields}, and perhaps {' and '.join(_REQUEST_PRICE_FIELDS)}")
    store, currency = entry["store"], entry["currency"]
    if not isinstance(store, str) or not isinstance(currency, str):
        raise _bad("store and currency are texts")
    requests = (_amount(entry, name) if name in entry else None for name in _REQUEST_PRICE_FIELDS)
    return store, StoragePrice(_amount(entry, "perGiBMonth"), currency, *requests)


def _amount(entry: Mapping[str, object], name: str) -> float:
    amount = entry[name]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < float("inf"):
        raise _bad(f"{name} of {entry['store']} is no price")
    return float(amount)


def configuration_folder() -> Path:
    """Where the configuration file is, or would be."""
    return _path().parent


def _path() -> Path:
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder, "tieredctl", "config.yaml")


def _settings() -> Mapping[str, Any]:
    path = _path()
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        if os.environ.get(VARIABLE):
            raise _bad("there is no such file") from None
        return {}
    except OSError as error:
        raise _bad(f"it cannot be read: {error.strerror}") from None
    if len(data) > _LONGEST_FILE:
        raise _bad("it is too long")
    return _parsed(data)


def _parsed(data: bytes) -> Mapping[str, Any]:
    import yaml

    try:
        settings = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _bad(f"it is no YAML: {str(error).splitlines()[0]}") from None
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise _bad("it is no mapping")
    unknown = [name for name in settings if name != _PRICES]
    if unknown:
        raise _bad(f"there is no setting {unknown[0]!r}")
    return settings


def _bad(reason: str) -> TieredctlError:
    return TieredctlError("bad-config", f"{_path()} cannot be used: {reason}.")
