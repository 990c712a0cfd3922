"""`remote ls` and `remote du` on a captured store."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

SCREENS = Path(__file__).parent / "screens"
TOPIC, TOPIC_ID = "orders7", "Ex-aw3fEQIi3do0H9Y7cKQ"
SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 with aborted transactions, so one with all six objects."""
FIELDS = ["key", "size", "lastModified", "segmentId", "topicId", "partition", "part", "storageClass"]


@pytest.fixture
def store(capture: Path) -> Path:
    return capture / "remote/kafka-tiered-storage"


@pytest.fixture
def strange_store(store: Path, tmp_path: Path) -> Path:
    """A segment's objects, and one that no layout explains, under a name that would colour a terminal."""
    folder = f"{TOPIC}-0-{TOPIC_ID}"
    (tmp_path / folder).mkdir()
    for file in (store / folder).glob(f"*{SEGMENT_ID}*"):
        shutil.copy(file, tmp_path / folder)
    (tmp_path / "\x1b[31mnotes\x9b2J\udcff.txt").write_bytes(b"12345")
    return tmp_path


def sizes(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def test_every_object_is_listed_with_what_its_key_says(store: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", f"file:{store}", "-o", "jsonl")
    rows = list(csv.reader(tieredctl("remote", "ls", "--store", f"file:{store}", "-o", "csv").out.splitlines()))
    items = outcome.lines()
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert [list(item) for item in items] == [FIELDS] * len(items)
    assert {item["key"]: item["size"] for item in items} == sizes(store)
    assert [item["key"] for item in items] == sorted(sizes(store))
    for item in items:
        assert item["key"].split("/")[0].endswith(f"-{item['partition']}-{item['topicId']}")
        assert item["segmentId"] in item["key"]
    parts = ["log", "offset-index", "time-index", "producer-snapshot", "leader-epoch", "transaction-index"]
    assert sorted(item["part"] for item in items if item["segmentId"] == SEGMENT_ID) == sorted(parts)
    assert (rows[0], len(rows)) == (FIELDS, len(sizes(store)) + 1)


def test_a_selection_lists_what_it_names(store: Path, tieredctl: Tieredctl) -> None:
    fields = {"--topic-id": "topicId", "--partition": "partition", "--segment-id": "segmentId"}
    items = tieredctl("remote", "ls", "--store", f"file:{store}", "-o", "jsonl").lines()
    for selection in (
        {"--topic": TOPIC},
        {"--topic-id": TOPIC_ID},
        {"--partition": "1"},
        {"--topic": TOPIC, "--partition": "0"},
        {"--segment-id": SEGMENT_ID},
    ):
        words = [word for pair in selection.items() for word in pair]

        listed = tieredctl("remote", "ls", "--store", f"file:{store}", *words, "-o", "jsonl").lines()

        assert listed, selection
        assert listed == [
            item
            for item in items
            if all(
                item["key"].startswith(f"{value}-") if option == "--topic" else str(item[fields[option]]) == value
                for option, value in selection.items()
            )
        ], selection


def test_usage_adds_up_to_what_is_listed(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    """In its metrics too."""
    metrics = tmp_path / "usage.prom"
    place = ("--store", f"file:{store}")
    usage = tieredctl("remote", "du", *place, "-o", "json", "--metrics-file", metrics).document()
    listed = tieredctl("remote", "ls", *place, "-o", "jsonl").lines()
    by_row: Counter[tuple[object, ...]] = Counter()
    for item in listed:
        by_row[item["topicId"], item["partition"], item["part"]] += item["size"]
    assert {(row["topicId"], row["partition"], row["part"]): row["bytes"] for row in usage["items"]} == by_row
    assert usage["kind"] == "RemoteUsage"
    assert usage["source"] == {"kind": "store", "store": f"file:{store}", "layout": "local"}
    total = sum(sizes(store).values())
    assert usage["summary"] == {"objects": len(listed), "bytes": total, "unexplained": 0, "storageClasses": {}}
    samples = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert float(samples['tieredctl_bytes{command="remote du"}']) == total


def test_an_object_that_no_key_explains_is_listed_with_nulls_and_has_a_row_of_its_own(
    strange_store: Path, tieredctl: Tieredctl
) -> None:
    place = ("--store", f"file:{strange_store}")
    items = tieredctl("remote", "ls", *place, "-o", "jsonl").lines()
    usage, shown = tieredctl("remote", "du", *place, "-o", "jsonl").lines(), tieredctl("remote", "du", *place)

    (strange,) = [item for item in items if item["part"] is None]
    assert (strange["key"], strange["size"]) == ("\x1b[31mnotes\x9b2J\udcff.txt", 5)
    assert [strange[name] for name in ("segmentId", "topicId", "partition")] == [None] * 3
    unknown = dict.fromkeys(("topic", "topicId", "partition", "part"))
    assert usage[-1] == unknown | {"objects": 1, "bytes": 5}
    rows = [line.split("  ")[0] for line in shown.out.splitlines()]
    assert rows == ["TOPIC", TOPIC, "(owner unknown)", "(total)"]
    assert "layout local cannot explain 1 of them" in shown.err


def test_usage_is_drawn_as_wide_as_the_terminal(
    captures: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, width, locale, words in (
        *((f"topic-{width}-columns", width, "C.UTF-8", ()) for width in (80, 200, 40, 28)),
        ("partition-80-columns-ascii", 80, "C", ("--depth", "partition")),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("LC_ALL", locale)

        shown = tieredctl("remote", "du", "--store", f"file:{captures}/aiven-crash-4.3.1/bucket", *words)

        assert shown.out == (SCREENS / f"usage-{name}.txt").read_text(encoding="utf-8"), name
        assert all(len(line) <= width for line in shown.out.splitlines())
        assert (shown.exit_code, shown.err) == (0, "")


def test_each_depth_has_the_same_total(store: Path, tieredctl: Tieredctl) -> None:
    names = ["topic", "partition", "part"]
    for number, depth in enumerate(names):
        usage = tieredctl("remote", "du", "--store", f"file:{store}", "--depth", depth, "-o", "json").document()

        known = names[: number + 1]
        assert sum(item["bytes"] for item in usage["items"]) == usage["summary"]["bytes"] == sum(sizes(store).values())
        assert all([name for name in names if item[name] is not None] == known for item in usage["items"]), depth
        assert len({tuple(item[name] for name in (*names, "topicId")) for item in usage["items"]}) == len(
            usage["items"]
        )


def test_a_topic_that_was_made_again_is_told_apart_by_its_id(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    again = "A" * 22
    for topic_id in (TOPIC_ID, again):
        shutil.copytree(store / f"{TOPIC}-0-{TOPIC_ID}", tmp_path / f"{TOPIC}-0-{topic_id}")

    shown = tieredctl("remote", "du", "--store", f"file:{tmp_path}")

    assert {line.split()[1] for line in shown.out.splitlines()[1:3]} == {TOPIC_ID, again}


def test_what_is_lacking_is_wrong_use_but_for_objects_where_the_layout_is_named(
    tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for verb in ("ls", "du"):
        for options in (
            (),
            ("--store", f"file:{tmp_path}/no"),
            ("--store", f"file:{tmp_path}", "--layout", "no"),
            ("--store", f"file:{tmp_path}"),
            ("--store", "memory:", "--store-option", "x"),
            ("--store", f"file:{tmp_path}", "--store-option", "a=b"),
        ):
            outcome = tieredctl("remote", verb, *options)
            assert (outcome.exit_code, outcome.out) == (2, ""), (verb, options)
    outcome = tieredctl("remote", "ls", "--store", f"file:{tmp_path}", "--layout", "local", "-o", "json")
    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


OF_SEGMENTS = ("segmentId", "topicId", "partition", "part")


@pytest.fixture
def foreign_store(tmp_path: Path) -> str:
    """Objects of somebody else."""
    for name in ("backup/a.tar", "backup/b.tar"):
        path = tmp_path / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return f"file:{tmp_path / 'bucket'}"


def test_objects_are_listed_and_what_is_not_known_of_them_is_null(foreign_store: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", foreign_store, "-o", "jsonl")

    assert outcome.exit_code == 0
    assert [(one["key"], one["size"]) for one in outcome.lines()] == [("backup/a.tar", 5), ("backup/b.tar", 5)]
    assert {one[name] for one in outcome.lines() for name in OF_SEGMENTS} == {None}
    assert outcome.err.startswith("No layout explains the first keys of file:")


def test_what_is_selected_needs_a_layout(foreign_store: str, tmp_path: Path, tieredctl: Tieredctl) -> None:
    """And an empty store is not listed as if it were known."""
    (tmp_path / "empty").mkdir()
    refused = tieredctl("remote", "du", "--store", foreign_store).exit_code
    for words in (
        (foreign_store, "--topic", "orders"),
        (foreign_store, "--partition", "0"),
        (f"file:{tmp_path / 'empty'}",),
    ):
        outcome = tieredctl("remote", "ls", "--store", *words)

        assert (outcome.exit_code, outcome.out) == (refused, ""), words
