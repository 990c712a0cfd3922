"""`//bucket/prefix`: which bucket a URL names, and how keys relative to its prefix are written in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import StoredObject
from tieredctl.ports.store_kinds import container_parts, is_bucket_name

LONGEST_NAME_BYTES = 1_024
"""What S3 and Google Cloud Storage allow."""

_MOST_EMPTY_PAGES = 1_000
"""A server may skip a million deleted objects, and return an empty page for each thousand."""
_LARGEST_NUMBER = (1 << 63) - 1
_Page = TypeVar("_Page")


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket, and the folder in it that is the store's root: empty, or ending in `/`.

    A key in full, as the server knows it, is called a name here.
    """

    scheme: str
    bucket: str
    root: str

    @property
    def url(self) -> str:
        whole = f"{self.scheme}://{self.bucket}/{self.root}"
        # The last slash is implied: a folder without a name has one more.
        return whole if self.root.endswith("//") else whole.removesuffix("/")

    def name(self, key: str) -> str | None:
        """The object's name; None for a key that no object can have."""
        name = self.root + key
        return name if key and encodable(name) and len(name.encode()) <= LONGEST_NAME_BYTES else None

    def start(self, start_after: str) -> str | None:
        """The name after which a server should start; None to start with the first. `listed` filters the rest."""
        return self.root + start_after if start_after and encodable(start_after) else None

    def key(self, name: str) -> str:
        return name.removeprefix(self.root)

    def pages_that_end(self, pages: Iterable[_Page], is_empty: Callable[[_Page], bool]) -> Iterator[_Page]:
        """The pages of a listing. Raises TieredctlError `unreadable` for a server that returns empty pages without
        end."""
        empty = 0
        for page in pages:
            empty = empty + 1 if is_empty(page) else 0
            if empty > _MOST_EMPTY_PAGES:
                raise TieredctlError(
                    ErrorCode.UNREADABLE, f"{self.url} answers with {empty} empty pages of a listing in a row."
                )
            yield page

    def listed(self, objects: Iterable[StoredObject], prefix: str, start_after: str) -> Iterator[StoredObject]:
        """The requested ones of a server's objects: some servers list more.

        The marker of the root's own folder is not an object. Raises TieredctlError `unreadable` where the keys don't
        ascend, since then no object could be called missing.
        """
        if not encodable(prefix):
            return
        previous: bytes | None = None
        beyond = start_after.encode("utf-8", "surrogatepass")
        for stored in objects:
            at = stored.key.encode("utf-8", "surrogatepass")
            if previous is not None and at <= previous:
                raise TieredctlError(ErrorCode.UNREADABLE, f"{self.url} lists {stored.key!r} out of order, or twice.")
            if not 0 <= stored.size <= _LARGEST_NUMBER or abs(stored.last_modified_ms) > _LARGEST_NUMBER:
                raise TieredctlError(
                    ErrorCode.UNREADABLE, f"{self.url} lists {stored.key!r} with an impossible size or time."
                )
            previous = at
            if at > beyond and stored.key.startswith(prefix):
                yield stored


def bucket_address(scheme: str, rest: str) -> BucketAddress:
    """The address that follows the scheme and its colon. Raises TieredctlError `no-store`."""
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not is_bucket_name(bucket) or not encodable(prefix):
        hint = f"Write it as {scheme}://BUCKET or {scheme}://BUCKET/PREFIX."
        raise TieredctlError(ErrorCode.NO_STORE, f"{scheme + ':' + rest!r} does not name a bucket.", hint=hint)
    return BucketAddress(scheme, bucket, prefix.removesuffix("/") + "/" if prefix.strip("/") else "")


def container_address(scheme: str, rest: str) -> tuple[BucketAddress, str, str]:
    """The address that follows the scheme and its colon, the account that it names, and the domain of that account's
    blob service. Raises TieredctlError `no-store`."""
    container, slash, prefix = rest.removeprefix("//").partition("/")
    parts = container_parts(container)
    if not rest.startswith("//") or parts is None:
        hint = f"Write it as {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX."
        raise TieredctlError(ErrorCode.NO_STORE, f"{scheme + ':' + rest!r} does not name a container.", hint=hint)
    address = bucket_address(scheme, f"//{parts[0]}{slash}{prefix}")
    return replace(address, bucket=container), parts[1], parts[2]


def encodable(text: str) -> bool:
    """Whether a server can be sent this text at all: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
