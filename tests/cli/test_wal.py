"""`tieredctl wal`: brokers' active segments into combined objects and out again, and everything that can be wrong."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_line import Tieredctl
from tests.wal.killed_store import Killed, killed_after
from tests.wal.local_partitions import CLUSTER_ID, ORDERS, OTHER, batch, write_partition
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.wal import restore
from tieredctl.ops.wal.contents import read_events
from tieredctl.ops.wal.event_log import EventLog
from tieredctl.ops.wal.restored_log import RestoredLog, write_log
from tieredctl.storage.file import FileStore
from tieredctl.storage.protocol import ObjectStore
from tieredctl.wal.deletion import deletion_steps
from tieredctl.wal.sections import queue_item
from tieredctl.wal.steps import Publish, PutObject
from tieredctl.wal.upload import upload_steps

FIRST = [batch(offset, epoch=offset // 3) for offset in range(6)]
SECOND = [batch(offset, size=300) for offset in range(10, 14)]
CONFIRMED = ("--yes", "--cluster-id", CLUSTER_ID)
EVENTS = "__remote_wal_log_metadata-0"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two partitions of orders, and one of another topic that begins at offset 10."""
    folder = tmp_path / "logs"
    write_partition(folder, ORDERS[0], FIRST)
    write_partition(folder, ORDERS[1], FIRST[:2])
    write_partition(folder, OTHER, SECOND, base=10)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


@pytest.fixture
def uploaded(log_dir: Path, store: Path, tieredctl: Tieredctl) -> Path:
    """The store after an upload into several objects."""
    outcome = tieredctl(*upload_words(log_dir, store), "--upload-bytes", "400", "--apply")
    assert outcome.exit_code == 0, outcome.err
    assert len(objects(store)) > 2
    return store


def upload_words(log_dir: Path, store: Path) -> tuple[str | Path, ...]:
    return "wal", "upload", "--log-dir", log_dir, "--store", f"file:{store}"


def objects(store: Path) -> list[Path]:
    return sorted(store.glob("*.wal"))


def restored(tieredctl: Tieredctl, store: Path, to: Path, *words: str) -> tuple[int, str]:
    """`other` begins above offset 0."""
    given = ("--store", f"file:{store}", "--to", to, "--untiered-topic", "other")
    outcome = tieredctl("wal", "restore", *given, *words)
    return outcome.exit_code, outcome.err


