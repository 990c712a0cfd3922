"""What a test does when a rig cannot be had: skip where a person sees it, fail where nobody looks."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def rig_unavailable(reason: str) -> NoReturn:
    """End the requesting test: a failure when the environment variable `CI` is set, else a skip that names `reason`."""
    if os.environ.get("CI"):
        pytest.fail(f"a rig is missing, and under CI that is a failure: {reason}", pytrace=False)
    pytest.skip(f"rig unavailable: {reason}")
