"""Keys that are to be told of once each: an object that is told of twice would be counted and planned twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tieredctl.formats.windows import Ints


class RepeatedKeys:
    """How many keys come again, in whatever order they come; by hashes of 64 bits, so that each takes 8 bytes."""

    def __init__(self) -> None:
        self._hashes: list[Ints] = []

    def add(self, keys: pa.BinaryArray) -> None:
        """Takes more of them."""
        self._hashes.append(np.fromiter(map(hash, keys.to_pylist()), np.int64, len(keys)))

    def count(self) -> int:
        """How many of all keys came before."""
        hashes = np.sort(np.concatenate([np.zeros(0, np.int64), *self._hashes]))
        return int((hashes[1:] == hashes[:-1]).sum())
