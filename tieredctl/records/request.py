"""Which records are asked for, and what becomes of those that cannot be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.local_log import LeaderEpochs
from tieredctl.model.quantities import byte_count, time_ms

GREATEST_OFFSET = (1 << 63) - 1
EARLIEST, LATEST = "earliest", "latest"
_LARGEST_BATCH = (1 << 31) - 1
_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)


class Isolation(StrEnum):
    """A consumer's `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class OnDamage(StrEnum):
    """What becomes of records that cannot be read."""

    FAIL = "fail"
    """Reading ends with an error that names the place."""
    SKIP = "skip"
    """They are left out, with a finding."""
    ROW = "row"
    """They are left out, with a finding, and a row says why."""


class Moment(NamedTuple):
    """The first record with this timestamp (ms) or a later one."""

    timestamp_ms: int


RecordPlace = int | Moment | None
"""An offset, a time, or None for the beginning or the end of what is in remote storage."""


def record_place(option: str, text: str) -> RecordPlace:
    """An offset, a time, `earliest` or `latest`. Raises TieredctlError `usage`, which names the option, for what is no
    place."""
    if text in (EARLIEST, LATEST):
        return 0 if text == EARLIEST else GREATEST_OFFSET + 1
    if _OFFSET.fullmatch(text) and int(text) <= GREATEST_OFFSET:
        return int(text)
    try:
        return Moment(time_ms(text))
    except TieredctlError:
        hint = "Write an offset, a time such as 2026-11-21T10:30:00Z, earliest or latest."
        raise TieredctlError(ErrorCode.USAGE, f"{option} {text!r} is not a place.", hint=hint) from None


def most_unfolded(option: str, text: str | None) -> int | None:
    """To how many bytes a batch may unfold, as `RecordRequest` has it. Raises TieredctlError `usage`, which names the
    option, for more than a record of Kafka's can have, and for nothing."""
    if text is None:
        return None
    size = byte_count(text)
    if not 1 <= size <= _LARGEST_BATCH:
        raise TieredctlError(ErrorCode.USAGE, f"{option} {text!r} is not from 1 to {_LARGEST_BATCH} bytes.")
    return size


class KnownLine(NamedTuple):
    """What a leader, or a replica's disk, says of a partition: its leader epochs, and the first offset that consumers
    may read, None where that is not known."""

    leader_epochs: LeaderEpochs
    log_start_offset: int | None


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """The records from one place up to, not including, another."""

    start: RecordPlace = None
    end: RecordPlace = None
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    on_damage: OnDamage = OnDamage.FAIL
    columns: tuple[str, ...] | None = None
    """The names of the columns that are made, of `RECORD_SCHEMA`; None for all."""
    bytes_in_flight: int | None = None
    """How much of a log is asked for ahead, as `LogBytes` has it, in pieces that get smaller with it; None for the
    limit, and pieces that are quickest."""
    most_unfolded: int | None = None
    """To how many bytes a compressed batch may unfold and be read; None for `compression.most_unfolded`."""


ALL_RECORDS = RecordRequest()
