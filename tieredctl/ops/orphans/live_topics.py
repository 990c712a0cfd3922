"""Which topics a cluster has."""

from __future__ import annotations

from pathlib import Path

from tieredctl.errors import TieredctlError
from tieredctl.model.ids import uuid_bytes


def read_topic_ids(file: Path) -> frozenset[str]:
    """The ids in a text file, one a line. Raises TieredctlError for what is no id: a list that is half of one would
    make orphans of the other half."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise TieredctlError("unreadable", f"{file} cannot be read: {reason}.") from None
    ids = [line.strip() for line in lines if line.strip()]
    for topic_id in ids:
        try:
            uuid_bytes(topic_id)
        except ValueError:
            raise TieredctlError("usage", f"{file} has {topic_id!r}, which is not a topic id.") from None
    return frozenset(ids)
