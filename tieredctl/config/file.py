"""The configuration file: `$TIEREDCTL_CONFIG`, else `tieredctl/config.yaml` where the system keeps such files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.prices import StoragePrice

VARIABLE = "TIEREDCTL_CONFIG"
_LONGEST_FILE = 1 << 20
_PRICES = "prices"
_PRICE_FIELDS = {"store", "perGiBMonth", "currency"}
_REQUEST_PRICE_FIELDS = ("perThousandPuts", "perThousandGets")
_CLASS = "storageClass"


def storage_price(store_url: str) -> StoragePrice | None:
    """What storing in a store costs, by the price table of the configuration; None where it has no price for it.

    Of several prices, the one whose `store` is the longest prefix of the URL applies, for each storage class
    separately. Raises TieredctlError `bad-config` for a file that cannot be used or was named but does not exist, and
    where classes have prices but the store has none, or one in another currency.
    """
    prices = _settings().get(_PRICES, [])
    if not isinstance(prices, list):
        raise _bad(f"{_PRICES} is not a list")
    fitting = [price for price in map(_price, prices) if store_url.startswith(price.store)]
    chosen = {price.storage_class: price.price for price in sorted(fitting, key=lambda price: len(price.store))}
    usual = chosen.pop(None, None)
    for name, price in chosen.items():
        if usual is None or price.currency != usual.currency:
            raise _bad(f"{store_url} needs a price without {_CLASS}, in the currency of that of {name}")
    if usual is None:
        return None
    return usual._replace(class_prices={str(name): price.per_gib_month for name, price in chosen.items()})


class _Price(NamedTuple):
    """An entry of the table."""

    store: str
    storage_class: str | None
    price: StoragePrice


def _price(entry: object) -> _Price:
    if not isinstance(entry, Mapping) or set(entry) - {*_REQUEST_PRICE_FIELDS, _CLASS} != _PRICE_FIELDS:
        fields, optional = ", ".join(sorted(_PRICE_FIELDS)), ", ".join((*_REQUEST_PRICE_FIELDS, _CLASS))
        raise _bad(f"each of {_PRICES} has {fields}, and may have {optional}")
    store, currency, storage_class = entry["store"], entry["currency"], entry.get(_CLASS)
    if not isinstance(store, str) or not isinstance(currency, str):
        raise _bad("store and currency must be strings")
    if _CLASS in entry and (not isinstance(storage_class, str) or not storage_class):
        raise _bad(f"{_CLASS} of {store} must be the name of a storage class, such as GLACIER")
    if _CLASS in entry and not set(entry).isdisjoint(_REQUEST_PRICE_FIELDS):
        raise _bad(f"a price with {_CLASS} cannot have prices of requests")
    puts, gets = (_amount(entry, name) if name in entry else None for name in _REQUEST_PRICE_FIELDS)
    return _Price(store, storage_class, StoragePrice(_amount(entry, "perGiBMonth"), currency, puts, gets))


def _amount(entry: Mapping[str, object], name: str) -> float:
    amount = entry[name]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < float("inf"):
        raise _bad(f"{name} of {entry['store']} is not a price")
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
        raise _bad(f"it is not valid YAML: {str(error).splitlines()[0]}") from None
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise _bad("it is not a mapping")
    unknown = [name for name in settings if name != _PRICES]
    if unknown:
        raise _bad(f"there is no setting {unknown[0]!r}")
    return settings


def _bad(reason: str) -> TieredctlError:
    return TieredctlError(ErrorCode.BAD_CONFIG, f"{_path()} cannot be used: {reason}.")
