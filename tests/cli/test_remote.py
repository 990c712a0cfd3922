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
def store(captures: Path) -> Path:
    return captures / "kafka-4.3.1/remote/kafka-tiered-storage"


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
    items = outcome.lines()
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert [list(item) for item in items] == [FIELDS] * len(items)
    assert {item["key"]: item["size"] for item in items} == sizes(store)
    assert [item["key"] for item in items] == sorted(sizes(store))
    for item in items:
        assert item["key"].split("/")[0].endswith(f"-{item['partition']}-{item['topicId']}")
        assert item["segmentId"] in item["key"]


def test_a_segment_has_its_six_parts(store: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", f"file:{store}", "--segment-id", SEGMENT_ID, "-o", "jsonl")
    parts = ["log", "offset-index", "time-index", "producer-snapshot", "leader-epoch", "transaction-index"]
    assert sorted(item["part"] for item in outcome.lines()) == sorted(parts)


@pytest.mark.parametrize(
    "selection",
    [("--topic", TOPIC), ("--topic-id", TOPIC_ID), ("--partition", "1"), ("--topic", TOPIC, "--partition", "0")],
)
def test_a_selection_lists_what_it_names(store: Path, tieredctl: Tieredctl, selection: tuple[str, ...]) -> None:
    named = dict(zip(selection[::2], selection[1::2], strict=True))
    listed = tieredctl("remote", "ls", "--store", f"file:{store}", *selection, "-o", "jsonl").lines()
    keys = [
        key
        for key in sizes(store)
        if named.get("--topic", TOPIC) == key.split("-")[0]
        or ("--topic" not in named and named.get("--topic-id", "") in key)
    ]
    if "--partition" in named:
        keys = [key for key in keys if f"-{named['--partition']}-" in key.split("/")[0]]
    assert sorted(item["key"] for item in listed) == sorted(keys)
    assert listed


def test_usage_adds_up_to_what_is_listed(store: Path, tieredctl: Tieredctl) -> None:
    usage = tieredctl("remote", "du", "--store", f"file:{store}", "-o", "json").document()
    listed = tieredctl("remote", "ls", "--store", f"file:{store}", "-o", "jsonl").lines()
    by_row: Counter[tuple[object, ...]] = Counter()
    for item in listed:
        by_row[item["topicId"], item["partition"], item["part"]] += item["size"]
    assert {(row["topicId"], row["partition"], row["part"]): row["bytes"] for row in usage["items"]} == by_row
    assert usage["kind"] == "RemoteUsage"
    assert usage["source"] == {"kind": "store", "store": f"file:{store}", "layout": "local"}
    assert usage["summary"] == {
        "objects": len(listed),
        "bytes": sum(sizes(store).values()),
        "unexplained": 0,
        "storageClasses": {},
    }


def test_an_object_that_no_key_explains_is_listed_with_nulls(strange_store: Path, tieredctl: Tieredctl) -> None:
    items = tieredctl("remote", "ls", "--store", f"file:{strange_store}", "-o", "jsonl").lines()
    (strange,) = [item for item in items if item["part"] is None]
    assert strange["key"] == "\x1b[31mnotes\x9b2J\udcff.txt"
    assert strange["size"] == 5
    assert [strange[name] for name in ("segmentId", "topicId", "partition")] == [None] * 3
    usage = tieredctl("remote", "du", "--store", f"file:{strange_store}", "-o", "jsonl").lines()
    assert usage[-1] == {
        "topic": None, "topicId": None, "partition": None, "part": None, "objects": 1, "bytes": 5,
    }  # fmt: skip


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_no_name_acts_upon_the_terminal(strange_store: Path, tieredctl: Tieredctl, output: str) -> None:
    outcome = tieredctl("remote", "ls", "--store", f"file:{strange_store}", "-o", output)
    assert outcome.exit_code == 0
    assert "notes" in outcome.out
    assert (outcome.out + outcome.err).replace("\n", "").isprintable()


def test_csv_has_a_row_for_each_object(store: Path, tieredctl: Tieredctl) -> None:
    rows = list(csv.reader(tieredctl("remote", "ls", "--store", f"file:{store}", "-o", "csv").out.splitlines()))
    assert rows[0] == FIELDS
    assert len(rows) == len(sizes(store)) + 1


def test_people_are_told_the_total(strange_store: Path, tieredctl: Tieredctl) -> None:
    told = tieredctl("remote", "ls", "--store", f"file:{strange_store}")
    assert told.err.startswith("7 objects, ")
    assert told.err.endswith("layout local cannot explain 1 of them.\n")
    assert tieredctl("remote", "ls", "--store", f"file:{strange_store}", "--quiet").err == ""


@pytest.mark.parametrize(
    ("name", "words", "variables"),
    [
        ("topic-80-columns", (), {"COLUMNS": "80", "LC_ALL": "C.UTF-8"}),
        ("topic-200-columns", (), {"COLUMNS": "200", "LC_ALL": "C.UTF-8"}),
        ("topic-40-columns", (), {"COLUMNS": "40", "LC_ALL": "C.UTF-8"}),
        ("topic-28-columns", (), {"COLUMNS": "28", "LC_ALL": "C.UTF-8"}),
        ("partition-80-columns-ascii", ("--depth", "partition"), {"COLUMNS": "80", "LC_ALL": "C"}),
    ],
)
def test_usage_is_drawn_as_wide_as_the_terminal(
    name: str,
    words: tuple[str, ...],
    variables: dict[str, str],
    captures: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    shown = tieredctl("remote", "du", "--store", f"file:{captures}/aiven-crash-4.3.1/bucket", *words)

    assert shown.out == (SCREENS / f"usage-{name}.txt").read_text(encoding="utf-8")
    assert all(len(line) <= int(variables["COLUMNS"]) for line in shown.out.splitlines())
    assert (shown.exit_code, shown.err) == (0, "")


def test_an_object_without_an_owner_has_a_row_that_says_so(strange_store: Path, tieredctl: Tieredctl) -> None:
    shown = tieredctl("remote", "du", "--store", f"file:{strange_store}")

    rows = [line.split("  ")[0] for line in shown.out.splitlines()]
    assert rows == ["TOPIC", TOPIC, "(owner unknown)", "(total)"]
    assert "layout local cannot explain 1 of them" in shown.err


@pytest.mark.parametrize("depth", ["topic", "partition", "part"])
def test_each_depth_has_the_same_total(depth: str, store: Path, tieredctl: Tieredctl) -> None:
    usage = tieredctl("remote", "du", "--store", f"file:{store}", "--depth", depth, "-o", "json").document()

    names = ["topic", "partition", "part"]
    known = names[: names.index(depth) + 1]
    assert sum(item["bytes"] for item in usage["items"]) == usage["summary"]["bytes"] == sum(sizes(store).values())
    assert all([name for name in names if item[name] is not None] == known for item in usage["items"])
    assert len({tuple(item[name] for name in (*names, "topicId")) for item in usage["items"]}) == len(usage["items"])


def test_a_topic_that_was_made_again_is_told_apart_by_its_id(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    again = "A" * 22
    for topic_id in (TOPIC_ID, again):
        shutil.copytree(store / f"{TOPIC}-0-{TOPIC_ID}", tmp_path / f"{TOPIC}-0-{topic_id}")

    shown = tieredctl("remote", "du", "--store", f"file:{tmp_path}")

    assert {line.split()[1] for line in shown.out.splitlines()[1:3]} == {TOPIC_ID, again}


def test_usage_leaves_metrics(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    metrics = tmp_path / "usage.prom"
    tieredctl("remote", "du", "--store", f"file:{store}", "--metrics-file", metrics)
    samples = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert float(samples['tieredctl_bytes{command="remote du"}']) == sum(sizes(store).values())


@pytest.mark.parametrize("words", [("remote", "ls"), ("remote", "du")])
def test_what_is_lacking_is_reported_in_a_sentence(
    words: tuple[str, str], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    lacking = {
        "No store was given.": (),
        f"There is no {tmp_path}/no.": ("--store", f"file:{tmp_path}/no"),
        "There is no layout 'no'; installed are: ": ("--store", f"file:{tmp_path}", "--layout", "no"),
        f"file:{tmp_path} holds no object that shows its layout.": ("--store", f"file:{tmp_path}"),
        "--store-option 'x' is not NAME=VALUE.": ("--store", "memory:", "--store-option", "x"),
        "A file: store has no option 'a'.": ("--store", f"file:{tmp_path}", "--store-option", "a=b"),
    }
    for sentence, options in lacking.items():
        outcome = tieredctl(*words, *options)
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"tieredctl: {sentence}")


def test_an_empty_store_is_not_an_error_where_the_layout_is_named(tmp_path: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", f"file:{tmp_path}", "--layout", "local", "-o", "json")
    assert outcome.exit_code == 0
    assert outcome.document()["items"] == []
