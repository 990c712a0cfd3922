"""Receipts where nothing can be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.ops.orphan_removal.receipts import ReceiptFile


def test_a_device_is_refused_and_not_read_for_ever() -> None:
    for device in ["/dev/full", "/dev/zero", "/dev/null"]:
        with pytest.raises(TieredctlError, match=f"{device} exists and is not a regular file"):
            ReceiptFile.opened(Path(device))
