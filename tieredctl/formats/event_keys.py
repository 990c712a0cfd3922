"""The keys that KIP-1266 gives the events of `__remote_log_metadata`: two public drafts, of which no release has one.

In one (Kafka's pull request 22774) a key is 37 bytes: topic id (16), partition (int32), segment id (16), state (int8).
In the other (22459) it is a text, `topicId:topicName:partition:endOffset:brokerLeaderEpoch`, with `:UPDATE` after it
where the event is an update. Kafka up to 4.4 writes no keys.
"""

from __future__ import annotations

import re

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import is_uuid

_BINARY_BYTES = 37
_STATES = frozenset(map(int, RemoteLogSegmentState))
_TEXT = re.compile(rb"([A-Za-z0-9_-]{22}):[A-Za-z0-9._-]{1,249}:([0-9]{1,10}):([0-9]{1,19}):([0-9]{1,10})(?::UPDATE)?")
_GREATEST_INT32, _GREATEST_INT64 = (1 << 31) - 1, (1 << 63) - 1


def is_event_key(key: bytes) -> bool:
    """Whether a key is that of an event about a segment, in one of the two drafts."""
    return _is_binary(key) or _is_text(key)


def _is_binary(key: bytes) -> bool:
    return len(key) == _BINARY_BYTES and key[-1] in _STATES


def _is_text(key: bytes) -> bool:
    match = _TEXT.fullmatch(key)
    if match is None or not is_uuid(match[1].decode("ascii")):
        return False
    partition, end_offset, epoch = map(int, match.groups()[1:4])
    return max(partition, epoch) <= _GREATEST_INT32 and end_offset <= _GREATEST_INT64
