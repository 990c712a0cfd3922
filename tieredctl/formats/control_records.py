"""Control records: the end of a transaction, and KRaft's leader changes, snapshot borders, version and voters.

Sources: Kafka's ControlRecordType, EndTransactionMarker, and for KRaft's its message definitions (`message_json.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.message_json import message
from tieredctl.formats.record_batches import ControlType, Record, read_control_type
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.wire import Values, read_whole, reader, writer

CONTROL_KEY = Struct("ControlRecordKey", (Field("version", Primitive.INT16), Field("type", Primitive.INT16)))
CONTROL_KEY_VERSION = 0

END_TRANSACTION_MARKER = Struct(
    "EndTransactionMarker", (Field("Version", Primitive.INT16), Field("CoordinatorEpoch", Primitive.INT32))
)
CONTROL_MESSAGES: Mapping[int, str] = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}
"""The messages of KRaft's own control records, by type."""
_KNOWN_TYPES = frozenset(ControlType)

_KEY_LAYOUT = struct.Struct(CONTROL_KEY.fixed_format)
_VERSION_LAYOUT = struct.Struct(">h")


class ControlRecord(NamedTuple):
    """A control record's type, a `ControlType` or a number that later releases added, and what it says.

    `fields` has Kafka's names, `Version` among them; it is None for a type or a version that is not known.
    """

    type: int
    fields: Values | None
    payload: bytes | None = None
    """The value of a record whose type or version is not known."""

    @property
    def type_name(self) -> str:
        """Kafka's name of the type, or `UNKNOWN`."""
        return ControlType(self.type).name if self.type in _KNOWN_TYPES else "UNKNOWN"

    @property
    def schema(self) -> Struct | None:
        """What `fields` follows."""
        return None if self.fields is None else control_schema(ControlType(self.type), self.fields["Version"])


def decode_control_record(record: Record) -> ControlRecord:
    """The control record in a record of a control batch. Raises DecodeError, positions counted in the value.

    A later version of a transaction marker is read as the highest known where that fits, as Kafka does. One of KRaft's
    own records is not: who votes, for one, decides what is committed.
    """
    kind = read_control_type(record)
    if kind not in _KNOWN_TYPES:
        return ControlRecord(kind, None, record.value or b"")
    value = record.value or b""
    if len(value) < _VERSION_LAYOUT.size:
        raise DecodeError(f"control record {ControlType(kind).name} has no version", 0)
    version = _VERSION_LAYOUT.unpack_from(value)[0]
    if version < 0:
        raise DecodeError(f"control record {ControlType(kind).name} has version {version}", 0)
    if version > latest_version(ControlType(kind)) and kind in CONTROL_MESSAGES:
        return ControlRecord(kind, None, value)
    schema = control_schema(ControlType(kind), version)
    if version <= latest_version(ControlType(kind)):
        return ControlRecord(kind, read_whole(schema, value))
    fields, _ = reader(schema)(value, 0, len(value))
    return ControlRecord(kind, fields)


def encode_control_record(kind: ControlType, fields: Mapping[str, Any], *, offset: int, timestamp: int) -> Record:
    """The record that carries a control record; `fields` as `decode_control_record` gives them."""
    value = writer(control_schema(kind, fields["Version"]))(fields)
    return Record(offset, timestamp, _KEY_LAYOUT.pack(CONTROL_KEY_VERSION, kind), value)


def latest_version(kind: ControlType) -> int:
    """The highest version that is known here."""
    return message(CONTROL_MESSAGES[kind]).latest_version if kind in CONTROL_MESSAGES else 0


def control_schema(kind: ControlType, version: int) -> Struct:
    """The value of a control record in the version that is its first field; of a marker in the latest known."""
    if kind not in CONTROL_MESSAGES:
        return END_TRANSACTION_MARKER
    return message(CONTROL_MESSAGES[kind]).schema(version)