def test_without_apply_an_upload_is_only_planned(log_dir: Path, store: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*upload_words(log_dir, store), "-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, list(store.iterdir())) == (0, [])
    assert [(row["topic"], row["partition"], row["startOffset"], row["endOffset"]) for row in document["items"]] == [
        ("orders", 0, 0, 5),
        ("orders", 1, 0, 1),
        ("other", 0, 10, 13),
    ]
    assert (document["summary"]["objects"], document["summary"]["applied"]) == (1, False)


def test_what_is_restored_has_the_bytes_of_what_was_uploaded(
    log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 0

    logs = {file.relative_to(log_dir): file.read_bytes() for file in log_dir.glob("*/*.log")}
    assert {file.relative_to(tmp_path / "to"): file.read_bytes() for file in tmp_path.glob("to/*/*.log")} == logs
    assert (tmp_path / "to/orders-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 3\n"
    assert (tmp_path / "to/orders-0/partition.metadata").read_text().endswith(ORDERS[0].topic_id)


def test_only_what_is_new_is_uploaded(log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    before = objects(uploaded)
    log = log_dir / "orders-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + batch(6, epoch=1))

    again = tieredctl(*upload_words(log_dir, uploaded), "--apply", "-o", "json").document()

    assert [(row["topic"], row["startOffset"], row["endOffset"]) for row in again["items"]] == [("orders", 6, 6)]
    assert len(objects(uploaded)) == len(before) + 1
    assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 0
    assert (tmp_path / "to/orders-0" / log.name).read_bytes() == log.read_bytes()


def test_closed_segments_are_uploaded_when_asked(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    write_partition(tmp_path / "logs", ORDERS[0], FIRST[:2], FIRST[2:])

    active = tieredctl(*upload_words(tmp_path / "logs", store), "-o", "jsonl").lines()
    everything = tieredctl(*upload_words(tmp_path / "logs", store), "--all-segments", "-o", "jsonl").lines()

    assert [(row["startOffset"], row["endOffset"]) for row in (*active, *everything)] == [(2, 5), (0, 5)]


def test_of_replicas_the_one_of_the_latest_leader_is_uploaded(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(tmp_path / "longer", ORDERS[0], [batch(offset) for offset in range(9)])
    write_partition(tmp_path / "later", ORDERS[0], FIRST)

    words = upload_words(tmp_path / "longer", store)
    rows = tieredctl(*words, "--log-dir", tmp_path / "later", "-o", "jsonl").lines()

    assert [(row["startOffset"], row["endOffset"]) for row in rows] == [(0, 5)]


def test_an_incomplete_last_batch_is_left_out_and_other_damage_reported(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    torn = write_partition(tmp_path / "logs", ORDERS[0], FIRST) / f"{0:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    damaged = write_partition(tmp_path / "logs", ORDERS[1], FIRST) / f"{0:020d}.log"
    damaged.write_bytes(FIRST[0] + FIRST[1][:-1] + b"?" + FIRST[2])

    outcome = tieredctl(*upload_words(tmp_path / "logs", store), "--apply", "-o", "jsonl")

    assert outcome.exit_code == 4
    assert [(row["partition"], row["endOffset"]) for row in outcome.lines()] == [(0, 4), (1, 0)]
    assert "wal-log-damaged" in outcome.err


def test_a_log_that_ends_before_what_is_uploaded_adds_nothing(
    log_dir: Path, uploaded: Path, tieredctl: Tieredctl
) -> None:
    (log_dir / "orders-0" / f"{0:020d}.log").write_bytes(FIRST[0])

    outcome = tieredctl(*upload_words(log_dir, uploaded), "--apply", *CONFIRMED)

    assert outcome.exit_code == 4
    assert "wal-log-behind" in outcome.err
    assert "wal-log-damaged" in outcome.err


def test_a_new_leaders_log_replaces_what_it_does_not_have(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    """KIP-1176, "Leader Failover and Recovery in an AZ Outage": B1 uploaded up to offset 10, B2 has 5 and goes on."""
    old = [batch(offset) for offset in range(11)]
    new = [*old[:6], *(batch(offset, epoch=1, size=50) for offset in range(6, 14))]
    write_partition(tmp_path / "b1", ORDERS[0], old)
    write_partition(tmp_path / "b2", ORDERS[0], new)
    of_b1 = (*upload_words(tmp_path / "b1", store), "--upload-bytes", "300", "--apply")
    assert tieredctl(*of_b1).exit_code == 0

    outcome = tieredctl(*upload_words(tmp_path / "b2", store), "--apply", *CONFIRMED, "-o", "json")

    assert outcome.exit_code == 0, outcome.err
    assert outcome.document()["summary"]["deleted"] > 0
    assert restored(tieredctl, store, tmp_path / "to")[0] == 0
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(new)
    assert tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full").exit_code == 0
    again = tieredctl(*of_b1)
    assert again.exit_code == 3
    assert "wal-log-behind" in again.err


def test_of_a_topic_that_was_made_again_one_is_chosen_by_its_id(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    made_again = TopicIdPartition(OTHER.topic_id, "orders", 0)
    for folder, partition, batches in (("a", ORDERS[0], FIRST[:1]), ("b", made_again, FIRST[:2])):
        write_partition(tmp_path / folder, partition, batches)
        assert tieredctl(*upload_words(tmp_path / folder, store), "--apply").exit_code == 0

    both = restored(tieredctl, store, tmp_path / "to")
    one = restored(tieredctl, store, tmp_path / "to", "--topic-id", OTHER.topic_id)

    assert (both[0], one[0]) == (2, 0)
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(FIRST[:2])
    inspect = ("wal", "inspect", "--store", f"file:{store}", "-o", "jsonl")
    assert len(tieredctl(*inspect, "--topic-id", ORDERS[0].topic_id).lines()) == 1


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


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_last(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


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


@pytest.mark.parametrize("fault", OF_OBJECTS)
def test_an_object_is_found_to_be(fault: str, uploaded: Path, tieredctl: Tieredctl) -> None:
    break_it, level, code, finding = OF_OBJECTS[fault]
    break_it(objects(uploaded)[0])

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", level, "-o", "json")

    assert outcome.finding(code)["code"] == finding
    assert outcome.document()["summary"]["complete"]


@pytest.mark.parametrize("level", ["listing", "headers", "full"])
def test_what_is_sound_has_no_findings_at_any_level(level: str, uploaded: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", level, "-o", "json")

    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


def test_a_strangers_object_needs_attention(uploaded: Path, tieredctl: Tieredctl) -> None:
    (uploaded / "notes.txt").write_text("?")

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "json")

    assert outcome.finding(3)["code"] == "wal-object-unreferenced"


def test_of_a_bucket_that_is_given_by_mistake_not_all_objects_are_findings(store: Path, tieredctl: Tieredctl) -> None:
    for number in range(1_100):
        (store / f"{number}.log").touch()

    document = tieredctl("wal", "verify", "--store", f"file:{store}", "-o", "json").document()

    assert (document["summary"]["otherObjects"], len(document["items"])) == (1_100, 1_000)


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


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
@pytest.mark.parametrize("command", OF_COMMANDS)
def test_every_command_has_every_format(
    command: str,
    output: str,
    log_dir: Path,
    uploaded: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (log_dir / "orders-0" / f"{0:020d}.log").write_bytes(b"".join([*FIRST, batch(6, epoch=1)]))
    next(file for file in objects(uploaded) if b"orders" not in file.read_bytes()).unlink()
    monkeypatch.chdir(log_dir.parent)
    words, code, field, expected = OF_COMMANDS[command]

    outcome = tieredctl("wal", command, *words, "--store", f"file:{uploaded}", "-o", output)

    assert outcome.exit_code == code, outcome.err
    if output in ("table", "wide"):
        _, *lines = outcome.out.splitlines()
        assert [str(value) in line.split() for value, line in zip(expected, lines, strict=True)] == [True] * len(lines)
    else:
        assert [str(row[field]) for row in rows_of(output, outcome.out)] == [str(value) for value in expected]


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
    assert upload.exit_code == 5
    assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 5
    assert not (tmp_path / "to").exists()
    assert sorted(path for path in uploaded.rglob("*") if ".tieredctl" not in str(path)) == before


def test_a_partition_with_missing_offsets_is_restored_only_when_asked(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    log = write_partition(tmp_path / "logs", ORDERS[0], FIRST[:2]) / f"{0:020d}.log"
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--apply").exit_code == 0
    log.rename(log.with_name(f"{4:020d}.log")).write_bytes(FIRST[4] + FIRST[5])
    making_a_gap = tieredctl(*upload_words(tmp_path / "logs", store), "--apply")
    assert making_a_gap.exit_code == 4
    assert "no combined object holds offsets 2 to 3" in making_a_gap.err

    refused = restored(tieredctl, store, tmp_path / "to")

    assert refused[0] == 4
    assert "no combined object holds offsets 2 to 3" in refused[1]
    assert not (tmp_path / "to").exists()
    assert restored(tieredctl, store, tmp_path / "to", "--with-gaps")[0] == 4
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join((*FIRST[:2], *FIRST[4:]))


def test_where_the_events_are_lost_the_objects_alone_are_enough(
    log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for file in (uploaded / EVENTS).iterdir():
        file.unlink()

    refused = restored(tieredctl, uploaded, tmp_path / "to")

    assert refused[0] == 2
    assert "give --without-events" in refused[1]
    assert restored(tieredctl, uploaded, tmp_path / "to", "--without-events")[0] == 0
    logs = {file.relative_to(log_dir): file.read_bytes() for file in log_dir.glob("*/*.log")}
    assert {file.relative_to(tmp_path / "to"): file.read_bytes() for file in tmp_path.glob("to/*/*.log")} == logs


def test_a_damaged_object_restores_nothing(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    flip_last(objects(uploaded)[0])

    code, said = restored(tieredctl, uploaded, tmp_path / "to")

    assert code == 4
    assert "CRC" in said
    assert not (tmp_path / "to").exists()


def test_what_is_there_already_is_never_written_over(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    (tmp_path / "to/orders-1").mkdir(parents=True)

    code, said = restored(tieredctl, uploaded, tmp_path / "to")

    assert (code, [path.name for path in (tmp_path / "to").iterdir()]) == (1, ["orders-1"])
    assert "exists already" in said


def test_what_a_killed_restore_left_is_gone_after_the_next(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "to/.tieredctl-unfinished-1234/orders-0").mkdir(parents=True)

    assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 0

    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1", "other-0"}


def test_a_topic_that_may_be_tiered_is_not_restored_from_above_offset_0(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """By the leader epochs of what is restored alone, its leader would delete every earlier remote segment."""
    words = ("wal", "restore", "--store", f"file:{uploaded}", "--to", tmp_path / "to")

    refused = tieredctl(*words)
    of_another = tieredctl(*words, "--untiered-topic", "orders")
    of_the_rest = tieredctl(*words, "--topic", "orders")

    assert (refused.exit_code, of_another.exit_code, of_the_rest.exit_code) == (2, 2, 0)
    assert "a broker would delete its remote segments" in refused.err
    assert "--untiered-topic other" in refused.err
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1"}


@pytest.mark.parametrize("lost", range(3))
def test_what_a_later_leader_cut_fills_no_gap(lost: int, tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    """An object of the new leader's is lost, and so are the events: which of the former leader's records the new one
    has, nothing tells."""
    former, common = [batch(offset) for offset in range(10)], 5
    new = [*former[:common], *(batch(offset, epoch=1, size=50) for offset in range(common, 9))]
    write_partition(tmp_path / "former", ORDERS[0], former)
    write_partition(tmp_path / "new", ORDERS[0], new)
    assert tieredctl(*upload_words(tmp_path / "former", store), "--apply").exit_code == 0
    before = set(objects(store))
    of_new = (*upload_words(tmp_path / "new", store), "--upload-bytes", "200", "--apply", *CONFIRMED)
    assert tieredctl(*of_new).exit_code == 0
    uploads = sorted(set(objects(store)) - before, key=lambda path: path.stat().st_mtime_ns)
    (store / EVENTS).rename(tmp_path / "lost-events")
    assert restored(tieredctl, store, tmp_path / "whole", "--without-events")[0] == 0
    assert (tmp_path / "whole/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(new)
    assert len(uploads) > 3
    uploads[lost].unlink()

    code, said = restored(tieredctl, store, tmp_path / "to", "--without-events", "--untiered-topic", "orders")

    assert (code, (tmp_path / "to").exists()) == (4, False), said
    assert "no combined object holds offsets" in said


def test_one_partition_is_restored(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    assert restored(tieredctl, uploaded, tmp_path / "to", "--topic", "orders", "--partition", "1")[0] == 0

    assert [path.name for path in (tmp_path / "to").iterdir()] == ["orders-1"]


WRITES = 11
"""Of the upload below, with its own objects for lease and clock."""


@pytest.mark.parametrize("boundary", range(WRITES + 1))
def test_an_upload_killed_before_any_of_its_writes_loses_nothing(
    boundary: int, log_dir: Path, store: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*upload_words(log_dir, store), "--upload-bytes", "900", "--apply")
    with monkeypatch.context() as patched:
        written = killed_after(patched, boundary if boundary < WRITES else None)
        with suppress(Killed):
            assert tieredctl(*words).exit_code == 0
    assert len(written) == boundary
    verify = ("wal", "verify", "--store", f"file:{store}")
    if (store / EVENTS).exists():
        assert tieredctl(*verify).exit_code == 0
        assert tieredctl(*verify, "--older-than", "0s").exit_code in (0, 3)
    # In its place: five minutes, after which a lease is no longer held.
    (store / ".tieredctl/lease.json").unlink(missing_ok=True)

    assert tieredctl(*words).exit_code == 0

    assert restored(tieredctl, store, tmp_path / "to")[0] == 0
    logs = {file.relative_to(log_dir): file.read_bytes() for file in log_dir.glob("*/*.log")}
    assert {file.relative_to(tmp_path / "to"): file.read_bytes() for file in tmp_path.glob("to/*/*.log")} == logs
    assert tieredctl(*verify, "--level", "full").exit_code == 0


def test_an_upload_that_never_ended_needs_attention_after_an_hour(
    log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, suppress(Killed):
        killed_after(patched, 4)
        tieredctl(*upload_words(log_dir, store), "--apply")

    verify = ("wal", "verify", "--store", f"file:{store}", "-o", "json")
    assert tieredctl(*verify).exit_code == 0
    assert tieredctl(*verify, "--now", "2100-01-01").finding(3)["code"] == "wal-upload-unfinished"


def test_a_restore_that_is_interrupted_leaves_nothing(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = write_log, list[str]()

    def stopping(store: ObjectStore, partition: TopicIdPartition, *given: Any) -> RestoredLog:
        if written:
            raise Killed
        written.append(partition.topic)
        return real(store, partition, *given)

    monkeypatch.setattr(restore, "write_log", stopping)
    with pytest.raises(Killed):
        restored(tieredctl, uploaded, tmp_path / "to")

    assert written
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("moved", range(3))
@pytest.mark.parametrize("fault", [OSError(ENOSPC, os.strerror(ENOSPC)), Killed()])
def test_a_restore_that_fails_while_it_puts_folders_in_place_leaves_none(
    *,
    fault: BaseException,
    moved: int,
    is_new: bool,
    uploaded: Path,
    tmp_path: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_new:
        (tmp_path / "to").mkdir()
    real, renamed = Path.rename, list[str]()

    def failing(self: Path, target: Path) -> Path:
        if len(renamed) == moved:
            renamed.append("failed")
            raise fault
        renamed.append(self.name)
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", failing)
        with suppress(Killed):
            assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 1

    assert len(renamed) == 2 * moved + 1
    assert (tmp_path / "to").exists() is not is_new
    assert is_new or not list((tmp_path / "to").iterdir())


def test_while_a_restore_runs_another_one_into_the_same_folder_is_refused(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, others = write_log, list[tuple[int, str]]()

    def in_between(*given: Any) -> RestoredLog:
        with monkeypatch.context() as patched:
            patched.setattr(restore, "write_log", real)
            others.append(restored(tieredctl, uploaded, tmp_path / "to"))
        return real(*given)

    monkeypatch.setattr(restore, "write_log", in_between)
    assert restored(tieredctl, uploaded, tmp_path / "to")[0] == 0

    assert {code for code, _ in others} == {11}
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1", "other-0"}


def test_what_somebody_else_writes_into_a_new_folder_stays_when_a_restore_fails(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_given: Any) -> RestoredLog:
        (tmp_path / "to/mine").touch()
        raise Killed

    monkeypatch.setattr(restore, "write_log", stopping)
    with pytest.raises(Killed):
        restored(tieredctl, uploaded, tmp_path / "to")

    assert [path.name for path in (tmp_path / "to").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "", "a" * 250])
def test_a_topic_that_no_broker_has_is_not_restored(
    name: str, store: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """Anybody may have written the events."""
    partition = TopicIdPartition(OTHER.topic_id, name, 0)
    item = queue_item(partition, OTHER.topic_id, FIRST[0], broker_id=1, leader_epoch=0, event_timestamp_ms=1)
    steps = list(upload_steps([item], ORDERS[0].topic_id, broker_id=1, metadata_partitions=1, clock_ms=lambda: 1))
    EventLog(FileStore(str(store)), {}, lambda: 1).append([step for step in steps if isinstance(step, Publish)])
    (put,) = (step for step in steps if isinstance(step, PutObject))
    (store / put.key).write_bytes(put.data)

    code, said = restored(tieredctl, store, tmp_path / "deep/er/to")

    assert (code, list(tmp_path.glob("deep"))) == (4, [])
    assert "cannot be a partition's folder" in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("inspect",), 2, "No store was given"),
        (("inspect", "--store", "foo:bar"), 2, "foo"),
        (("verify", "--store", "memory:", "--level", "deep"), 2, "--level"),
        (("restore", "--store", "memory:", "--to", "/nowhere/to"), 2, "no events of combined objects"),
        (("restore", "--store", "memory:", "--to", ""), 2, "is not a path"),
        (("upload", "--log-dir", "/nowhere", "--store", "memory:"), 2, "There is no /nowhere"),
        (("upload", "--log-dir", "/proc", "--store", "memory:", "--upload-bytes", "0"), 2, "out of range"),
        (("upload", "--log-dir", "/proc", "--store", "memory:", "--upload-bytes", "9TB"), 2, "out of range"),
    ],
)
def test_what_is_typed_wrong_is_refused(words: tuple[str, ...], code: int, message: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("wal", *words)

    assert (outcome.exit_code, outcome.out) == (code, "")
    assert message in outcome.err


def test_a_topic_that_is_not_there_is_a_mistake(
    uploaded: Path, log_dir: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    assert restored(tieredctl, uploaded, tmp_path / "to", "--topic", "typo")[0] == 2
    assert tieredctl(*upload_words(log_dir, uploaded), "--topic", "typo").exit_code == 2


def test_an_empty_store_is_not_intact(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    (store / ".tieredctl").mkdir()
    inspected = tieredctl("wal", "inspect", "--store", f"file:{store}")
    verified = tieredctl("wal", "verify", "--store", f"file:{store}", "-o", "json")

    assert (inspected.exit_code, verified.exit_code, verified.out) == (0, 2, "")
    for outcome in (inspected, verified):
        assert "has no combined objects, and no events of any" in outcome.err
    assert restored(tieredctl, store, tmp_path / "to")[0] == 2


def test_segments_of_two_partitions_may_have_one_id(store: Path, tieredctl: Tieredctl) -> None:
    items = [
        queue_item(one, OTHER.topic_id, batches, broker_id=1, leader_epoch=0, event_timestamp_ms=1)
        for one, batches in ((ORDERS[0], FIRST[0]), (ORDERS[1], FIRST[0] + FIRST[1]))
    ]
    steps = list(upload_steps(items, ORDERS[0].topic_id, broker_id=1, metadata_partitions=1, clock_ms=lambda: 1))
    EventLog(FileStore(str(store)), {}, lambda: 1).append([step for step in steps if isinstance(step, Publish)])
    (put,) = (step for step in steps if isinstance(step, PutObject))
    (store / put.key).write_bytes(put.data)

    verified = tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full", "-o", "json")
    (row,) = tieredctl("wal", "inspect", "--store", f"file:{store}", "-o", "jsonl").lines()

    assert (verified.exit_code, verified.document()["items"]) == (0, [])
    assert [(one["partition"], one["endOffset"]) for one in row["segments"]] == [(0, 0), (1, 1)]


def test_where_everything_was_deleted_nothing_is_restored(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    files = FileStore(str(uploaded))
    known = read_events(files)
    for one in known.combined():
        steps = deletion_steps(known.replayed, one.metadata.combined_segment_id, broker_id=-1, clock_ms=lambda: 1)
        log = EventLog(files, read_events(files).log.end_offsets, lambda: 1)
        log.append([step for step in steps if isinstance(step, Publish)])

    code, said = restored(tieredctl, uploaded, tmp_path / "to")

    assert (code, (tmp_path / "to").exists()) == (2, False)
    assert "nothing is uploaded" in said
