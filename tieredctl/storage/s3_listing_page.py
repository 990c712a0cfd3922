"""A page of a listing, read from the XML of S3's ListObjectsV2.

botocore looks each field of each object up in a model, which takes longer than all the rest of a listing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus
from xml.etree import ElementTree

LISTED = "Listed"
"""Where in an answer the objects are: (name, bytes, time in ms, ETag, storage class), with names as they are."""

_ROOT = "ListBucketResult"
_IS_TRUE = {"true": True, "false": False}


def read_listing_page(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Handles botocore's event `before-parse.s3.ListObjectsV2`: leaves it nothing to parse.

    An answer that is not a page of a listing stays as it is, for botocore to handle.
    """
    if response_dict["status_code"] != 200:
        return
    try:
        page = ElementTree.fromstring(response_dict["body"])
        if _plain(page.tag) == _ROOT:
            customized_response_dict.update(_page(page))
            response_dict["body"] = b""
    except (ElementTree.ParseError, KeyError, ValueError, OverflowError):
        return


ANSWERED_WITH = "AnsweredWith"
"""Where in the answer about a bucket's setting the name of its document is."""
_LISTINGS = re.compile(
    rb"\A\s*(?:<\?[^>]*\?>)?\s*<(?:\w+:)?(ListBucketResult|ListAllMyBucketsResult|ListVersionsResult)\b"
)


def note_root(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Handles botocore's event `before-parse.s3`: notes an answer that is a listing. A server that does not know a
    question about the bucket answers it so, which would look like a setting that is not made."""
    body = response_dict["body"]
    if response_dict["status_code"] == 200 and isinstance(body, bytes) and (root := _LISTINGS.match(body[:400])):
        customized_response_dict[ANSWERED_WITH] = root.group(1).decode()


def _page(page: ElementTree.Element) -> dict[str, Any]:
    objects: list[dict[str, str]] = []
    fields_of_page: dict[str, str] = {}
    for element in page:
        name = _plain(element.tag)
        if name == "Contents":
            objects.append({_plain(field.tag): field.text or "" for field in element})
        else:
            fields_of_page[name] = element.text or ""
    is_encoded = fields_of_page.get("EncodingType") == "url"
    answer: dict[str, Any] = {LISTED: [_object(fields, is_encoded) for fields in objects]}
    if "IsTruncated" in fields_of_page:
        answer["IsTruncated"] = _IS_TRUE[fields_of_page["IsTruncated"].strip().lower()]
    if "NextContinuationToken" in fields_of_page:
        answer["NextContinuationToken"] = fields_of_page["NextContinuationToken"]
    return answer


def _object(fields: dict[str, str], is_encoded: bool) -> tuple[str, int, int, str, str]:
    name = fields["Key"]
    if is_encoded and ("%" in name or "+" in name):
        name = unquote_plus(name)
    modified = datetime.fromisoformat(fields["LastModified"])
    modified = modified if modified.tzinfo else modified.replace(tzinfo=UTC)
    storage_class = fields.get("StorageClass") or "STANDARD"
    return name, int(fields["Size"]), whole_seconds_ms(modified), fields["ETag"], storage_class


def whole_seconds_ms(time: datetime) -> int:
    """A time in ms, cut to seconds as HeadObject's is: a listing should give the same."""
    return int(time.timestamp()) * 1_000


def _plain(tag: str) -> str:
    """An element's name without its namespace, which some servers leave out."""
    return tag.rpartition("}")[2]
