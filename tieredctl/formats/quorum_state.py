"""What a node remembers of the metadata quorum's elections: `quorum-state` in `__cluster_metadata-0`.

Sources: FileQuorumStateStore, QuorumStateData.json. Version 1 is that of kraft.version 1 (KIP-853), where votes name a
directory too, and voters are records of the log.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.json_lines import fields_of
from tieredctl.formats.kafka_json import json_document, values_of
from tieredctl.formats.message_json import message
from tieredctl.formats.schema import Primitive
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values

QUORUM_STATE_FILE = "quorum-state"

_VERSION = "data_version"
_LARGEST_VERSION = (1 << Primitive.INT16.width * 8 - 1) - 1


class QuorumState(NamedTuple):
    """The file's version, and the fields of QuorumStateData in that version, by Kafka's names."""

    version: int
    values: Values

    def document(self) -> dict[str, Any]:
        """The fields as the file spells them."""
        return json_document(message("QuorumStateData").schema(self.version), self.values)


def read_quorum_state(data: Buffer) -> QuorumState:
    """Raises DecodeError where a node would refuse to start on the file. A later version than is known is read as the
    latest known, as a node does."""
    document = fields_of(bytes(data))
    version = document.get(_VERSION)
    if type(version) is not int or not 0 <= version <= _LARGEST_VERSION:
        raise DecodeError(f"quorum-state has {_VERSION} {version!r}", 0)
    state = message("QuorumStateData")
    version = min(version, state.latest_version)
    return QuorumState(version, values_of(state.schema(version), document))


def encode_quorum_state(state: QuorumState) -> bytes:
    """One line of JSON without its end, as Kafka writes it."""
    return json.dumps(state.document() | {_VERSION: state.version}, separators=(",", ":")).encode("utf-8")
