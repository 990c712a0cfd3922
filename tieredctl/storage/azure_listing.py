"""Listings of a container of Azure Blob Storage, in the order that stores promise."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain, groupby

from tieredctl.errors import ErrorCode
from tieredctl.ports.object_store import StoredObject
from tieredctl.process.progress import note_listed
from tieredctl.storage.azure_connection import Answer, AzureFailure
from tieredctl.storage.azure_listing_page import ListingPage, read_listing_page
from tieredctl.storage.bucket_address import BucketAddress

RequestContainer = Callable[[str, Mapping[str, str]], Answer]
"""(method, query) -> what the service answers about the container."""

_PAGE_BLOBS = 5_000
_NO_START = {"InvalidQueryParameterValue", "UnsupportedQueryParameter"}
_OUT_OF_ORDER = re.compile("[\ue000-\U0010ffff]")
"""Characters that come in another order by their UTF-16 units, which Azure compares, than by code points."""


def blobs_below(
    request: RequestContainer, address: BucketAddress, prefix: str, start: str | None
) -> Iterator[StoredObject]:
    """The blobs whose names begin so, by ascending name, from `start` on if the service can; it may list others
    besides. Their keys are whole names; folders are left out."""
    asked = {"prefix": prefix, "include": "metadata"}
    found = _from(request, address, asked, start and _OUT_OF_ORDER.split(start, maxsplit=1)[0])
    first = next(found, None)
    if first is not None and first.is_hierarchical:
        # Its order is that of folders: `a/1` comes before `a-b`.
        found.close()
        yield from _walked(request, address, prefix, start or "")
        return
    pages_of_all = chain([] if first is None else [first], found)
    yield from _by_code_points(blob.stored for page in pages_of_all for blob in page.blobs if not blob.is_folder)


def _by_code_points(listed: Iterable[StoredObject]) -> Iterator[StoredObject]:
    """What lies between two names that are in the wrong order has such a character, too: each run of them is sorted."""
    for may_differ, run in groupby(listed, lambda stored: _OUT_OF_ORDER.search(stored.key) is not None):
        if may_differ:
            yield from sorted(run, key=lambda stored: stored.key.encode())
        else:
            yield from run


def _from(
    request: RequestContainer, address: BucketAddress, asked: Mapping[str, str], start: str | None
) -> Generator[ListingPage]:
    if not start:
        yield from pages(request, address, asked)
        return
    begun = False
    try:
        for page in pages(request, address, {**asked, "startFrom": start}):
            begun = True
            yield page
    except AzureFailure as failure:
        if begun or failure.reason not in _NO_START:
            raise
        yield from pages(request, address, asked)


def pages(request: RequestContainer, address: BucketAddress, asked: Mapping[str, str]) -> Iterator[ListingPage]:
    """The pages of a listing. Raises AzureFailure."""

    def requested() -> Iterator[ListingPage]:
        query = {"comp": "list", "maxresults": str(_PAGE_BLOBS), **asked}
        while True:
            answer = request("GET", query)
            try:
                page = read_listing_page(answer.body)
            except (OverflowError, ValueError) as error:
                message = f"{address.url} does not answer with a listing: {str(error)[:100]}."
                raise AzureFailure(ErrorCode.UNREADABLE, message) from None
            note_listed(len(page.blobs))
            yield page
            if page.next_marker is None:
                return
            # It says where to go on, also in a listing that began at a name.
            query = {"comp": "list", "maxresults": str(_PAGE_BLOBS), **asked, "marker": page.next_marker}

    return address.pages_that_end(requested(), lambda page: not page.blobs and not page.prefixes)


def _walked(request: RequestContainer, address: BucketAddress, prefix: str, start: str) -> Iterator[StoredObject]:
    """The blobs of a hierarchical namespace, folder by folder. Holds the names of one folder at each level."""
    blobs: dict[str, StoredObject | None] = {}
    for page in pages(request, address, {"prefix": prefix, "include": "metadata", "delimiter": "/"}):
        blobs |= dict.fromkeys(page.prefixes)
        blobs |= {blob.stored.key: blob.stored for blob in page.blobs if not blob.is_folder}
    for name, stored in sorted(blobs.items(), key=lambda found: found[0].encode("utf-8", "surrogatepass")):
        if stored is not None:
            yield stored
        elif name >= start or start.startswith(name):
            yield from _walked(request, address, name, start)


def first_page_headers(request: RequestContainer) -> Mapping[str, str]:
    """The headers of the shortest listing there is: all that whoever may list can always ask."""
    return request("GET", {"comp": "list", "maxresults": "1"}).headers
