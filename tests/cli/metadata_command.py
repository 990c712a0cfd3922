"""What a `tieredctl metadata …` command left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.metadata_logs import FIRST_TIMESTAMP_MS

CLEAN, FAILURE, USAGE, FINDINGS, CORRUPTION, INCOMPLETE = 0, 1, 2, 3, 4, 5
NOW = ("--now", str(FIRST_TIMESTAMP_MS + 2 * 3_600_000))


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def codes(self) -> list[str]:
        """The codes of the findings in the document."""
        return [finding["code"] for finding in self.document["summary"]["findings"]]


Metadata = Callable[..., Outcome]
"""`metadata("segments", "--log-dir", path)` and so on."""
