"""What is broken in the captured bucket, and how it is verified then."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.inkless import Inkless

Change = Callable[[Inkless], None]
"""Breaks something."""

FOLDER = "kafka-prod/diskless/"
TWO_PARTITIONS = f"{FOLDER}j8sPwINeRtKiPiZlT01R0w"
"""File 2: payments-0 at offset 0, two record batches of idempotent producers, and orders-0 at offset 42."""
PRUNED, KEPT_PARTLY = f"{FOLDER}gQj1GrCqRnKjVRnEfy1SLg", f"{FOLDER}4n3RX4WnSiefm6pycS9bxQ"
"""Both with 2586 bytes, of the same partitions; file 10 has the batches 25 and 26."""
ONE_BATCH = f"{FOLDER}b66arlMtQRSjOhgrVZ6pUg"
"""File 15: orders-1 at offsets 7 to 11, batch 33."""

BATCHES_GONE = (
    """UPDATE logs SET log_start_offset = high_watermark, byte_size = 0 WHERE (topic_id, partition) IN
        (SELECT topic_id, partition FROM batches WHERE file_id = 15)""",
    """DELETE FROM batches WHERE (topic_id, partition) IN
        (SELECT topic_id, partition FROM logs WHERE log_start_offset = high_watermark)""",
)
"""Of ONE_BATCH: without a mark, and so that no offset is missing."""


def flip(key: str, position: int) -> Change:
    def change(inkless: Inkless) -> None:
        path = inkless.bucket / key
        data = bytearray(path.read_bytes())
        data[position] ^= 0x01
        path.write_bytes(data)

    return change


def cut(key: str, size: int) -> Change:
    return lambda inkless: os.truncate(inkless.bucket / key, size)


def put(inkless: Inkless, key: str, age_seconds: float) -> None:
    """An object that was uploaded so long before the database's time."""
    path = inkless.bucket / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0123456789")
    then = inkless.capture.now_ms / 1000 - age_seconds
    os.utime(path, (then, then))


def verified(inkless: Inkless, tieredctl: Tieredctl, level: str = "full") -> Outcome:
    return tieredctl("diskless", "verify", "--level", level, *inkless.places, "-o", "json")
