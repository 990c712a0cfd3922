"""The kinds of stores that are installed: each is one value behind an entry point of the group `tieredctl.stores`.

An entry point's name is the scheme of its stores' URLs. A kind is loaded without what opens its stores.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_package
from tieredctl.plugins import PluginKind
from tieredctl.ports.bucket_settings import BucketSettings
from tieredctl.ports.object_store import Capability, WritableObjectStore

STORES = PluginKind("store", "tieredctl.stores", ErrorCode.NO_STORE)

_CONTAINER = re.compile(r"([a-z0-9][a-z0-9-]{1,62})@([a-z0-9]{3,24})((?:\.[a-z0-9-]+)*)\.dfs\.([a-z0-9.-]+)")
_PORT = re.compile(r":[0-9]{1,5}$")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")


_PACKAGES = dict.fromkeys(("hdfs", "webhdfs", "swebhdfs"), "tieredctl-hdfs")
"""Those of tieredctl's own packages that bring a store, by its scheme."""


class Address(StrEnum):
    """What follows the scheme of a store's URL and its colon."""

    BUCKET = "bucket"
    """`//BUCKET` or `//BUCKET/PREFIX`."""
    CONTAINER = "container"
    """`//CONTAINER@ACCOUNT.dfs.core.windows.net`, and maybe `/PREFIX`: Azure's name for a bucket, and whose it is."""
    SERVER = "server"
    """`//HOST` or `//HOST:PORT`, and maybe `/FOLDER`."""
    FOLDER = "folder"
    """A folder of this host: `DIR`, or `//` and its absolute path."""
    NONE = "none"
    """Nothing: such a store is empty whenever it is opened."""


Opener = Callable[[str, Mapping[str, str], frozenset[Capability]], WritableObjectStore]
"""(what follows the scheme and its colon, options, the capabilities to rely on) -> the store.

It has these capabilities, makes each request once, and makes none to be opened. Raises TieredctlError `no-store` for an
address and `usage` for an option's value that it cannot use.
"""


class ClientLibrary(NamedTuple):
    """What a kind of store needs to be installed."""

    module: str
    """What Python imports."""
    package: str
    """What it is called where packages come from."""
    extra: str | None = None
    """The extra of tieredctl's that brings it; None where the store's own package does."""
    loggers: tuple[str, ...] = ()
    """Those whose messages hold neither credentials nor bytes of objects: --debug shows them."""


@dataclass(frozen=True, slots=True)
class StoreKind:
    """One kind of store."""

    scheme: str
    form: str
    """How its URLs are written, for help and errors: `s3://BUCKET/PREFIX`."""
    address: Address
    open: Opener
    capabilities: frozenset[Capability]
    """The most that a store of this kind can do."""
    options: tuple[str, ...] = ()
    """The names of its `--store-option`s."""
    keeps_versions: bool = False
    """Whether a deleted object may stay as a version."""
    is_remote: bool = False
    """Whether its requests may get no answer: then they are retried."""
    is_proven: Callable[[Any], bool] = lambda _: False
    """Whether this store is known to honour every condition that it takes. Any other is tried before it is changed, on
    objects made for the purpose, and relied on for what it was seen to do."""
    library: ClientLibrary | None = None
    settings: Callable[[Any], BucketSettings] | None = None
    """What asks for the settings of a store's bucket, of a store that `open` gave; None where there are none to ask
    for."""

    @property
    def begins(self) -> str:
        """What every URL of its stores begins with: `s3://`."""
        return re.split("[A-Z]", self.form, maxsplit=1)[0]


