"""Many small requests at once, where a server has no single request for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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
