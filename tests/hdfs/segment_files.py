"""Files as Uber's HDFSRemoteStorageManager writes them, and a captured cluster whose segments are in such files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tieredctl_hdfs.header import PARTS, encode_header
from tieredctl_hdfs.layout import HdfsLayout
from tieredctl_local import LocalLayout

from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.file import FileStore


def segment_file(parts: Mapping[Part, bytes]) -> bytes:
    """A file with these parts."""
    header = encode_header({part: len(data) for part, data in parts.items()})
    return header + b"".join(parts.get(part, b"") for part in PARTS)


def repacked(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The keys and files of all segments that are in a folder by the layout `local`."""
    store, layout = FileStore(str(folder)), LocalLayout()
    segments: dict[ExplainedKey, dict[Part, bytes]] = {}
    for stored in store.list():
        if explained := layout.explain(stored.key):
            whole = explained._replace(part=Part.LOG)
            segments.setdefault(whole, {})[explained.part] = store.read(stored.key)
    for segment, parts in segments.items():
        yield HdfsLayout().promised_objects(segment)[Part.LOG], segment_file(parts)
