"""What the tables of a page have, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def rows_of(page: Path, number: int) -> list[list[Any]]:
    """The rows of one of a page's tables."""
    (found,) = re.findall(rf'<script type="application/json" id="rows-{number}">(.*?)</script>', page.read_text())
    rows: list[list[Any]] = json.loads(found)
    return rows
