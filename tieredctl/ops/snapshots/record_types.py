"""Which records of the metadata log are asked for, by the names of their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.control_records import CONTROL_MESSAGES
from tieredctl.formats.kraft_records import KraftRecordType


def wanted_types(names: Sequence[str]) -> Callable[[str], bool]:
    """Whether a type is one of those named, as dump-log prints it or without `_RECORD`, in any case; all without names.
    A type that is not known here is named by its number.

    Raises TieredctlError for a name that no type has.
    """
    if not names:
        return lambda _: True
    wanted = {_type_of(name) for name in names}
    return lambda name: name in wanted


def _type_of(name: str) -> str:
    known = {kind.kafka_name: kind.kafka_name for kind in KraftRecordType}
    known |= {kind.name: kind.kafka_name for kind in KraftRecordType}
    known |= {message.upper(): message for message in CONTROL_MESSAGES.values()}
    found = known.get(name.upper())
    if found is None and name.isdecimal() and name.isascii():
        kinds = {str(int(kind)): kind.kafka_name for kind in KraftRecordType}
        found = kinds.get(name, name)
    if found is None:
        hint = f"Types are {', '.join(sorted(set(known.values())))}, or a number."
        raise TieredctlError(ErrorCode.USAGE, f"{name!r} is not a type of records.", hint=hint)
    return found
