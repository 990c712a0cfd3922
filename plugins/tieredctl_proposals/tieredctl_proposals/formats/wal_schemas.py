"""The records of `__remote_wal_log_metadata`, described (KIP-1176).

The proposal has classes and no wire form. This one is tieredctl's choice, written down as Kafka's messages are, in
`wal_messages`: Kafka's flexible encoding in the frame of `__remote_log_metadata`, with apiKeys that Kafka's own records
will not reach. Field names and, where the proposal lists them, their order are its own.
"""

from __future__ import annotations

from tieredctl.formats.event_frame import MESSAGE_VERSION
from tieredctl.formats.message_json import message

MESSAGES = "wal_messages"
"""The folder of the definitions, beside this module."""

WAL_SEGMENT, WAL_SEGMENT_UPDATE, WAL_COMBINED, WAL_COMBINED_UPDATE = range(100, 104)
"""The apiKeys."""

_DEFINITIONS = [
    message(name, MESSAGES, __package__)
    for name in (
        "RemoteWalLogSegmentMetadataRecord",
        "RemoteWalLogSegmentMetadataUpdateRecord",
        "RemoteWalCombinedLogSegmentMetadataRecord",
        "RemoteWalCombinedLogSegmentMetadataUpdateRecord",
    )
]
WAL_SCHEMAS = {one.api_key: one.schema(MESSAGE_VERSION) for one in _DEFINITIONS if one.api_key is not None}
