"""A page of a listing of a container, read from the XML of Azure's List Blobs."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from tieredctl.ports.object_store import StoredObject

_FOLDER_MARK = "hdi_isfolder"
"""The metadata of a folder's own blob. See Azure Data Lake Storage, "Known issues with Azure Data Lake Storage"."""


class ListedBlob(NamedTuple):
    """A blob of a page, or one of its versions or snapshots. Its key is its whole name."""

    stored: StoredObject
    version_id: str | None
    is_current_version: bool
    snapshot: str | None
    is_folder: bool
    is_deleted: bool
    """Soft delete keeps it."""


class ListingPage(NamedTuple):
    """A page: its blobs, the names up to the next `/` where those were asked for, and where the next one begins."""

    blobs: list[ListedBlob]
    prefixes: list[str]
    next_marker: str | None
    is_hierarchical: bool
    """Whether a blob of it tells that its account has a hierarchical namespace."""


def read_listing_page(body: bytes) -> ListingPage:
    """Raises ValueError for what is not a page, and for a blob without a name, a size, a time or an ETag."""
    try:
        page = ElementTree.fromstring(body.removeprefix(b"\xef\xbb\xbf"))
    except ElementTree.ParseError:
        raise ValueError("the answer is not XML") from None
    listed = page.find("Blobs")
    if page.tag != "EnumerationResults" or listed is None:
        raise ValueError("the answer is not a listing")
    blobs, prefixes, is_hierarchical = [], [], False
    for element in listed:
        if element.tag == "BlobPrefix":
            prefixes.append(_name(element))
        elif element.tag == "Blob":
            properties = {one.tag: one.text or "" for one in element.find("Properties") or ()}
            is_hierarchical |= "ResourceType" in properties
            blobs.append(_blob(element, properties))
    return ListingPage(blobs, prefixes, page.findtext("NextMarker") or None, is_hierarchical)


def _blob(element: ElementTree.Element, properties: Mapping[str, str]) -> ListedBlob:
    try:
        size, modified = int(properties["Content-Length"]), properties["Last-Modified"]
        version, tier = properties["Etag"], properties.get("AccessTier")
    except KeyError as missing:
        raise ValueError(f"a blob has no {missing}") from None
    stored = StoredObject(_name(element), size, time_ms(modified), quoted(version), tier)
    return ListedBlob(
        stored,
        element.findtext("VersionId"),
        element.findtext("IsCurrentVersion") == "true",
        element.findtext("Snapshot"),
        properties.get("ResourceType") == "directory" or _is_marked(element.find("Metadata")),
        element.findtext("Deleted") == "true",
    )


def _is_marked(metadata: ElementTree.Element | None) -> bool:
    return metadata is not None and (metadata.findtext(_FOLDER_MARK) or "").lower() == "true"


def is_folder(headers: Mapping[str, str]) -> bool:
    """Whether the description of a blob is that of a folder of a hierarchical namespace, which is not an object."""
    is_marked = headers.get(f"x-ms-meta-{_FOLDER_MARK}", "").lower() == "true"
    return is_marked or headers.get("x-ms-resource-type") == "directory"


def _name(element: ElementTree.Element) -> str:
    name = element.find("Name")
    if name is None or not name.text:
        raise ValueError("a blob has no name")
    # What XML cannot hold is percent-encoded, and then said to be.
    return unquote(name.text) if name.get("Encoded") == "true" else name.text


@lru_cache(256)
def time_ms(text: str) -> int:
    """A time of HTTP, which has whole seconds, in ms since the epoch. Raises ValueError."""
    return int(parsedate_to_datetime(text).timestamp()) * 1_000


def quoted(etag: str) -> str:
    """An ETag as headers have it: listings leave the quotes out."""
    return etag if etag.startswith('"') else f'"{etag}"'
