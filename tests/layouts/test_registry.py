"""Layouts are found by the names that installed packages give them, and are loaded when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from tieredctl_local import LocalLayout

from tests.refusals import refused_with
from tieredctl import plugins
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.layouts.registry import DETECTION_KEYS, LAYOUTS, detect, installed_layouts, layout_named
from tieredctl.ports.layout import ExplainedKey, Layout
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

LOCAL = EntryPoint("local", "tieredctl_local:local_layout", LAYOUTS.group)
OTHER = EntryPoint("other", "other_plugin:other_layout", LAYOUTS.group)
LOCAL_KEY = "t-3-ABEiM0RVZneImaq7zN3u_w/00000000000000000000-AQIDBAUGBwgJCgsMDQ4PEA.log"

Install = Callable[..., None]


@dataclass(frozen=True)
class OtherLayout(LocalLayout):
    """Explains any key that holds its mark."""

    mark: str

    @property
    def name(self) -> str:
        return "other"

    def explain(self, key: str) -> ExplainedKey | None:
        return LocalLayout().explain(LOCAL_KEY) if self.mark in key else None


def other_layout(options: Mapping[str, str]) -> Layout:
    return OtherLayout(options.get("mark", "other"))


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes these entry points all that is installed."""

    def only(*points: EntryPoint) -> None:
        monkeypatch.setitem(sys.modules, "other_plugin", SimpleNamespace(other_layout=other_layout))
        monkeypatch.setattr(plugins, "_installed", lambda group, _: [point for point in points if point.group == group])

    return only


def store_of(*keys: str) -> MemoryStore:
    store = MemoryStore()
    for key in keys:
        store.put(key, b"")
    return store


def code_of(raised: pytest.ExceptionInfo[TieredctlError]) -> str:
    return raised.value.code


def test_the_local_layout_is_installed_with_its_package() -> None:
    assert "local" in installed_layouts()
    assert layout_named("local") == LocalLayout()


def test_options_reach_the_layout(install: Install) -> None:
    install(LOCAL, OTHER)

    layout: Layout = layout_named("other", {"mark": "x"})

    assert layout.explain("a/x")


def test_an_unknown_name_is_answered_with_what_there_is_and_what_to_install(install: Install) -> None:
    install(LOCAL, OTHER)

    with pytest.raises(TieredctlError, match="no layout 'aiven'; installed are: local, other") as raised:
        layout_named("aiven")

    assert code_of(raised) == "unknown-layout"
    assert raised.value.exit_code is ExitCode.USAGE
    assert "pip install tieredctl-aiven" in raised.value.hint


def test_where_nothing_is_installed_that_is_reported(install: Install) -> None:
    install()

    with pytest.raises(TieredctlError, match="installed are: none"):
        layout_named("local")


def test_a_broken_plugin_does_not_hinder_another_layout(install: Install) -> None:
    install(LOCAL, EntryPoint("broken", "no_such_plugin:layout", LAYOUTS.group))

    assert layout_named("local").name == "local"
    assert installed_layouts() == ["broken", "local"]


