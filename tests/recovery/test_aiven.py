"""What aiven's manifests record of a segment, and the custom metadata that its plugin gives to Kafka."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.custom_metadata import CustomMetadata, encode_custom_metadata, read_custom_metadata

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.registry import layout_in, layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits, StoreListing, Unfit, rebuild
from tieredctl.ops.metadata_recovery.moved_log_start import MovedLogStart, moved_log_start
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment
from tieredctl.ports.layout import ExplainedKey, Part, SegmentIdentity
from tieredctl.storage.file import FileStore

FOLDER = "tiered/slow31-XzTUmt-bRdCyBXeU44ahMg/0"
STEM = f"{FOLDER}/00000000000000000150-uq-wLsMFQOWSdKAhffWb1g"
Change = Callable[[dict[str, Any]], object]

texts = st.none() | st.text(max_size=200)


@pytest.fixture
def bucket(captures: Path, tmp_path: Path) -> Path:
    """The objects of one segment."""
    (tmp_path / FOLDER).mkdir(parents=True)
    for suffix in (".log", ".indexes", ".rsm-manifest"):
        shutil.copy(captures / "aiven-plain-4.3.1" / "bucket" / f"{STEM}{suffix}", tmp_path / FOLDER)
    return tmp_path


def rebuilt(bucket: Path) -> RemoteLogSegmentMetadata:
    store = FileStore(str(bucket))
    layout = layout_in(store, "aiven", {})
    ((_, (segment,)),) = StoreListing(store, layout, Selection()).partitions()
    return rebuild(segment, store, layout, BrokerTraits())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda recorded: recorded["remoteLogSegmentId"].update(id="AQIDBAUGBwgJCgsMDQ4PEA"), "another segment's"),
        (lambda recorded: recorded.update(startOffset=149), "is 149 under a key of 150"),
        (lambda recorded: recorded.update(endOffset=149), "endOffset cannot be 149"),
        (lambda recorded: recorded.update(endOffset=1 << 63), "endOffset cannot be"),
        (lambda recorded: recorded.update(maxTimestampMs="now"), "maxTimestampMs is not a whole number"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={}), "has no epoch"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"-1": 150}), "is not a leader epoch"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"0": 10**17}), "0 cannot be 100000000000000000"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"0": 151}), "0 cannot be 151"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"0": 149}), "0 cannot be 149"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"0": 150, "1": 10**17}), "1 cannot be"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"0": 150, "2": 152, "11": 152}), "11 cannot be 152"),
        (lambda recorded: recorded.update(segmentLeaderEpochs={"1": 150, "0": 152}), "0 cannot be 152"),
        (lambda recorded: recorded.pop("endOffset"), "has no endOffset"),
    ],
)
def test_a_manifest_that_records_what_cannot_be_is_damage(bucket: Path, change: Change, said: str) -> None:
    file = bucket / f"{STEM}.rsm-manifest"
    manifest = json.loads(file.read_text())
    change(manifest["remoteLogSegmentMetadata"])
    file.write_text(json.dumps(manifest))

    with pytest.raises(Unfit, match=said):
        rebuilt(bucket)


def test_the_epochs_of_several_leaders_come_in_their_order(bucket: Path) -> None:
    file = bucket / f"{STEM}.rsm-manifest"
    manifest = json.loads(file.read_text())
    manifest["remoteLogSegmentMetadata"]["segmentLeaderEpochs"] = {"11": 153, "2": 152, "0": 150}
    file.write_text(json.dumps(manifest))

    assert rebuilt(bucket).segment_leader_epochs == ((0, 150), (2, 152), (11, 153))


def test_an_object_that_was_cut_is_damage(bucket: Path) -> None:
    for suffix in (".log", ".indexes"):
        file = bucket / f"{STEM}{suffix}"
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])

        with pytest.raises(Unfit, match=f"{suffix[1:]} has"):
            rebuilt(bucket)
        file.write_bytes(whole)


def test_a_store_that_does_not_answer_is_not_damage(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It is gone.")

    monkeypatch.setattr(FileStore, "read", refuse)

    with pytest.raises(TieredctlError, match="It is gone"):
        rebuilt(bucket)


@given(st.builds(CustomMetadata, st.none() | st.integers(0, 2**63 - 1), texts, texts))
def test_custom_metadata_comes_back_as_it_was_encoded(fields: CustomMetadata) -> None:
    encoded = encode_custom_metadata(fields)

    assert read_custom_metadata(encoded or b"") == fields
    assert (encoded is None) == (fields == CustomMetadata())


def test_an_object_prefix_is_the_plugins_whole_key_prefix() -> None:
    for root, key_prefix, named in [
        ("s3://bucket/", "tiered/", "tiered/"),
        ("s3://bucket/tiered/", "", "tiered/"),
        ("s3://bucket/a/", "b/", "a/b/"),
        ("file:/srv/bucket/", "tiered/", "tiered/"),
        ("gs://bucket/", "", ""),
    ]:
        options = {"custom-metadata-fields": "OBJECT_PREFIX", "key-prefix": key_prefix}
        layout = replace(cast("AivenLayout", layout_named("aiven", options)), root=root)
        segment = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 0, 0, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)
        encoded = layout.custom_metadata(segment, 1_000, None)
        assert read_custom_metadata(encoded or b"") == CustomMetadata(object_prefix=named), (root, key_prefix, named)
    # An object prefix is that of the segments own keys whatever another segment has.
    for root, key_prefix, of_another, named in [
        ("s3://bucket/", "old/", "new/", "old/"),
        ("s3://bucket/old/", "", "new/", "old/"),
        ("s3://bucket/", "", "new/", ""),
        ("s3://bucket/", "old/", "", "old/"),
        ("s3://bucket/a/", "b/", "a/b/", "a/b/"),
        ("file:/srv/bucket/a/", "b/", "a/b/", "a/b/"),
    ]:
        layout = replace(cast("AivenLayout", layout_named("aiven", {"key-prefix": key_prefix})), root=root)
        segment = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 0, 0, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)
        encoded = layout.custom_metadata(
            segment, 1_000, encode_custom_metadata(CustomMetadata(object_prefix=of_another))
        )
        assert read_custom_metadata(encoded or b"") == CustomMetadata(object_prefix=named), root


class NamingElsewhere(AivenLayout):
    """A layout whose custom metadata sends brokers to where the objects are not."""

    def custom_metadata(self, segment: SegmentIdentity, stored_bytes: int, like: bytes | None) -> bytes | None:
        del segment, stored_bytes, like
        return encode_custom_metadata(CustomMetadata(object_prefix="new/"))


def test_a_segment_whose_metadata_would_name_other_objects_is_not_rebuilt(bucket: Path) -> None:
    store = FileStore(str(bucket))
    layout = NamingElsewhere().settled_in(store)
    ((_, (segment,)),) = StoreListing(store, layout, Selection()).partitions()

    with pytest.raises(Unfit, match="its metadata would name new/"):
        rebuild(segment, store, layout, BrokerTraits())


def moved_above_all(bucket: Path, **options: str) -> MovedLogStart:
    """What is said of the first partition whose leader's log starts above all that the store has."""
    store = FileStore(str(bucket))
    layout = layout_in(store, "aiven", options)
    partition, segments = next(StoreListing(store, layout, Selection()).partitions())
    judged = [
        JudgedSegment(one, Fate.BELOW_LOG_START, metadata=rebuild(one, store, layout, BrokerTraits()))
        for one in segments
    ]
    moved = moved_log_start(partition, judged, LeaderLog(10_000, 10_000, 10_001, ((2, 10_000),)), store, layout)
    assert moved is not None
    return moved


def test_a_log_start_is_put_back_with_the_leader_epochs_that_were_stored(captures: Path) -> None:
    capture = captures / "aiven-zstd-encrypted-4.3.1"

    moved = moved_above_all(capture / "bucket", **{"private-key": str(capture / "keys" / "private.pem")})

    assert moved.document() == {"logStartOffset": 0, "leaderEpochCheckpoint": "0\n2\n0 0\n2 145\n"}


def test_a_log_start_without_the_private_key_or_a_sound_checkpoint_has_no_leader_epochs(
    captures: Path, bucket: Path
) -> None:
    # Without the private key no leader epochs are named and the plan says why.
    moved = moved_above_all(captures / "aiven-zstd-encrypted-4.3.1" / "bucket")
    assert moved.document() is None
    assert "how to restore the log start is not known" in moved.finding().message
    assert "there is no private key" in moved.finding().message
    # Without a sound checkpoint no leader epochs are named.
    file = bucket / f"{STEM}.indexes"
    file.write_bytes(b"?" * file.stat().st_size)
    moved = moved_above_all(bucket)
    assert moved.document() is None
    assert "how to restore the log start is not known" in moved.finding().message
