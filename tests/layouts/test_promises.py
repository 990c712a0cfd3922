"""What every layout promises (tieredctl.ports.layout), tried on each that is installed with tieredctl."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.keys import ENVIRONMENT_VARIABLE, PrivateKeys

from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tieredctl.layouts.registry import layout_named
from tieredctl.ports.layout import Layout
from tieredctl.testing.layouts import CopySegment, LayoutContract


@dataclass(frozen=True)
class AivenCase:
    """Aiven's layout, and how its storage manager was configured."""

    manager: AivenStorageManager
    key_prefix: str = ""

    def layout(self) -> AivenLayout:
        return AivenLayout(self.key_prefix, keys=PrivateKeys((private_key(),)))


CASES = [
    AivenCase(AivenStorageManager()),
    AivenCase(AivenStorageManager(compression=True), "a/prefix/"),
    AivenCase(AivenStorageManager(encryption=True), "no-folder"),
    AivenCase(AivenStorageManager(compression=True, encryption=True)),
]


class TestLocalLayout(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return layout_named("local")


@pytest.mark.parametrize("case", CASES, ids=str)
class TestAivenLayout(LayoutContract):
    @pytest.fixture
    def layout(self, case: AivenCase, monkeypatch: pytest.MonkeyPatch) -> Layout:
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, private_key())
        return case.layout()

    @pytest.fixture
    def copy_segment(self, case: AivenCase) -> CopySegment:
        layout = case.layout()
        return lambda store, segment, parts: case.manager.copy_segment(store, layout, segment, parts)
