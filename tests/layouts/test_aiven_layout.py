"""Where Aiven's storage manager keeps a segment's objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, auto

import pytest
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.custom_metadata import CustomMetadata, read_custom_metadata
from tieredctl_aiven.key_prefix import key_prefix_of

from tests import sample_events
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.layouts.registry import detect, layout_named
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
STEM = f"t-{TOPIC_ID}/3/00000000000000000042-{SEGMENT_ID}"
LOCAL_KEY = f"t-3-{TOPIC_ID}/00000000000000000042-{SEGMENT_ID}.log"
SEGMENT = replace(sample_events.SEGMENT, start_offset=42, end_offset=43, segment_leader_epochs=((0, 42),))
ALL_FIELDS = bytes.fromhex(
    "030002d00f010303702f024747742d414245694d3052565a6e65496d6171377a4e33755f772f332f303030303030303030303030303030"
    "30303030302d41514944424155474277674a4367734d445134504541"
)
NO_PREFIX = bytes.fromhex("020002c801020404666f6f")


class StoreAt(MemoryStore):
    """A store whose URL names a folder or a prefix."""

    def __init__(self, url: str, *keys: str) -> None:
        super().__init__()
        self.url = url
        for key in keys:
            self.put(key, b"")


class Lie(Enum):
    """What one answer says that is not so."""

    NOTHING_LISTED = auto()
    MANIFEST_DENIED = auto()
    MANIFEST_CUT = auto()
    OTHER_TOPIC = auto()


class OnceLying(StoreAt):
    """A store that lies once."""

    lie: Lie | None = None

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        if self.lie is Lie.NOTHING_LISTED:
            self.lie = None
            return iter(())
        return super().list(prefix, start_after)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        lie, self.lie, data = self.lie, None, super().read(key, start, end)
        if lie is Lie.MANIFEST_DENIED:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, key)
        if lie is Lie.MANIFEST_CUT:
            return data[:-1]
        return data.replace(b'"t"', b'"u"') if lie is Lie.OTHER_TOPIC else data


class BreakingOff(StoreAt):
    """A store that may not be listed to its end."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        yield from super().list(prefix, start_after)
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, "No further.")


def store_of(*keys: str) -> MemoryStore:
    return StoreAt("s3://bucket", *keys)


def keys_of(layout: Layout, custom_metadata: bytes | None = None) -> dict[Part, str]:
    return layout.promised_objects(replace(SEGMENT, custom_metadata=custom_metadata))


def objects(stem: str) -> dict[Part, str]:
    return {Part.LOG: f"{stem}.log", Part.INDEXES: f"{stem}.indexes", Part.MANIFEST: f"{stem}.rsm-manifest"}


def custom_metadata(prefix: str) -> bytes:
    """OBJECT_PREFIX alone."""
    text = prefix.encode()
    return bytes([1, 1, len(text) + 1, len(text) + 1]) + text


class TestKeys:
    def test_a_segment_has_three_objects(self) -> None:
        assert keys_of(AivenLayout()) == objects(STEM)
        assert AivenLayout().optional_objects(SEGMENT) == {}

    def test_the_prefix_stands_before_them_as_it_is(self) -> None:
        for prefix in ("tiered/", "a/b/", "no-folder", "/"):
            layout = AivenLayout(prefix)

            assert keys_of(layout) == objects(prefix + STEM), prefix
            assert layout.partition_prefix(SEGMENT.topic_id_partition) == f"{prefix}t-{TOPIC_ID}/3/"

    def test_a_key_says_whose_object_it_is_and_nothing_is_said_of_others(self) -> None:
        for part, key in objects(f"p/{STEM}").items():
            assert AivenLayout("p/").explain(key) == ExplainedKey("t", TOPIC_ID, 3, 42, SEGMENT_ID, part)
        for key in (
            f"{STEM}.log",
            f"q/{STEM}.log",
            f"p/x/{STEM}.log",
            f"p/{STEM}.index",
            f"p/{STEM}.log.tmp",
            f"p/{LOCAL_KEY}",
            f"p/t-{TOPIC_ID}/03/00000000000000000042-{SEGMENT_ID}.log",
            f"p/t-{TOPIC_ID}/2147483648/00000000000000000042-{SEGMENT_ID}.log",
            f"p/t-{TOPIC_ID}/3/99999999999999999999-{SEGMENT_ID}.log",
            f"p/t-{TOPIC_ID}/3/42-{SEGMENT_ID}.log",
            "",
        ):
            assert AivenLayout("p/").explain(key) is None, key

    def test_the_sizes_of_objects_do_not_tell_how_long_the_log_was(self) -> None:
        assert AivenLayout().original_log_size({Part.LOG: 10}) is None


