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

from tieredctl.errors import TieredctlError
from tieredctl.layouts.protocol import ExplainedKey, Part
from tieredctl.layouts.registry import layout_in, layout_named
from tieredctl.ops.recovery.broker_traits import BrokerTraits
from tieredctl.ops.recovery.rebuilding import Unfit, rebuild
from tieredctl.ops.recovery.stored_segments import StoreListing
from tieredctl.ops.selection import Selection
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


def rebuilt(bucket: Path) -> object:
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
        (lambda recorded: recorded.update(segmentLeaderEpochs={"-1": 150}), "is no leader epoch"),
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


@pytest.mark.parametrize("suffix", [".log", ".indexes"])
def test_an_object_that_was_cut_is_damage(bucket: Path, suffix: str) -> None:
    file = bucket / f"{STEM}{suffix}"
    file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(Unfit, match=f"{suffix[1:]} has"):
        rebuilt(bucket)


def test_a_store_that_does_not_answer_is_no_damage(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise TieredctlError("store-unreachable", "It is gone.")

    monkeypatch.setattr(FileStore, "read", refuse)

    with pytest.raises(TieredctlError, match="It is gone"):
        rebuilt(bucket)


@given(st.builds(CustomMetadata, st.none() | st.integers(0, 2**63 - 1), texts, texts))
def test_custom_metadata_comes_back_as_it_was_encoded(fields: CustomMetadata) -> None:
    encoded = encode_custom_metadata(fields)

    assert read_custom_metadata(encoded or b"") == fields
    assert (encoded is None) == (fields == CustomMetadata())


@pytest.mark.parametrize(
    ("root", "key_prefix", "named"),
    [
        ("s3://bucket/", "tiered/", "tiered/"),
        ("s3://bucket/tiered/", "", "tiered/"),
        ("s3://bucket/a/", "b/", "a/b/"),
        ("file:/srv/bucket/", "tiered/", "tiered/"),
        ("gs://bucket/", "", ""),
    ],
)
def test_an_object_prefix_is_the_plugins_whole_key_prefix(root: str, key_prefix: str, named: str) -> None:
    options = {"custom-metadata-fields": "OBJECT_PREFIX", "key-prefix": key_prefix}
    layout = replace(cast("AivenLayout", layout_named("aiven", options)), root=root)
    segment = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 0, 0, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)

    encoded = layout.custom_metadata(segment, 1_000, None)

    assert read_custom_metadata(encoded or b"") == CustomMetadata(object_prefix=named)
