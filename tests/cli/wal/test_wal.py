"""`tieredctl wal`: what all of its commands have in common."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tieredctl_proposals.wal.sections import queue_item

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import (
    EVENTS,
    FIRST,
    cut,
    flip_last,
    objects,
    remove,
    restored,
    store_upload,
    upload_words,
)
from tests.wal.killed_store import Killed, killed_after
from tests.wal.local_partitions import ORDERS, OTHER, batch
from tieredctl.formats.record_batches import Record, encode_batch


def rows_of(output: str, out: str) -> list[dict[str, Any]]:
    """What a machine reads of an answer."""
    if output == "csv":
        return list(csv.DictReader(out.splitlines()))
    if output == "jsonl":
        return [json.loads(line) for line in out.splitlines()]
    return list(yaml.safe_load(out)["items"])


OF_COMMANDS: dict[str, tuple[tuple[str, ...], int, str, list[object]]] = {
    "inspect": ((), 0, "state", ["COPY_SEGMENT_FINISHED"] * 4),
    "verify": ((), 4, "code", ["wal-object-missing"]),
    "explain": (("orders:0@5",), 0, "reader", ["follower", "consumer"]),
    "upload": (("--log-dir", "logs"), 0, "startOffset", [6]),
    "restore": (("--topic", "orders", "--to", "to"), 0, "endOffset", [5, 1]),
}


def test_every_command_has_every_format(
    log_dir: Path, uploaded: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log_dir / "orders-0" / f"{0:020d}.log").write_bytes(b"".join([*FIRST, batch(6, epoch=1)]))
    next(file for file in objects(uploaded) if b"orders" not in file.read_bytes()).unlink()
    monkeypatch.chdir(log_dir.parent)
    for command, (words, code, field, expected) in OF_COMMANDS.items():
        for output in ("table", "wide", "json", "jsonl", "yaml", "csv"):
            outcome = tieredctl("wal", command, *words, "--store", f"file:{uploaded}", "-o", output)

            assert outcome.exit_code == code, (command, output, outcome.err)
            if (command, output) == ("verify", "table"):
                assert outcome.out.startswith(f"critical: {expected[0]}: ")
            elif output in ("table", "wide"):
                _, *lines = outcome.out.splitlines()
                assert all(str(value) in line.split() for value, line in zip(expected, lines, strict=True)), command
            else:
                found = [str(row[field]) for row in rows_of(output, outcome.out)]
                assert found == [str(value) for value in expected], (command, output)
            shutil.rmtree("to", ignore_errors=True)


def first_file(store: Path) -> Path:
    return min((store / EVENTS).iterdir())


def last_file(store: Path) -> Path:
    return max((store / EVENTS).iterdir())


def empty_last(store: Path) -> None:
    last_file(store).write_bytes(b"")


def add_strange(store: Path) -> None:
    strange = encode_batch([Record(9999, 1, None, b"?")])
    (store / EVENTS / f"{9999:020d}.log").write_bytes(strange)


OF_EVENTS: dict[str, Callable[[Path], None]] = {
    "begin later": lambda store: remove(first_file(store)),
    "are cut short": lambda store: cut(last_file(store)),
    "are altered": lambda store: flip_last(last_file(store)),
    "are of no bytes": empty_last,
    "are none": add_strange,
}


@pytest.mark.parametrize("fault", OF_EVENTS)
def test_by_events_that(fault: str, uploaded: Path, log_dir: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    """…, nothing is restored and nothing uploaded, and no verification is complete."""
    OF_EVENTS[fault](uploaded)
    before = sorted(path for path in uploaded.rglob("*") if ".tieredctl" not in str(path))

    verified = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "json")
    upload = tieredctl(*upload_words(log_dir, uploaded), "--apply")

    assert not verified.document()["summary"]["complete"]
    assert verified.exit_code in (4, 5)
    assert (upload.exit_code, restored(tieredctl, uploaded, tmp_path / "to")) == (5, 5)
    assert not (tmp_path / "to").exists()
    assert sorted(path for path in uploaded.rglob("*") if ".tieredctl" not in str(path)) == before


def test_what_is_typed_wrong_is_refused(uploaded: Path, log_dir: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    memory = ("--store", "memory:")
    for words in (
        ("inspect",),
        ("inspect", "--store", "foo:bar"),
        ("verify", *memory, "--level", "deep"),
        ("restore", *memory, "--to", "/nowhere/to"),
        ("restore", *memory, "--to", ""),
        ("upload", "--log-dir", "/nowhere", *memory),
        ("upload", "--log-dir", "/proc", *memory, "--upload-bytes", "0"),
        ("upload", "--log-dir", "/proc", *memory, "--upload-bytes", "9TB"),
        ("restore", "--store", f"file:{uploaded}", "--to", tmp_path / "to", "--topic", "typo"),
        (*upload_words(log_dir, uploaded)[1:], "--topic", "typo"),
    ):
        assert tieredctl("wal", *words)[:2] == (2, ""), words


def test_an_empty_store_is_not_intact(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    (store / ".tieredctl").mkdir()
    inspected = tieredctl("wal", "inspect", "--store", f"file:{store}")
    verified = tieredctl("wal", "verify", "--store", f"file:{store}", "-o", "json")

    assert (inspected.exit_code, verified.exit_code, verified.out) == (0, 2, "")
    for outcome in (inspected, verified):
        assert "has no combined objects, and no events of any" in outcome.err
    assert restored(tieredctl, store, tmp_path / "to") == 2


def test_whether_an_upload_is_stuck_that_began_after_now_is_unknown(
    log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, suppress(Killed):
        killed_after(patched, 4)
        tieredctl(*upload_words(log_dir, store), "--apply")
    words = ("wal", "verify", "--store", f"file:{store}", "-o", "jsonl")

    stuck, unknown = tieredctl(*words, "--older-than", "0s"), tieredctl(*words, "--now", "2001-01-01T00:00:00Z")

    assert "wal-upload-unfinished" in {one["code"] for one in stuck.lines()}
    assert (unknown.exit_code, [one["code"] for one in unknown.lines()]) == (5, ["check-not-made"])


def test_segments_of_two_partitions_may_have_one_id(store: Path, tieredctl: Tieredctl) -> None:
    items = [
        queue_item(one, OTHER.topic_id, batches, broker_id=1, leader_epoch=0, event_timestamp_ms=1)
        for one, batches in ((ORDERS[0], FIRST[0]), (ORDERS[1], FIRST[0] + FIRST[1]))
    ]
    store_upload(store, *items)

    verified = tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full", "-o", "json")
    (row,) = tieredctl("wal", "inspect", "--store", f"file:{store}", "-o", "jsonl").lines()

    assert (verified.exit_code, verified.document()["items"]) == (0, [])
    assert [(one["partition"], one["endOffset"]) for one in row["segments"]] == [(0, 0), (1, 1)]


def flip_first_batch(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)


OF_OBJECTS: dict[str, tuple[Callable[[Path], None], str, int, str]] = {
    "gone": (remove, "listing", 4, "wal-object-missing"),
    "cut short": (cut, "listing", 4, "wal-object-damaged"),
    "with another index": (flip_first_batch, "headers", 4, "wal-object-damaged"),
    "with another last byte": (flip_last, "full", 4, "wal-object-damaged"),
}


def test_an_object_is_found_to_be_broken_and_what_is_sound_has_no_findings(
    uploaded: Path, tieredctl: Tieredctl
) -> None:
    words, first = ("wal", "verify", "--store", f"file:{uploaded}", "-o", "json", "--level"), objects(uploaded)[0]
    whole = first.read_bytes()
    for level in ("listing", "headers", "full"):
        outcome = tieredctl(*words, level)
        assert (outcome.exit_code, outcome.document()["items"]) == (0, []), level
    for fault, (break_it, level, code, finding) in OF_OBJECTS.items():
        break_it(first)

        outcome = tieredctl(*words, level)

        assert outcome.finding(code)["code"] == finding, fault
        assert outcome.document()["summary"]["complete"], fault
        first.write_bytes(whole)


def test_a_strangers_object_needs_attention(uploaded: Path, tieredctl: Tieredctl) -> None:
    (uploaded / "notes.txt").write_text("?")

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "json")

    assert outcome.finding(3)["code"] == "wal-object-unreferenced"


def test_of_a_bucket_that_is_given_by_mistake_not_all_objects_are_findings(store: Path, tieredctl: Tieredctl) -> None:
    for number in range(1_100):
        (store / f"{number}.log").touch()

    document = tieredctl("wal", "verify", "--store", f"file:{store}", "-o", "json").document()

    assert (document["summary"]["otherObjects"], len(document["items"])) == (1_100, 1_000)
