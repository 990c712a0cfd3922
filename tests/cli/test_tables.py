"""Tables as people read them: they fit the terminal, sizes have units, and moments are so long ago."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.output import Item, TableColumn, write_table
from tieredctl.cli.shown_quantities import ago, moment_column, size_column
from tieredctl.model.quantities import age_text, size_text
from tieredctl.ops.remote.inventory import iso_8601

COLUMNS = (
    TableColumn("TOPIC", "topic"),
    size_column("size"),
    TableColumn("EPOCHS", "epochs", importance=0),
    TableColumn("STATE", "state"),
    TableColumn("KEY", "key", importance=2),
)
ITEMS: list[Item] = [
    {"topic": "orders", "size": 1_034_676, "epochs": "0=0,2=7", "state": "FINISHED", "key": "k" * 20},
    {"topic": "a", "size": None, "epochs": "0=0", "state": "STARTED", "key": "k"},
]


def table(width: int | None, *, wide: bool = False) -> tuple[list[str], list[str]]:
    out = io.StringIO()
    left_out = write_table(COLUMNS, ITEMS, out, wide=wide, width=width)
    return out.getvalue().splitlines(), list(left_out)


def test_columns_are_left_out_where_a_line_would_not_fit() -> None:
    for width, left_out in (
        (None, []),
        (59, []),
        (58, ["EPOCHS"]),
        (50, ["EPOCHS"]),
        (49, ["EPOCHS", "STATE"]),
        (40, ["EPOCHS", "STATE"]),
        (39, ["SIZE", "EPOCHS", "STATE"]),
        (28, ["SIZE", "EPOCHS", "STATE"]),
        (27, ["EPOCHS"]),
    ):
        lines, missing = table(width)

        assert missing == left_out, width
        assert (lines[0].startswith("TOPIC"), lines[0].endswith("KEY")) == (True, True), width
        if width is not None and width >= 28:
            assert max(map(len, lines)) <= width


def test_sizes_have_units_are_right_aligned_and_exact_in_a_wide_table() -> None:
    assert table(None)[0][1].split()[1:3] == ["1010.4", "KiB"]
    assert table(None, wide=True)[0][1].split()[1] == "1034676"
    assert table(None)[0][2].split()[1] == "-"
    out = io.StringIO()
    write_table([size_column("n")], [{"n": 5}, {"n": 5_000_000}, {"n": 5 << 40}], out, wide=False)
    assert out.getvalue() == "   SIZE\n    5 B\n4.8 MiB\n5.0 TiB\n"


def test_a_size_has_the_unit_that_keeps_it_short_and_an_age_is_never_more_than_it_is() -> None:
    sizes = {0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1024 * 1024 - 1: "1.0 MiB", 1 << 30: "1.0 GiB"}
    for size, text in {**sizes, -2048: "-2.0 KiB", 1 << 63: "8.0 EiB"}.items():
        assert size_text(size) == text
    hour = 3_600_000
    ages = {0: "0s", 119_999: "119s", 120_000: "2min", 2 * hour - 1: "119min", 15 * hour: "15h", 48 * hour: "2d"}
    for age_ms, text in ages.items():
        assert age_text(age_ms) == text


def test_a_moment_is_so_long_ago_whether_iso_or_milliseconds() -> None:
    moment = clock_ms() - 15 * 3_600_000 - 60_000

    assert ago(moment) == ago(str(iso_8601(moment))) == "15h ago"
    assert ago(clock_ms() + 7_300_000) == "in 2h"
    assert moment_column("OLDEST", "oldest").text({"oldest": None}, wide=False) == "-"


def test_what_is_left_out_is_said_once_and_wide_has_all(
    captures: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("metadata", "segments", "--log-dir", captures / "kafka-4.3.1" / "data", "--topic", "slow7")

    narrow, wide, machine = tieredctl(*words), tieredctl(*words, "-o", "wide"), tieredctl(*words, "-o", "json")

    assert max(map(len, narrow.out.splitlines())) <= 80
    said = " ".join(narrow.err.split())
    assert said == "Left out, since the terminal is narrow: EPOCHS, STATE. -o wide shows all columns."
    assert "EPOCHS" in wide.out
    assert wide.err == ""
    assert [item["segmentSizeInBytes"] for item in machine.document()["items"]] == [1_034_676, 993_661]
    assert tieredctl(*words, "--quiet").err == ""
