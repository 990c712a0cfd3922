"""Turns what was typed into values: ids, paths, times, durations, NAME=VALUE pairs, TOPIC:PARTITION."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import inf, nan
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName, kraft_snapshot_name, parse_kraft_snapshot_name
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import FINDING_KINDS
from tieredctl.model.ids import UUID_CHARACTERS, uuid_bytes
from tieredctl.model.quantities import time_ms
from tieredctl.model.tolerance import Ignored
from tieredctl.process import steady_time

# Of more digits nothing that is meant here has need, and Python refuses to read a number of thousands.
_TOPIC_PARTITION = re.compile(r"(?P<topic>.+)(?P<separator>[:-])(?P<partition>[0-9]{1,10})", re.DOTALL)
_PARTITION = re.compile(r"[0-9]{1,10}")
_OFFSET = re.compile(r"[0-9]{1,19}")
_SNAPSHOT = re.compile(r"([0-9]{1,20})-([0-9]{1,10})", re.ASCII)
_SERVER = re.compile(r"([\w.%-]+|\[[0-9A-Fa-f:.%\w]+\]):([0-9]{1,5})", re.ASCII)
GREATEST_INT32, GREATEST_INT64 = (1 << 31) - 1, (1 << 63) - 1


def kafka_id(text: str) -> str:
    """A topic's or a segment's id."""
    try:
        uuid_bytes(text)
    except ValueError:
        hint = f"An id has {UUID_CHARACTERS} characters, such as Ex-aw3fEQIi3do0H9Y7cKQ."
        if len(text) == UUID_CHARACTERS:
            hint = "An id has letters, digits, - and _, and ends with A, Q, g or w: a character is mistyped."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a Kafka id.", hint=hint) from None
    return text


def only_id(ids: Sequence[str] | None) -> str | None:
    """The one topic that a record can be of; None where none is named."""
    several = [*dict.fromkeys(ids or ())]
    if len(several) > 1:
        message = f"One record is of one topic; --topic-id names {len(several)}: {', '.join(several)}."
        raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message, hint="Give the id of the topic that you mean.")
    return several[0] if several else None


def given_path(text: str) -> Path:
    """A path; an empty one, which a shell makes of a variable that is not set, would mean the current folder."""
    if not text:
        raise TieredctlError(ErrorCode.USAGE, "An empty text is not a path.", hint="Is a shell variable not set?")
    return Path(text)


def file_or_folder(text: str) -> Path:
    """Where to write: a file, or a folder that exists. A slash at the end means a folder."""
    path = given_path(text)
    if text.endswith("/") and not path.is_dir():
        message = f"The folder {text} does not exist." if not path.exists() else f"{text} is not a folder."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Create the folder first, or name a file.")
    return path


def bootstrap_servers(text: str) -> str:
    """HOST:PORT, or several with commas between them."""
    for server in text.split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or not 1 <= int(match[2]) < 1 << 16:
            hint = "For example broker-1:9092,broker-2:9092."
            raise TieredctlError(ErrorCode.USAGE, f"{server!r} is not HOST:PORT.", hint=hint)
    return text


def snapshot_name(text: str) -> KraftSnapshotName:
    """OFFSET-EPOCH, with leading zeros or without, or the name of a snapshot's file."""
    match = _SNAPSHOT.fullmatch(text.removesuffix(".checkpoint"))
    name = match and parse_kraft_snapshot_name(kraft_snapshot_name(int(match[1]), int(match[2])))
    if not name or not name.end_offset:
        hint = "For example 47-1, or 00000000000000000047-0000000001: the end offset, then the epoch."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} does not name a snapshot.", hint=hint)
    return name


def severity(text: str) -> Severity:
    """How grave a finding is."""
    try:
        return Severity[text.upper()]
    except KeyError:
        hint = f"Severities are {', '.join(one.label for one in Severity)}."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a severity.", hint=hint) from None


def ignored_finding(text: str) -> Ignored:
    """CODE or CODE:SUBJECT."""
    code, colon, subject = text.partition(":")
    try:
        return Ignored(FINDING_KINDS[code].code, subject if colon else None)  # type: ignore[index]
    except KeyError:
        raise unknown_code("finding", code, FINDING_KINDS, " `-o json` shows each finding's code.") from None


def unknown_code(of_what: str, code: str, codes: Iterable[str], advice: str = "") -> TieredctlError:
    """Why a code is refused, with the nearest that is known."""
    from difflib import get_close_matches

    (nearest,) = get_close_matches(code, [*codes], 1, 0.0)
    message = f"No {of_what} has the code {code!r}."
    return TieredctlError(ErrorCode.USAGE, message, hint=f"Did you mean {nearest}?{advice}")


def percentage(text: str) -> float:
    """A number from 0 to 100."""
    number = _number(text)
    if not 0 <= number <= 100:
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a share.", hint="Write it as a number from 0 to 100.")
    return number


def objects_a_second(text: str) -> float:
    """How many objects a second."""
    number = _number(text)
    if not 0 < number < inf:
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a rate.", hint="Write it as a number above 0.")
    return number


def _number(text: str) -> float:
    """The number; where the text is none, NaN, for which no comparison holds."""
    try:
        return float(text)
    except ValueError:
        return nan


def now_ms(text: str | None) -> int:
    """`--now`, or the clock without it."""
    return time_ms(text) if text is not None else clock_ms()


def clock_ms() -> int:
    """The time of this run, in ms since the epoch."""
    return steady_time.now_ms()


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE options as a dictionary."""
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise TieredctlError(ErrorCode.USAGE, f"{option} {text!r} is not NAME=VALUE.")
        values[name] = value
    return values


def topic_id_partition(text: str) -> tuple[str, int | None]:
    """TOPIC-ID:PARTITION, or TOPIC-ID alone."""
    topic_id, colon, partition = text.partition(":")
    if colon and (_PARTITION.fullmatch(partition) is None or int(partition) > GREATEST_INT32):
        hint = "For example Ex-aw3fEQIi3do0H9Y7cKQ:3, or the id alone for all of its partitions."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not TOPIC-ID:PARTITION.", hint=hint)
    return kafka_id(topic_id), int(partition) if colon else None


def topic_partition(text: str) -> tuple[str, int]:
    """TOPIC:PARTITION; also TOPIC-PARTITION as Kafka prints it, where there is no colon."""
    match = _TOPIC_PARTITION.fullmatch(text)
    if match is None or (":" in text and match["separator"] != ":") or int(match["partition"]) > GREATEST_INT32:
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not TOPIC:PARTITION.", hint="For example orders:3.")
    return match["topic"], int(match["partition"])


def topic_partition_offset(text: str) -> tuple[str, int, int | None]:
    """TOPIC:PARTITION@OFFSET; the offset is None where there is no @."""
    place, at, offset = text.rpartition("@") if "@" in text else (text, "", "")
    if at and (_OFFSET.fullmatch(offset) is None or int(offset) > GREATEST_INT64):
        raise TieredctlError(
            ErrorCode.USAGE, f"{text!r} is not TOPIC:PARTITION@OFFSET.", hint="For example orders:3@1200."
        )
    return *topic_partition(place), int(offset) if at else None
