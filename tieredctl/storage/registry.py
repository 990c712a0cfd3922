"""`--store URL` and its `--store-option`s as an object store."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.ports.bucket_settings import BucketSettings
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.ports.store_kinds import ClientLibrary, StoreKind, store_kind
from tieredctl.storage.tracing import traced_store


def open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store that a URL names, read-only.

    Raises TieredctlError for a URL or an option that no store understands, for a client library that is not installed,
    and for a folder that does not exist. A missing bucket shows at the first request.
    """
    return ReadOnlyStore(_opened(url, options, to_change=False))


def open_writable_store(url: str, options: Mapping[str, str]) -> WritableObjectStore:
    """The store that a URL names, writable. Raises TieredctlError as `open_store` does.

    A server that is not the cloud's own is tried out on objects made for the purpose and removed again: its
    `capabilities` are what it was seen to do, since some servers accept a condition and ignore it.
    """
    return _opened(url, options, to_change=True)


def open_settings(url: str, options: Mapping[str, str]) -> BucketSettings:
    """What asks for the settings of a store's bucket. Raises TieredctlError as `open_store` does, and `store-incapable`
    for a store that has none."""
    kind, (_, _, rest) = store_kind(url), url.partition(":")
    if kind.settings is None:
        message = f"A {kind.scheme}: store has no settings to check."
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message, hint="Give the URL of a bucket.")
    _demand_usable(kind, options)
    return kind.settings(kind.open(rest, options, frozenset()))


def is_proven(url: str, options: Mapping[str, str]) -> bool:
    """Whether requests go to the cloud itself, or to this host, and not to a compatible server, as options, environment
    or profile may say. Makes no request; False where the store cannot be opened."""
    kind, (_, _, rest) = store_kind(url), url.partition(":")
    with suppress(TieredctlError):
        return kind.is_proven(kind.open(rest, options, frozenset()))
    return False


def load_client_library(url: str) -> None:
    """Loads what will open this store, for who opens several in threads. What is not installed is reported then."""
    with suppress(TieredctlError, ImportError):
        library = store_kind(url).library
        if library is not None:
            import_module(library.module)


def _opened(url: str, options: Mapping[str, str], to_change: bool) -> WritableObjectStore:
    kind, (_, _, rest) = store_kind(url), url.partition(":")
    _demand_usable(kind, options)
    store = kind.open(rest, options, kind.capabilities)
    if to_change and not kind.is_proven(store):
        from tieredctl.storage.trial import capabilities_seen

        plain = kind.open(rest, options, frozenset())
        proven = capabilities_seen(_asked_again(kind, store), _asked_again(kind, plain))
        store = kind.open(rest, options, proven)
    return _asked_again(kind, store)


def _asked_again(kind: StoreKind, store: WritableObjectStore) -> WritableObjectStore:
    """The store, whose requests are shown where somebody looks, and retried where they may get no answer."""
    if not kind.is_remote:
        return traced_store(store)
    from tieredctl.storage.retrying import RetryingStore

    return RetryingStore(traced_store(store))


def _demand_usable(kind: StoreKind, options: Mapping[str, str]) -> None:
    for name in options:
        if name not in kind.options:
            hint = f"It has {', '.join(kind.options)}." if kind.options else "It has none."
            raise TieredctlError(ErrorCode.USAGE, f"A {kind.scheme}: store has no option {name!r}.", hint=hint)
    if kind.library is not None:
        _demand_installed(kind, kind.library)


def _demand_installed(kind: StoreKind, library: ClientLibrary) -> None:
    try:
        module_spec = importlib.util.find_spec(library.module)
    except ModuleNotFoundError:
        module_spec = None
    if module_spec is not None:
        return
    message = f"The {kind.scheme}: store needs {library.package}."
    if library.extra is not None:
        raise missing_extra(message, library.extra)
    raise TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=f"Install {library.package} beside tieredctl.")
