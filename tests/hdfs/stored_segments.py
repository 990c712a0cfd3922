"""Segments by the layout of HDFS in stores: in a mini cluster, and made from those of another layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tieredctl_hdfs.layout import HdfsLayout
from tieredctl_local import LocalLayout

from tests.hdfs.segment_files import segment_file
from tests.rigs.hdfs import HdfsCluster
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.file import FileStore
from tieredctl.storage.registry import open_writable_store

Place = Sequence[str]
"""The options that name a store."""


def uploaded(cluster: HdfsCluster, folder: str, objects: Iterable[tuple[str, bytes]]) -> Place:
    """The options of a store with these objects."""
    cluster.ask("PUT", folder, "MKDIRS")
    options = {"namenode": f"{cluster.active},{cluster.standby}", "user": "kafka"}
    store = open_writable_store(f"hdfs://cluster{folder}", options)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: store.write(*one), objects))
    return ("--store", store.url, *(word for one in options.items() for word in ("--store-option", "=".join(one))))


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
