"""What stores of buckets do alike: keys below a root, objects read in ranges, each range of the version seen first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import ClassVar, Generic, Protocol, Self, TypeVar
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.byte_ranges import other_bytes
from tieredctl.storage.refusals import key_impossible, object_missing

RANGE_BYTES = 8 << 20
"""How much one request reads, unless a larger piece is wanted: with less, waiting would outweigh reading."""


class Connection(Protocol):
    """The settings of a connection."""

    def another(self) -> Self: ...


_Connection = TypeVar("_Connection", bound=Connection)


@dataclass(frozen=True, slots=True)
class BucketStore(ABC, Generic[_Connection]):
    """The objects below a prefix of a bucket.

    Makes each request once: `tieredctl.storage.retrying` retries.
    """

    parallel_reads: ClassVar[int] = 8

    address: BucketAddress
    connection: _Connection

    @property
    def url(self) -> str:
        return self.address.url

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return self.address.listed(self._listing(prefix, start_after), prefix, start_after)

    @abstractmethod
    def head(self, key: str) -> StoredObject | None: ...

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            # No range says "nothing", but the object must be there.
            self._existing(key)
            return b""
        data = self._read(key, start, end)
        if end is not None and len(data) > end - start:
            raise other_bytes(self.url, key)
        return data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        stored = self._existing(key)
        span = max(RANGE_BYTES // chunk_size, 1) * chunk_size
        for position in range(start, stored.size, span):
            end = min(position + span, stored.size)
            data = self._read(key, position, end, stored.version)
            if len(data) != end - position:
                message = f"{self.url} answers with {len(data)} of {end - position} bytes of {key!r}."
                raise TieredctlError(ErrorCode.STORE_UNREACHABLE, message)
            for offset in range(0, len(data), chunk_size):
                yield data[offset : offset + chunk_size]

    def reconnected(self) -> Self:
        return replace(self, connection=self.connection.another())

    @abstractmethod
    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        """What the server lists, which may be more than was requested."""

    @abstractmethod
    def _read(self, key: str, start: int, end: int | None, version: str | None = None) -> bytes:
        """A range of at least one byte, as far as the object has it. Raises TieredctlError; if a `version` is given,
        `unreadable` for an object that now has another."""

    def _existing(self, key: str) -> StoredObject:
        stored = self.head(key)
        if stored is None:
            raise object_missing(self.url, key)
        return stored

    def _name(self, key: str) -> str | None:
        """The object's name; None for a key that no object can have."""
        return self.address.name(key)

    def _writable_name(self, key: str) -> str:
        name = self._name(key)
        if name is None:
            raise key_impossible(self.url, key)
        return name


def date_ms(headers: Mapping[str, str]) -> int | None:
    """The header `Date` (RFC 9110, 6.6.1), in ms since the epoch; None where there is none, or it is not one."""
    text = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        return int(parsedate_to_datetime(text).timestamp() * 1_000)
    except (OverflowError, ValueError):
        return None


_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

MOST_REQUESTS_AT_ONCE = 16


def concurrently(request: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
    """The answers, in the order of the items. The first error is raised once the requests that began have ended."""
    if len(items) <= 1:
        return [request(item) for item in items]
    with ThreadPoolExecutor(min(MOST_REQUESTS_AT_ONCE, len(items))) as threads:
        try:
            return list(threads.map(request, items))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def endpoint_option(text: str | None) -> str | None:
    """The endpoint without a trailing slash. Raises TieredctlError `usage`, which repeats no password."""
    if text is None:
        return None
    hint = "Write it as http://HOST:PORT or https://HOST."
    try:
        parts = urlsplit(text)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        raise TieredctlError(ErrorCode.USAGE, "The store option endpoint is not a URL.", hint=hint) from None
    if "@" in text:
        raise TieredctlError(
            ErrorCode.USAGE, "The store option endpoint may not contain a user or password.", hint=hint
        )
    if wrong or parts.query or parts.fragment:
        raise TieredctlError(
            ErrorCode.USAGE, f"The store option endpoint is {text!r}, which is not a server's URL.", hint=hint
        )
    return text.rstrip("/")
