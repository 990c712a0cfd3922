"""Support bundles, and what is inside."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.cli.command_line import Outcome, Tieredctl

SECRET = "correct-horse-battery"
SEGMENT = "zYJ8cWbWS6Wrn_UH97CRKw"
"""Of the capture kafka-4.3.1."""


def unpacked(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle) as archive:
        return {
            member.name.removeprefix("tieredctl-support/"): archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
        }


def manifest(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(unpacked(bundle)["manifest.json"])
    return document


def bundled(tieredctl: Tieredctl, to: str | Path, *words: str | Path) -> Outcome:
    return tieredctl("support-bundle", "--to", to, *words)
