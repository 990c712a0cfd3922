"""The configuration file: `$TIEREDCTL_CONFIG`, else `tieredctl/config.yaml` where the system keeps such files.

It belongs to its user: tieredctl reads it only.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.prices import StoragePrice

VARIABLE = "TIEREDCTL_CONFIG"
CONTEXTS, CURRENT_CONTEXT, _PRICES = "contexts", "currentContext", "prices"
prices_of_context: ContextVar[Sequence[object]] = ContextVar("prices_of_context", default=())
"""The price table of the context that a command runs with, whose prices go before those of the file."""
_LONGEST_FILE = 1 << 20
_GREATEST_PRICE = 1e12
"""Far above any, and far below where a sum of them would not be a number any more."""
_PRICE_FIELDS = {"store", "perGiBMonth", "currency"}
_REQUEST_PRICE_FIELDS = ("perThousandPuts", "perThousandGets")
_CLASS = "storageClass"


def price_hint(store_url: str) -> str:
    """How to give a store a price that it lacks."""
    entry = f"{{store: {json.dumps(store_url)}, perGiBMonth: 0.023, currency: USD}}"
    return f"Add it to `prices` in {configuration_path()}, such as {entry}."


def storage_price(store_url: str) -> StoragePrice | None:
    """What storing in a store costs, by the price table of the configuration; None where it has no price for it.

    Of several prices, the one whose `store` is the longest prefix of the URL applies, for each storage class
    separately. Raises TieredctlError `bad-config` for a file that cannot be used or was named but does not exist, and
    where classes have prices but the store has none, or one in another currency.
    """
    prices = [*demand_prices(settings().get(_PRICES, [])), *demand_prices(prices_of_context.get())]
    fitting = [price for price in prices if store_url.startswith(price.store)]
    chosen = {price.storage_class: price.price for price in sorted(fitting, key=lambda price: len(price.store))}
    usual = chosen.pop(None, None)
    for name, price in chosen.items():
        if usual is None or price.currency != usual.currency:
            raise bad(f"{store_url} needs a price without {_CLASS}, in the currency of that of {name}")
    if usual is None:
        return None
    return usual._replace(class_prices={str(name): price.per_gib_month for name, price in chosen.items()})


def demand_prices(entries: object) -> list[_Price]:
    """A price table. Raises TieredctlError `bad-config` for anything else."""
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
        raise bad(f"{_PRICES} is not a list")
    return [*map(_price, entries)]


class _Price(NamedTuple):
    """An entry of the table."""

    store: str
    storage_class: str | None
    price: StoragePrice


def _price(entry: object) -> _Price:
    if not isinstance(entry, Mapping) or set(entry) - {*_REQUEST_PRICE_FIELDS, _CLASS} != _PRICE_FIELDS:
        fields, optional = ", ".join(sorted(_PRICE_FIELDS)), ", ".join((*_REQUEST_PRICE_FIELDS, _CLASS))
        raise bad(f"each of {_PRICES} has {fields}, and may have {optional}")
    store, currency, storage_class = entry["store"], entry["currency"], entry.get(_CLASS)
    if not isinstance(store, str) or not isinstance(currency, str):
        raise bad("store and currency must be strings")
    if _CLASS in entry and (not isinstance(storage_class, str) or not storage_class):
        raise bad(f"{_CLASS} of {store} must be the name of a storage class, such as GLACIER")
    if _CLASS in entry and not set(entry).isdisjoint(_REQUEST_PRICE_FIELDS):
        raise bad(f"a price with {_CLASS} cannot have prices of requests")
    puts, gets = (_amount(entry, name) if name in entry else None for name in _REQUEST_PRICE_FIELDS)
    return _Price(store, storage_class, StoragePrice(_amount(entry, "perGiBMonth"), currency, puts, gets))


def _amount(entry: Mapping[str, object], name: str) -> float:
    amount = entry[name]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= _GREATEST_PRICE:
        raise bad(f"{name} of {entry['store']} is not a price")
    return float(amount)


def configuration_folder() -> Path:
    """Where the configuration file is, or would be."""
    return configuration_path().parent


def contexts_folder() -> Path:
    """Where tieredctl keeps contexts, a file each, whether there are any or not."""
    return configuration_folder() / "contexts.d"


def configuration_path() -> Path:
    """The configuration file, whether there is one or not."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder, "tieredctl", "config.yaml")


def settings() -> Mapping[str, Any]:
    """What the file says; nothing where there is no file. Raises TieredctlError `bad-config` for one that cannot be
    used, and for one that was named but does not exist, nor contexts beside it."""
    path = configuration_path()
    data = own_bytes(path)
    if data is None and os.environ.get(VARIABLE) and not contexts_folder().is_dir():
        raise bad("there is no such file")
    stated = {} if data is None else mapping_in(data, path)
    unknown = [name for name in stated if name not in (_PRICES, CONTEXTS, CURRENT_CONTEXT)]
    if unknown:
        raise bad(f"there is no setting {unknown[0]!r}")
    return stated


def own_bytes(path: Path) -> bytes | None:
    """A file; None where there is none. Raises TieredctlError `bad-config` for one that others may have written, or
    that cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            demand_own(path, os.fstat(descriptor))
            data = file.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise bad(f"it cannot be read: {error.strerror}", path=path) from None
    if len(data) > _LONGEST_FILE:
        raise bad("it is too long", path=path)
    return data


def demand_own(path: Path, status: os.stat_result, *, is_folder: bool = False) -> None:
    """Raises TieredctlError `bad-config` for a file, or a folder, of somebody else: whoever can write it chooses the
    cluster and the bucket that a command works on."""
    if stat.S_ISCHR(status.st_mode):  # /dev/null
        return
    if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(status.st_mode):
        raise bad(f"it is not a {'folder' if is_folder else 'file'}", path=path)
    if os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
        raise bad("it belongs to another user", path=path)
    if status.st_mode & stat.S_IWOTH:
        raise bad("everybody may write it", hint=f"Run `chmod o-w {path}`.", path=path)


def mapping_in(data: bytes, path: Path) -> Mapping[str, Any]:
    """What a file of these bytes says. Raises TieredctlError `bad-config`."""
    from tieredctl.config.strict_yaml import NotYaml

    try:
        parsed = _parsed(data)
    except NotYaml as error:
        raise bad(str(error), path=path) from None
    if parsed is None:
        return {}
    if not isinstance(parsed, Mapping):
        raise bad("it is not a mapping", path=path)
    return parsed


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> Any:
    from tieredctl.config.strict_yaml import parsed

    return parsed(data)


def bad(reason: str, *, hint: str | None = None, path: Path | None = None) -> TieredctlError:
    """The error for a file that cannot be used: the configuration file, if no other is named."""
    return TieredctlError(ErrorCode.BAD_CONFIG, f"{path or configuration_path()} cannot be used: {reason}.", hint=hint)
