"""An object read from its first byte to its last: the record batches in it, and what is not a sound one.

Objects have no header, footer or index: record batches lie in them back to back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.batch_columns import HEADER_DTYPE, AsColumns, HeaderColumns, joined_headers
from tieredctl.formats.diskless_objects import PRODUCED_BASE_OFFSET, PRODUCED_EPOCHS
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD, Attributes
from tieredctl.formats.windows import Flags, Ints


@dataclass(frozen=True, slots=True)
class WalkedObject:
    """Sound batches by position, in bytes; and the stretches between them that are not."""

    size: int
    positions: Ints
    headers: HeaderColumns
    damages: tuple[Damage, ...]

    @property
    def sizes(self) -> Ints:
        sizes: Ints = self.headers["batchLength"].astype(np.int64) + LOG_OVERHEAD
        return sizes

    @property
    def counts(self) -> Ints:
        """How many offsets each takes."""
        counts: Ints = self.headers["lastOffsetDelta"].astype(np.int64) + 1
        return counts

    @property
    def log_append_time(self) -> Flags:
        flags: Flags = (self.headers["attributes"].astype(np.int64) & Attributes.LOG_APPEND_TIME) != 0
        return flags

    @property
    def records(self) -> int:
        return int(self.headers["recordsCount"].sum(dtype=np.int64))


def walk(chunks: Iterable[bytes], size: int) -> WalkedObject:
    """The batches of an object of `size` bytes, given in pieces. Their CRCs are checked; base offset and leader epoch,
    which no CRC covers, must be those that brokers write."""
    positions: list[Ints] = []
    headers: list[HeaderColumns] = []
    damages: list[Damage] = []
    for part in scan_log(chunks, size, AsColumns(), PRODUCED_BASE_OFFSET):
        if isinstance(part, Damage):
            damages.append(part)
        else:
            positions.append(np.asarray(part.positions, np.int64) + part.file_position)
            headers.append(part.headers)
    if not positions:
        return WalkedObject(size, np.zeros(0, np.int64), np.zeros(0, HEADER_DTYPE), tuple(damages))
    walked = WalkedObject(size, np.concatenate(positions), joined_headers(headers), tuple(damages))
    return _without_altered(walked)


def _without_altered(walked: WalkedObject) -> WalkedObject:
    bases = walked.headers["baseOffset"].astype(np.int64)
    epochs = walked.headers["partitionLeaderEpoch"].astype(np.int64)
    altered = (bases != PRODUCED_BASE_OFFSET) | ~np.isin(epochs, PRODUCED_EPOCHS)
    if not altered.any():
        return walked
    damages = [*walked.damages]
    for row in np.flatnonzero(altered).tolist():
        position = int(walked.positions[row])
        reason = f"base offset {bases[row]} and leader epoch {epochs[row]} are not what brokers write"
        damages.append(Damage(position, position + int(walked.sizes[row]), reason, None))
    damages.sort(key=lambda damage: damage.position)
    return WalkedObject(walked.size, walked.positions[~altered], walked.headers[~altered], tuple(damages))
