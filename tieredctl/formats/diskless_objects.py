"""Objects of diskless topics as Inkless's brokers write them: record batches back to back, without header or footer."""

from __future__ import annotations

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import read_batch_header
from tieredctl.model.ids import uuid_bytes

PRODUCED_BASE_OFFSET = 0
"""The base offset of every batch in an object, as its producer sent it: the control plane has the real one."""
PRODUCED_EPOCHS = (0, -1)
"""The leader epochs that every batch may have: no leader wrote it."""


def is_object_name(name: str) -> bool:
    """Whether a key ends so: in the text of a random id."""
    try:
        uuid_bytes(name)
    except ValueError:
        return False
    return True


def begins_as_object(head: bytes) -> bool:
    """Whether the first bytes of a file could be those of such an object."""
    try:
        header = read_batch_header(head, 0, len(head))
    except DecodeError:
        return False
    return header.base_offset == PRODUCED_BASE_OFFSET and header.partition_leader_epoch in PRODUCED_EPOCHS
