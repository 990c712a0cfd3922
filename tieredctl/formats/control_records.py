"""Control records: the end of a transaction, and KRaft's leader changes, snapshot borders, version and voters.

Sources: EndTransactionMarker, ControlRecordType, and LeaderChangeMessage.json, SnapshotHeaderRecord.json,
SnapshotFooterRecord.json, KRaftVersionRecord.json and VotersRecord.json of Kafka 4.x.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import ControlType, Record, read_control_type
from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct
from tieredctl.formats.wire import Values, read_whole, reader, writer

CONTROL_KEY = Struct("ControlRecordKey", (Field("version", Primitive.INT16), Field("type", Primitive.INT16)))
CONTROL_KEY_VERSION = 0

_VERSION = Field("Version", Primitive.INT16)
_END_TRANSACTION = Struct("EndTransactionMarker", (_VERSION, Field("CoordinatorEpoch", Primitive.INT32)))
_VOTER_FIELDS = (Field("VoterId", Primitive.INT32), Field("VoterDirectoryId", Primitive.UUID))
_VOTER = Struct("Voter", _VOTER_FIELDS, flexible=True)


def _leader_change(voter: Struct) -> Struct:
    voters = (Field("Voters", Array(voter)), Field("GrantingVoters", Array(voter)))
    return Struct("LeaderChangeMessage", (_VERSION, Field("LeaderId", Primitive.INT32), *voters), flexible=True)


_ENDPOINT = Struct(
    "Endpoint",
    (Field("Name", Length.STRING), Field("Host", Length.STRING), Field("Port", Primitive.UINT16)),
    flexible=True,
)
_KRAFT_VERSION_FEATURE = Struct(
    "KRaftVersionFeature",
    (Field("MinSupportedVersion", Primitive.INT16), Field("MaxSupportedVersion", Primitive.INT16)),
    flexible=True,
)
_VOTER_WITH_ENDPOINTS = Struct(
    "Voter",
    (
        *_VOTER_FIELDS,
        Field("Endpoints", Array(_ENDPOINT)),
        Field("KRaftVersionFeature", _KRAFT_VERSION_FEATURE),
    ),
    flexible=True,
)

CONTROL_SCHEMAS: Mapping[ControlType, tuple[Struct, ...]] = {
    ControlType.ABORT: (_END_TRANSACTION,),
    ControlType.COMMIT: (_END_TRANSACTION,),
    ControlType.LEADER_CHANGE: (_leader_change(_VOTER.without("VoterDirectoryId")), _leader_change(_VOTER)),
    ControlType.SNAPSHOT_HEADER: (
        Struct("SnapshotHeaderRecord", (_VERSION, Field("LastContainedLogTimestamp", Primitive.INT64)), flexible=True),
    ),
    ControlType.SNAPSHOT_FOOTER: (Struct("SnapshotFooterRecord", (_VERSION,), flexible=True),),
    ControlType.KRAFT_VERSION: (
        Struct("KRaftVersionRecord", (_VERSION, Field("KRaftVersion", Primitive.INT16)), flexible=True),
    ),
    ControlType.KRAFT_VOTERS: (
        Struct("VotersRecord", (_VERSION, Field("Voters", Array(_VOTER_WITH_ENDPOINTS))), flexible=True),
    ),
}
"""The value of a control record, by type and then by the version that is its first field."""

_KEY_LAYOUT = struct.Struct(CONTROL_KEY.fixed_format)
_VERSION_LAYOUT = struct.Struct(">h")


class ControlRecord(NamedTuple):
    """A control record's type, a `ControlType` or a number that later releases added, and what it says.

    `fields` has Kafka's names, `Version` among them; it is None for a type that is not known, which readers skip.
    """

    type: int
    fields: Values | None

    @property
    def type_name(self) -> str:
        """Kafka's name of the type, or `UNKNOWN`."""
        return ControlType(self.type).name if self.type in CONTROL_SCHEMAS else "UNKNOWN"

    @property
    def schema(self) -> Struct | None:
        """What `fields` follows."""
        return None if self.fields is None else _schema(ControlType(self.type), self.fields["Version"])


def decode_control_record(record: Record) -> ControlRecord:
    """The control record in a record of a control batch. Raises DecodeError, positions counted in the value.

    A version above those known is read as the highest known where that fits, as Kafka does with transaction markers.
    """
    kind = read_control_type(record)
    if kind not in CONTROL_SCHEMAS:
        return ControlRecord(kind, None)
    value = record.value or b""
    if len(value) < _VERSION_LAYOUT.size:
        raise DecodeError(f"control record {ControlType(kind).name} has no version", 0)
    version = _VERSION_LAYOUT.unpack_from(value)[0]
    if version < 0:
        raise DecodeError(f"control record {ControlType(kind).name} has version {version}", 0)
    schema = _schema(ControlType(kind), version)
    if version < len(CONTROL_SCHEMAS[ControlType(kind)]):
        return ControlRecord(kind, read_whole(schema, value))
    fields, _ = reader(schema)(value, 0, len(value))
    return ControlRecord(kind, fields)


def encode_control_record(kind: ControlType, fields: Mapping[str, Any], *, offset: int, timestamp: int) -> Record:
    """The record that carries a control record; `fields` as `decode_control_record` gives them."""
    value = writer(_schema(kind, fields["Version"]))(fields)
    return Record(offset, timestamp, _KEY_LAYOUT.pack(CONTROL_KEY_VERSION, kind), value)


def _schema(kind: ControlType, version: int) -> Struct:
    """The schema of a version, or the latest known before it."""
    return CONTROL_SCHEMAS[kind][: version + 1][-1]
