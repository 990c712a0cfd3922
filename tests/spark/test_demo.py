"""`tieredctl demo` where there is Spark."""

from __future__ import annotations

import pytest

from tests.cli.command_line import own_process

pytestmark = pytest.mark.spark


def test_spark_finds_the_same_row_for_row(spark: object) -> None:
    outcome = own_process("demo")

    assert (outcome.exit_code, outcome.err) == (0, "")
    assert "\nEqual to found.json, row for row: 5 findings in 172 segments, " in outcome.out
    assert "Skipped" not in outcome.out
