"""What a store answered, in short."""

from __future__ import annotations

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import ObjectStore


def keys_of(store: ObjectStore, prefix: str = "", start_after: str = "") -> list[str]:
    """Those that a listing has, in its order."""
    return [stored.key for stored in store.list(prefix, start_after)]


def code_of(raised: pytest.ExceptionInfo[TieredctlError]) -> str:
    """The code of an error."""
    return raised.value.kind.code
