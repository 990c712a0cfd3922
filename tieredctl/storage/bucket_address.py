"""`//bucket/prefix`: which bucket a URL names, and how keys relative to its prefix are written in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tieredctl.errors import TieredctlError
from tieredctl.storage.protocol import StoredObject

LONGEST_NAME_BYTES = 1_024
"""What S3 and Google Cloud Storage allow."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket, and the folder in it that is the store's root: empty, or ending in `/`.

    In full, as the server knows it, a key is called a name here.
    """

    scheme: str
    bucket: str
    root: str

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.root}".removesuffix("/")

    def name(self, key: str) -> str | None:
        """The object's name; None for a key that no object can have."""
        name = self.root + key
        return name if key and encodable(name) and len(name.encode()) <= LONGEST_NAME_BYTES else None

    def start(self, start_after: str) -> str | None:
        """The name that a server is to start behind; None for the first. `listed` sees to the rest."""
        return self.root + start_after if start_after and encodable(start_after) else None

    def key(self, name: str) -> str:
        return name.removeprefix(self.root)

    def listed(self, objects: Iterable[StoredObject], prefix: str, start_after: str) -> Iterator[StoredObject]:
        """Of what a server lists, what was asked for: some servers list more.

        The marker of the root's own folder is no object. Raises TieredctlError `unreadable` where the keys don't
        rise, since then none could be said to be missing.
        """
        if not encodable(prefix):
            return
        previous = b""
        beyond = start_after.encode("utf-8", "surrogatepass")
        for stored in objects:
            at = stored.key.encode("utf-8", "surrogatepass")
            if at < previous:
                raise TieredctlError("unreadable", f"{self.url} lists {stored.key!r} out of order.")
            previous = at
            if at > beyond and stored.key.startswith(prefix):
                yield stored


def demand_no_credentials(url: str) -> None:
    """Raises TieredctlError `no-store` for a store's URL that may hold a user and a password, and repeats nothing of
    it."""
    scheme, _, rest = url.partition(":")
    if scheme == "file" and (not rest.startswith("//") or rest.startswith("///")):
        return
    bucket = rest.removeprefix("//").partition("/")[0]
    names_a_bucket = rest.startswith("//") and _BUCKET.fullmatch(bucket)
    if not names_a_bucket and ("@" in url or (scheme in ("s3", "gs") and ":" in rest)):
        hint = "Name the bucket alone; log in as you would for the cloud's own command line."
        raise TieredctlError("no-store", "The store's URL has credentials in it, or something like them.", hint=hint)


def bucket_address(scheme: str, rest: str) -> BucketAddress:
    """What follows the scheme and its colon, understood. Raises TieredctlError `no-store`."""
    demand_no_credentials(f"{scheme}:{rest}")
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not _BUCKET.fullmatch(bucket) or not encodable(prefix):
        hint = f"Write it as {scheme}://BUCKET or {scheme}://BUCKET/PREFIX."
        raise TieredctlError("no-store", f"{scheme + ':' + rest!r} names no bucket.", hint=hint)
    return BucketAddress(scheme, bucket, prefix.removesuffix("/") + "/" if prefix.strip("/") else "")


def encodable(text: str) -> bool:
    """Whether a server can be sent this text at all: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
