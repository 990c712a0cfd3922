"""What docs/wal.md shows of the library runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "wal.md"


def test_the_example_of_the_page_combines_and_reads_back() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    exec(compile(example, str(PAGE), "exec"), {})