class TestCustomMetadata:
    def test_the_fields_are_read(self) -> None:
        assert read_custom_metadata(ALL_FIELDS) == CustomMetadata(
            1000, "p/", f"t-{TOPIC_ID}/3/00000000000000000000-{SEGMENT_ID}"
        )
        assert read_custom_metadata(NO_PREFIX) == CustomMetadata(100, None, "foo")
        assert read_custom_metadata(b"") == CustomMetadata()

    def test_what_is_cut_is_refused(self) -> None:
        for length in range(1, len(ALL_FIELDS)):
            with pytest.raises(DecodeError):
                pytest.fail(f"{length}: {read_custom_metadata(ALL_FIELDS[:length])}")

    def test_fields_of_later_releases_are_passed_over(self) -> None:
        assert read_custom_metadata(bytes.fromhex("02 02 04 04 666f6f 09 01 ff")) == CustomMetadata(object_key="foo")

    def test_a_segment_stays_where_it_was_copied_to(self) -> None:
        layout = AivenLayout("new/")

        assert keys_of(layout, custom_metadata("old/")) == objects(f"old/{STEM}")
        assert keys_of(layout, NO_PREFIX) == objects("new/foo")

    def test_that_of_another_storage_manager_says_nothing_of_keys(self) -> None:
        for other in (b"\xff", b"\x01\x02\x03", b"an id of another storage manager"):
            assert keys_of(AivenLayout(), other) == objects(STEM), other

    def test_what_the_stores_url_names_of_the_prefix_is_in_no_key(self) -> None:
        within_url = {
            "s3://bucket": "a/b/",
            "s3://bucket/a": "b/",
            "s3://bucket/a/": "b/",
            "s3://bucket/a/b": "",
            "file:/mnt/bucket/a/b/": "",
        }
        for url, within in within_url.items():
            layout = AivenLayout().settled_in(StoreAt(url, f"{within}{STEM}.log"))

            assert keys_of(layout, custom_metadata("a/b/")) == objects(within + STEM), url

    def test_so_is_that_of_a_folder_without_a_name(self) -> None:
        layout = AivenLayout().settled_in(StoreAt("s3://bucket/a//", f"{STEM}.log"))
        segment = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 0, 0, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)

        assert keys_of(layout, custom_metadata("a//")) == objects(STEM)
        assert layout.custom_metadata(segment, 1_000, custom_metadata("a//")) == custom_metadata("a//")


def test_custom_metadata_says_how_many_bytes_the_objects_have() -> None:
    assert AivenLayout().stored_size(replace(SEGMENT, custom_metadata=ALL_FIELDS)) == 1000
    assert AivenLayout().stored_size(replace(SEGMENT, custom_metadata=custom_metadata("p/"))) is None
    assert AivenLayout().stored_size(SEGMENT) is None


class TestPrefixOfAStore:
    def test_it_is_what_the_keys_begin_with(self) -> None:
        for prefix in ("", "tiered/", "a/b/"):
            assert key_prefix_of(store_of(f"{prefix}{STEM}.log", f"{prefix}{STEM}.indexes")) == prefix
        assert key_prefix_of(store_of()) == ""
        assert key_prefix_of(store_of("aaa", f"tiered/{STEM}.log", "tiered/x", "zzz/1")) == "tiered/"

    def test_it_need_not_end_with_a_slash(self) -> None:
        metadata = {"remoteLogSegmentId": {"topicIdPartition": {"topicPartition": {"topic": "t"}}}}
        for prefix in ("p-", "a/p", "a/b-c.d_"):
            store = store_of(f"{prefix}{STEM}.log")
            store.put(f"{prefix}{STEM}.rsm-manifest", json.dumps({"remoteLogSegmentMetadata": metadata}).encode())

            assert key_prefix_of(store) == prefix

    def test_it_is_not_what_one_answer_alone_says(self) -> None:
        metadata = {"remoteLogSegmentId": {"topicIdPartition": {"topicPartition": {"topic": "t"}}}}
        manifest = json.dumps({"remoteLogSegmentMetadata": metadata}).encode()
        for lie in Lie:
            store = OnceLying("s3://bucket", f"a/p-{STEM}.log", f"a/p-{STEM}.rsm-manifest")
            store.put(f"a/p-{STEM}.rsm-manifest", manifest)
            store.lie = lie

            assert key_prefix_of(store) == "a/p-", lie
            assert store.lie is None

    def test_a_listing_that_breaks_off_tells_what_it_can(self) -> None:
        assert key_prefix_of(BreakingOff("s3://bucket", "p", f"{STEM}.log")) == ""

    def test_a_store_that_cannot_be_listed_is_an_error(self) -> None:
        with pytest.raises(TieredctlError, match="No further"):
            key_prefix_of(BreakingOff("s3://bucket"))

    def test_two_prefixes_are_left_to_the_user(self) -> None:
        store = store_of(*(f"a/{STEM[:-4]}{number:03}A.log" for number in range(2_000)), f"b/{STEM}.log")

        with pytest.raises(TieredctlError, match=r"several prefixes: 'a/', 'b/'") as raised:
            key_prefix_of(store)

        assert raised.value.code == "usage"
        assert "key-prefix=" in raised.value.hint

    def test_what_the_user_names_is_taken(self) -> None:
        layout = layout_named("aiven", {"key-prefix": "b/"}).settled_in(store_of(f"a/{STEM}.log", f"b/{STEM}.log"))

        assert layout.promised_objects(SEGMENT) == objects(f"b/{STEM}")


def test_the_layout_is_detected_and_kafkas_local_storage_is_not_taken_for_it() -> None:
    for key in (f"{STEM}.log", f"tiered/{STEM}.rsm-manifest"):
        assert detect(store_of(key)) == "aiven", key
    assert detect(store_of(LOCAL_KEY)) == "local"
