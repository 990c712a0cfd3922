"""The topics that real clusters left, with their stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tieredctl.ops.metadata.selection import Selection
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import TopicRecords, topic_records

WITH_STORE = ("kafka-4.3.1", "kafka-3.9.1", "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1")


def metadata_place(capture: Path) -> MetadataPlace:
    return MetadataPlace(log_dirs=(capture / "data",))


def store_place(capture: Path) -> StorePlace:
    key, local = capture / "keys" / "private.pem", capture / "remote" / "kafka-tiered-storage"
    options = {"private-key": str(key)} if key.exists() else {}
    return StorePlace(f"file:{local if local.exists() else capture / 'bucket'}", layout_options=options)


def captured_topics(capture: Path) -> list[str]:
    """Those that have anything in the metadata."""
    with metadata_place(capture).open() as stream:
        for _ in stream.records():
            pass
        return sorted({partition.topic for partition in stream.partitions})


@contextmanager
def captured_records(capture: Path, topic: str, *, with_local: bool = False) -> Iterator[TopicRecords]:
    places = metadata_place(capture), store_place(capture)
    with topic_records(*places, Selection.of(topic), with_local=with_local) as opened:
        yield opened
