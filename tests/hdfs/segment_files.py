"""Files as Uber's HDFSRemoteStorageManager writes them."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl_hdfs.header import PARTS, encode_header

from tieredctl.ports.layout import Part


def segment_file(parts: Mapping[Part, bytes]) -> bytes:
    """A file with these parts."""
    header = encode_header({part: len(data) for part, data in parts.items()})
    return header + b"".join(parts.get(part, b"") for part in PARTS)
