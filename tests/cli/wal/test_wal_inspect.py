"""`tieredctl wal inspect` and `explain`: what is where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import EVENTS, FIRST, objects


def test_inspect_shows_which_offsets_are_where(uploaded: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("wal", "inspect", "--store", f"file:{uploaded}", "-o", "json")

    document = outcome.document()
    segments = [segment for row in document["items"] for segment in row["segments"]]
    of_first = [(one["startOffset"], one["endOffset"]) for one in segments if one["topic"] == "orders"]
    assert outcome.exit_code == 0
    assert {row["state"] for row in document["items"]} == {"COPY_SEGMENT_FINISHED"}
    assert [offset for start, end in of_first[:-1] for offset in range(start, end + 1)][:6] == list(range(6))
    for row in document["items"]:
        last = row["segments"][-1]
        assert (last["endFilePosition"] + 1, row["brokerId"]) == (row["size"], 7)


def test_inspect_filters_and_has_every_format(uploaded: Path, tieredctl: Tieredctl) -> None:
    words = ("wal", "inspect", "--store", f"file:{uploaded}", "--topic", "other")

    lines = tieredctl(*words, "-o", "jsonl").lines()

    assert all(any(one["topic"] == "other" for one in line["segments"]) for line in lines)
    for output in ("table", "wide", "csv", "yaml"):
        assert tieredctl(*words, "-o", output).out


@pytest.mark.parametrize("offset", [0, 2, 3, 5])
def test_explain_names_the_object_and_the_bytes_that_serve_an_offset(
    offset: int, uploaded: Path, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("wal", "explain", f"orders:0@{offset}", "--store", f"file:{uploaded}", "-o", "json")

    assert outcome.exit_code == 0
    for row in outcome.document()["items"]:
        data = (uploaded / row["key"]).read_bytes()
        assert data[row["batchPosition"] : row["batchPosition"] + row["batchBytes"]] == FIRST[offset]
        assert (row["source"], row["leaderEpoch"]) == ("wal", offset // 3)
        assert row["startFilePosition"] <= row["batchPosition"] <= row["endFilePosition"]


def test_explain_says_where_no_object_serves(uploaded: Path, tieredctl: Tieredctl) -> None:
    words = ("wal", "explain", "--store", f"file:{uploaded}", "-o", "json")
    at_end, below = tieredctl(*words, "orders:0@6"), tieredctl(*words, "other:0@9")

    assert [row["source"] for row in at_end.document()["items"]] == ["waits-for-records"] * 2
    assert (at_end.exit_code, below.exit_code) == (3, 3)
    assert [row["source"] for row in below.document()["items"]] == ["OFFSET_OUT_OF_RANGE"] * 2
    assert tieredctl(*words, "typo:0@1").exit_code == tieredctl(*words, "orders:0").exit_code == 2
    for object_file in objects(uploaded):
        object_file.unlink()
    assert tieredctl(*words, "orders:0@0").exit_code == 4


def test_an_object_without_events_is_shown_by_its_own_index(uploaded: Path, tieredctl: Tieredctl) -> None:
    for file in (uploaded / EVENTS).iterdir():
        file.unlink()

    rows = tieredctl("wal", "inspect", "--store", f"file:{uploaded}", "-o", "jsonl").lines()

    assert {(row["state"], row["index"]) for row in rows} == {(None, "read")}
    assert sum(len(row["segments"]) for row in rows) > 2
