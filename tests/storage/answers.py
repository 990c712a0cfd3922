"""What a store answered, in short."""

from __future__ import annotations

import pytest

from tieredctl.errors import TieredctlError


def code_of(raised: pytest.ExceptionInfo[TieredctlError]) -> str:
    """The code of an error."""
    return raised.value.code
