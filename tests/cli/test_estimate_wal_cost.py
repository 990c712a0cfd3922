"""`estimate wal-cost`: KIP-1176's table on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl


def test_without_options_the_command_gives_the_kips_own_figures(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "wal-cost", "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 0
    assert (summary["before"], summary["after"], summary["saving"]) == (2478, 1424, 0.4253)


def test_the_table_is_for_people_with_its_notes_beside(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("estimate", "wal-cost")

    assert outcome.out.splitlines()[0].split() == ["LINE", "BEFORE", "AFTER", "COUNTED"]
    assert "2478 dollars a month per broker before, 1424 after: 43% saved" in outcome.err
    assert "30 MB/s are 108 GB an hour" in outcome.err


def test_the_prices_of_a_file_replace_the_kips(tmp_path: Path, tieredctl: Tieredctl) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("perThousandPuts: 0.00113\nuploadPerGb: 0.0032\nfreeBytesPerRequest: 0\n")

    outcome = tieredctl("estimate", "wal-cost", "--price-file", file, "-o", "json")

    lines = {row["line"]: row["after"] for row in outcome.document()["items"]}
    assert (lines["write requests"], lines["upload"], lines["instance"]) == (292.9, 257.96, 650.88)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--inbound", "fast"), "is not a number of bytes"),
        (("--inbound", "999999TB"), "out of range"),
        (("--upload-interval", "0ms"), "out of range"),
        (("--upload-bytes", "0"), "out of range"),
        (("--wal-retention", "soon"), "is not a duration"),
        (("--replication-factor", "0"), "replication-factor"),
        (("--price-file", "/nowhere/prices.yaml"), "cannot be read"),
    ],
)
def test_what_cannot_be_estimated_ends_in_a_sentence(
    words: tuple[str, ...], message: str, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("estimate", "wal-cost", *words)

    assert outcome.exit_code in (1, 2)
    assert message in outcome.err
