"""Metadata that real brokers wrote, forgotten and rebuilt from what they stored: field by field the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_in
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits, StoredSegment, StoreListing, rebuild
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ports.layout import Layout
from tieredctl.storage.file import FileStore

LOCAL = "remote/kafka-tiered-storage"
AIVEN = "bucket"
ALL_FIELDS = {"custom-metadata-fields": "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY"}
FROM_4_0, BEFORE = BrokerTraits(tells_txn=True), BrokerTraits()

each_capture = pytest.mark.parametrize(
    ("name", "root", "traits", "options", "segments"),
    [
        ("kafka-4.3.1", LOCAL, FROM_4_0, {}, 172),
        ("kafka-3.9.1", LOCAL, BEFORE, {}, 167),
        ("aiven-plain-4.3.1", AIVEN, BEFORE, {}, 121),
        ("aiven-zstd-encrypted-4.3.1", AIVEN, BEFORE, ALL_FIELDS, 129),
        ("aiven-crash-4.3.1", AIVEN, BEFORE, {}, 128),
    ],
)


def finished(capture: Path) -> dict[str, RemoteLogSegmentMetadata]:
    """What Kafka's own events say of the segments in COPY_SEGMENT_FINISHED."""
    state = replayed(EventStream(LogDirectories([capture / "data"])))
    known = {one.metadata.segment_id: one.metadata for _, one in state.segments()}
    return {name: one for name, one in known.items() if one.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED}


def stored(store: FileStore, layout: Layout, ids: dict[str, RemoteLogSegmentMetadata]) -> Iterator[StoredSegment]:
    for _, segments in StoreListing(store, layout, Selection()).partitions():
        yield from (one for one in segments if one.identity.segment_id in ids)


def but_for_who_and_when(metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """Nothing in a store tells these two, but for aiven's manifests."""
    return replace(metadata, author=0, event_timestamp_ms=0)


@each_capture
def test_every_field_but_broker_and_event_time_comes_back(
    captures: Path, name: str, root: str, traits: BrokerTraits, options: dict[str, str], segments: int
) -> None:
    capture = captures / name
    store = FileStore(str(capture / root))
    layout = layout_in(store, "auto", options)
    expected = finished(capture)

    rebuilt = [rebuild(one, store, layout, traits) for one in stored(store, layout, expected)]

    assert len(rebuilt) == segments
    assert {one.segment_id: but_for_who_and_when(one) for one in rebuilt} == {
        segment_id: but_for_who_and_when(one) for segment_id, one in expected.items()
    }


@each_capture
def test_what_is_left_of_the_metadata_shows_how_brokers_write(
    captures: Path, name: str, root: str, traits: BrokerTraits, options: dict[str, str], segments: int
) -> None:
    del root, segments
    known = KnownMetadata(FollowedMetadata(lambda: LogDirectories([captures / name / "data"])))

    known.refresh()

    assert known.traits.tells_txn is name.endswith("4.3.1")
    assert known.traits.form is traits.form
    assert (known.traits.custom_metadata is not None) is bool(options)
