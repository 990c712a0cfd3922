"""`--store URL` and its `--store-option`s as an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability, ObjectStore, WritableObjectStore
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.storage.bucket_address import demand_no_credentials
from tieredctl.storage.tracing import traced_store

Opener = Callable[[str, Mapping[str, str], bool], WritableObjectStore]
"""(what follows the scheme and its colon, options, whether it will be changed) -> the store."""


def open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store that a URL names, read-only.

    Raises TieredctlError for a URL or an option that no store understands, and for a folder that does not exist. A
    missing bucket shows at the first request.
    """
    return ReadOnlyStore(_opened(url, options, to_change=False))


def open_writable_store(url: str, options: Mapping[str, str]) -> WritableObjectStore:
    """The store that a URL names, writable. Raises TieredctlError as `open_store` does.

    A server that is not the cloud's own is tried out on objects made for the purpose and removed again: its
    `capabilities` are what it was seen to do, since some servers accept a condition and ignore it.
    """
    return _opened(url, options, to_change=True)


def demand_known_store(url: str) -> None:
    """Raises TieredctlError for a URL that no store understands by its scheme alone; opens nothing."""
    demand_no_credentials(url)
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _OPENERS:
        known = ", ".join(form for form, _ in _OPENERS.values())
        raise TieredctlError(
            ErrorCode.NO_STORE, f"{url!r} is not a store that tieredctl can open; it can open {known}."
        )


def load_client_library(url: str) -> None:
    """Loads what will open this store, for who opens several in threads. What is not installed is reported then."""
    library = _LIBRARIES.get(url.partition(":")[0])
    if library is not None:
        with suppress(ImportError):
            import_module(library)


def _opened(url: str, options: Mapping[str, str], to_change: bool) -> WritableObjectStore:
    demand_known_store(url)
    scheme, _, rest = url.partition(":")
    _, opener = _OPENERS[scheme]
    return opener(rest, options, to_change)


def _open_folder(folder: str, options: Mapping[str, str], _to_change: bool) -> WritableObjectStore:
    from tieredctl.storage.file import FileStore

    _demand_known_options("file", options, ())
    if not folder:
        raise TieredctlError(ErrorCode.NO_STORE, "'file:' does not name a folder.")
    if folder.startswith("//") and not folder.startswith("///"):
        message = f"'file:{folder}' names a host: a folder of another host must be mounted here."
        raise TieredctlError(ErrorCode.NO_STORE, message, hint="Write it as file:DIR.")
    return traced_store(FileStore(os.path.abspath(folder)))


def _open_memory(rest: str, options: Mapping[str, str], _to_change: bool) -> WritableObjectStore:
    from tieredctl.storage.memory import MemoryStore

    _demand_known_options("memory", options, ())
    if rest:
        raise TieredctlError(ErrorCode.NO_STORE, f"A store in memory has no name, but 'memory:{rest}' gives it one.")
    return traced_store(MemoryStore())


def _open_s3(rest: str, options: Mapping[str, str], to_change: bool) -> WritableObjectStore:
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.retrying import RetryingStore
    from tieredctl.storage.s3 import S3Store
    from tieredctl.storage.s3_connection import S3_OPTIONS, s3_connection
    from tieredctl.storage.trial import capabilities_seen

    _demand_known_options("s3", options, S3_OPTIONS)
    store = S3Store(bucket_address("s3", rest), s3_connection(options))
    if to_change and not store.connection.is_aws:
        plain = replace(store, capabilities=frozenset[Capability]())
        store = replace(
            store,
            capabilities=capabilities_seen(RetryingStore(traced_store(store)), RetryingStore(traced_store(plain))),
        )
    return RetryingStore(traced_store(store))


def _open_gcs(rest: str, options: Mapping[str, str], to_change: bool) -> WritableObjectStore:
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.gcs import GcsStore
    from tieredctl.storage.gcs_connection import GCS_OPTIONS, gcs_connection
    from tieredctl.storage.retrying import RetryingStore
    from tieredctl.storage.trial import capabilities_seen

    _demand_known_options("gs", options, GCS_OPTIONS)
    store = GcsStore(bucket_address("gs", rest), gcs_connection(options))
    if to_change and not store.connection.is_google:
        plain = replace(store, capabilities=frozenset[Capability]())
        store = replace(
            store,
            capabilities=capabilities_seen(RetryingStore(traced_store(store)), RetryingStore(traced_store(plain))),
        )
    return RetryingStore(traced_store(store))


def _demand_known_options(scheme: str, options: Mapping[str, str], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            hint = f"It has {', '.join(known)}." if known else "It has none."
            raise TieredctlError(ErrorCode.USAGE, f"A {scheme}: store has no option {name!r}.", hint=hint)


_OPENERS: dict[str, tuple[str, Opener]] = {
    "file": ("file:DIR", _open_folder),
    "memory": ("memory:", _open_memory),
    "s3": ("s3://BUCKET/PREFIX", _open_s3),
    "gs": ("gs://BUCKET/PREFIX", _open_gcs),
}
"""By scheme: how to write it, and what opens it."""
_LIBRARIES = {"s3": "boto3", "gs": "google.cloud.storage"}
