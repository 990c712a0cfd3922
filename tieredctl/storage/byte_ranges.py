"""Answers to requests for a range of an object's bytes, held against what was asked for."""

from __future__ import annotations

import re
from http import HTTPStatus

from tieredctl.errors import ErrorCode, TieredctlError

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/")


def asked_range(
    body: bytes, start: int, end: int | None, *, status: int, content_range: str, url: str, key: str
) -> bytes:
    """The bytes from `start` to `end` (exclusive) by the body of an answer, which has all of the object's where a
    server knows of no ranges. Raises TieredctlError `store-unreachable` where it has others than it says, or than were
    asked for."""
    stated = _CONTENT_RANGE.match(content_range)
    if stated is not None:
        first = int(stated[1])
        last = max(int(stated[2]), first - 1)  # some servers write of nothing, beyond an object's end, as a range
        if (first, last) != (start, start + len(body) - 1):
            raise other_bytes(url, key)
    return body[start:end] if stated is None and status == HTTPStatus.OK else body


def other_bytes(url: str, key: str) -> TieredctlError:
    """The error of an answer that has other bytes than were asked for, which counts as none."""
    message = f"{url} answers with other bytes of {key!r} than were asked for."
    return TieredctlError(ErrorCode.STORE_UNREACHABLE, message)