def store_kind(url: str) -> StoreKind:
    """The kind of store that a URL names, by its scheme alone; opens nothing.

    Raises TieredctlError `no-store` where there is none, and where the URL may hold credentials; `missing-extra` where
    the kind's package cannot be loaded.
    """
    demand_no_credentials(url)
    kind = _named(url)
    if kind is None:
        STORES.demand_installed()
        scheme = url.partition(":")[0]
        if scheme in _PACKAGES:
            raise missing_package(f"The store {scheme}:", _PACKAGES[scheme])
        forms = ", ".join(sorted(kind.form for kind in store_kinds()))
        raise TieredctlError(
            ErrorCode.NO_STORE, f"{url!r} is not a store that tieredctl can open; it can open {forms}."
        )
    return kind


def store_kinds() -> Iterator[StoreKind]:
    """The installed kinds of stores, but for what cannot be loaded."""
    for scheme in STORES.names():
        with suppress(TieredctlError):
            yield _installed(scheme)


def kind_elsewhere(text: str) -> StoreKind | None:
    """The kind of store in which a path or URL names an object or a folder; None for a path, and for the URL of one."""
    kind = _named(text)
    if kind is None or kind.scheme == "file" or kind.address is Address.NONE:
        return None
    return kind if text.startswith(kind.begins) else None


def from_everywhere(url: str) -> str:
    """The store's URL that means the same wherever it is opened: that of a folder has an absolute path. Any other text
    stays."""
    kind = _named(url)
    rest = url.partition(":")[2]
    if kind is None or kind.address is not Address.FOLDER or rest.startswith("/"):
        return url
    return f"{kind.scheme}:{os.path.abspath(rest)}"


def demand_no_credentials(url: str) -> None:
    """Raises TieredctlError `no-store`, without repeating any of it, for a store's URL that may hold a user and a
    password."""
    kind = _named(url)
    _, _, rest = url.partition(":")
    address = None if kind is None else kind.address
    if address is Address.FOLDER and (not rest.startswith("//") or rest.startswith("///")):
        return
    bucket = rest.removeprefix("//").partition("/")[0]
    if address is Address.SERVER:
        bucket = _PORT.sub("", bucket)
    is_name = is_bucket_name(bucket) or (address is Address.CONTAINER and container_parts(bucket) is not None)
    names_a_bucket = rest.startswith("//") and is_name
    if not names_a_bucket and ("@" in url or (address is Address.BUCKET and ":" in rest)):
        hint = "Name only the bucket; log in as you would for the cloud's own command line."
        raise TieredctlError(
            ErrorCode.NO_STORE, "The store's URL contains credentials, or something like them.", hint=hint
        )


def is_bucket_name(text: str) -> bool:
    """Whether a bucket of S3 or of Google Cloud Storage may have this name."""
    return _BUCKET.fullmatch(text) is not None


def container_parts(text: str) -> tuple[str, str, str] | None:
    """The container, the account and its blob service's domain in `CONTAINER@ACCOUNT.dfs.core.windows.net`; None for
    any other text."""
    found = _CONTAINER.fullmatch(text)
    return None if found is None else (found[1], found[2], f"{found[3]}.blob.{found[4]}".removeprefix("."))


def folder_of(scheme: str, rest: str) -> str:
    """The absolute path of the folder that follows the scheme and its colon. Raises TieredctlError `no-store`."""
    if not rest:
        raise TieredctlError(ErrorCode.NO_STORE, f"'{scheme}:' does not name a folder.")
    if rest.startswith("//") and not rest.startswith("///"):
        message = f"'{scheme}:{rest}' names a host: a folder of another host must be mounted here."
        raise TieredctlError(ErrorCode.NO_STORE, message, hint=f"Write it as {scheme}:DIR.")
    return os.path.abspath(rest)


def _named(url: str) -> StoreKind | None:
    scheme, colon, _ = url.partition(":")
    return _installed(scheme) if colon and scheme in STORES.names() else None


def _installed(scheme: str) -> StoreKind:
    kind = STORES.load(scheme)
    if not isinstance(kind, StoreKind):
        raise TieredctlError(ErrorCode.MISSING_EXTRA, f"What is installed as the store {scheme!r} is not a StoreKind.")
    return kind
