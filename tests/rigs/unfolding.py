"""How much memory reading takes at its peak."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bytes_at_peak() -> Iterator[Callable[[], int]]:
    """What is asked for within it, and not given back, at its highest: known once it has ended."""
    seen = list[int]()
    tracemalloc.start()
    try:
        yield lambda: seen[0]
        seen.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