class TestDetection:
    def test_the_layout_that_explains_a_key_is_chosen(self, install: Install) -> None:
        install(LOCAL, OTHER)

        assert detect(store_of(LOCAL_KEY)) == "local"
        assert detect(store_of("other/1")) == "other"
        assert detect(store_of(".DS_Store", "lost+found", LOCAL_KEY)) == "local"
        assert detect(store_of(LOCAL_KEY), {"mark": "t-3"}) == "other"  # the other one does not take the option

    def test_keys_that_fit_two_layouts_are_not_decided(self, install: Install) -> None:
        install(LOCAL, OTHER)

        with pytest.raises(TieredctlError, match="fit several layouts: local, other") as raised:
            detect(store_of(LOCAL_KEY, "other/1"))

        assert code_of(raised) == "unknown-layout"
        assert "--layout" in raised.value.hint

    def test_what_no_layout_explains_is_not_decided(self, install: Install) -> None:
        """Nor is an empty store; and only the first keys are looked at."""
        install(LOCAL)
        before = [f"a/{number:05}" for number in range(DETECTION_KEYS)]

        for keys, said in (
            (["photos/1.jpg"], r"such as photos/1\.jpg; installed are: local"),
            ([], "holds no object"),
            ([*before, LOCAL_KEY], "such as a/00000"),
        ):
            with pytest.raises(TieredctlError, match=said) as raised:
                detect(store_of(*keys))
            assert code_of(raised) == "unknown-layout", said
        with refused_with("usage"):
            detect(store_of(LOCAL_KEY), {"mark": "x"})

    def test_a_bucket_of_another_platform_is_said_to_be_one(self, install: Install) -> None:
        """Keys as the platforms' own sources and tests make them: tieredctl/model/platforms.py names these."""
        install(LOCAL)
        uuid = "806a0f4a-e691-4a2b-9352-ec4b769a5e6e"
        for name, key in (
            ("Redpanda", "e0000000/meta/kafka/tp/topic_manifest.json"),
            ("Redpanda", "e0000000/meta/kafka/tp/topic_manifest.bin"),
            ("Redpanda", "e0000000/meta/kafka/tp/5_21/manifest.bin"),
            ("Redpanda", "a0000000/meta/kafka/tp/0_lifecycle.bin"),
            ("Redpanda", f"meta/kafka/tp/{uuid}/21/topic_manifest.bin"),
            ("Redpanda", f"{uuid}/meta/kafka/tp/5_21/manifest.bin"),
            ("Redpanda", "06160a9e/kafka/tp/5_21/0-1-v1.log.2"),
            ("Redpanda", f"{uuid}/kafka/tp/5_21/0-99-1024-1-v1.log.1"),
            ("Confluent", "0/V_QmtSRAS-qC_YrVmRd2HA/Q67Kf6aES2C_-Js7eDaRuw/3/00000000000000000042_0_v0.segment"),
            ("Confluent", "0/V_QmtSRAS-qC_YrVmRd2HA/Q67Kf6aES2C_-Js7eDaRuw/3/00000000000000000042_0_v0.offset-index"),
            ("AutoMQ", "f9000000/_kafka_rZdE0DjZSrqy96PXrMUZVw/159"),
            ("WarpStream", "warpstream/abc/1"),
        ):
            with refused_with("metadata-not-here", name):
                detect(store_of("a/first-key", key))
        assert detect(store_of("warpstream/abc/1", LOCAL_KEY)) == "local"

    @pytest.mark.parametrize("capture", ["kafka-4.3.1", "kafka-3.9.1"])
    def test_a_real_brokers_store_is_recognised(self, install: Install, captures: Path, capture: str) -> None:
        install(LOCAL)
        root = captures / capture / "remote"

        assert detect(FileStore(str(root / "kafka-tiered-storage"))) == "local"
        with pytest.raises(TieredctlError, match="such as kafka-tiered-storage/"):
            detect(FileStore(str(root)))


def test_diskless_topics_have_no_layout_and_a_sentence_says_what_looks_at_them() -> None:
    with pytest.raises(TieredctlError) as raised:
        layout_named("inkless")

    assert (code_of(raised), raised.value.exit_code) == ("unknown-layout", ExitCode.USAGE)
    assert "tieredctl diskless" in raised.value.hint
    assert "pip" not in raised.value.hint


def test_a_plugin_may_be_called_inkless_all_the_same(install: Install) -> None:
    install(EntryPoint("inkless", "other_plugin:other_layout", LAYOUTS.group))

    assert layout_named("inkless").name == "other"


def test_a_bucket_of_diskless_objects_is_recognised() -> None:
    for keys, is_diskless in (
        (["a/AAAAAAAAAAAAAAAAAAAAAA", "AQIDBAUGBwgJCgsMDQ4PEA"], True),
        (["a/AAAAAAAAAAAAAAAAAAAAAA", "a/notes.txt"], False),
        (["a/AAAAAAAAAAAAAAAAAAAAAB"], False),
    ):
        with pytest.raises(TieredctlError) as raised:
            detect(store_of(*keys))

        assert ("tieredctl diskless" in raised.value.hint) is is_diskless, keys
