"""Restored nodes: what is in their folders, whenever a restore is stopped, and what it refuses to begin."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.killed_runs import killed_runs
from tests.rigs.stopped_process import FULL_DISK, INT, KILL, Moment, Stop, run_until
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.ops.restore.node_files import new_nodes
from tieredctl.ops.restore.placement import LogDirectory
from tieredctl.ops.restore.restored_cluster import is_internal

META = "meta.properties"
WRITTEN = ExitCode.INCOMPLETE
"""The captured node's events are not whole, as its set says: what is restored is written, and the exit code says so."""
TIERED = ("orders7", "payments7", "slow7")


def restored(tieredctl: Tieredctl, sets: CapturedSets, node: Path, *more: str) -> Outcome:
    return tieredctl("restore", "apply", *sets.words(f"1={node}"), *sets.confirmed, "-o", "json", *more)


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def events(tieredctl: Tieredctl, data: Path) -> list[dict[str, Any]]:
    read = tieredctl("metadata", "format", "--log-dir", data, "-o", "jsonl")
    assert read.exit_code == ExitCode.CLEAN, read.err
    return read.lines()


def test_a_node_has_the_clusters_topics_and_ids_and_every_event_at_its_offset(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"

    done = restored(tieredctl, sets, node)

    assert done.exit_code == WRITTEN, done.err
    before = tieredctl("metadata", "format", "--log-dir", sets.data, "-o", "jsonl").lines()
    assert events(tieredctl, node) == before
    (checkpoint,) = (node / "__cluster_metadata-0").iterdir()
    data, replay = checkpoint.read_bytes(), MetadataReplay()
    replay.load_snapshot(read_kraft_snapshot([data], len(data)), 1)
    assert {topic.name for topic in replay.image.topics.values()} >= {*TIERED}
    items = {(one["topic"], one["partition"]): one for one in done.document()["items"]}
    for (topic, partition), one in items.items():
        log = node / f"{topic}-{partition}" / f"{one['nextOffset']:020}.log"
        assert one["nextOffset"] == 0 or log.stat().st_size == 0, log
    assert any(one["lost"] for one in items.values())


def test_segments_that_no_set_knows_are_registered_and_those_that_are_gone_end_no_log(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    everything = restored(tieredctl, sets, tmp_path / "all").document()
    ends = {(one["topic"], one["partition"]): one["nextOffset"] for one in everything["items"]}
    last = max((sets.store.rglob("*orders7-0*/*.log")), key=lambda path: path.name)
    start = int(last.name[:20])
    for part in last.parent.glob(f"{start:020}-*"):
        part.unlink()

    done = restored(tieredctl, sets, tmp_path / "less").document()

    now = {(one["topic"], one["partition"]): one for one in done["items"]}
    assert now["orders7", 0]["nextOffset"] == start < ends["orders7", 0]
    assert now["orders7", 0]["lost"][-1][0] == start


def test_a_bucket_without_any_of_the_segments_that_the_set_promises_may_be_another_one(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    gone = {one["topic"] for one in restored(tieredctl, sets, tmp_path / "all").document()["items"] if one["segments"]}
    for folder in sets.store.iterdir():
        shutil.rmtree(folder)

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")
    refused = restored(tieredctl, sets, tmp_path / "node")
    unknown = [one for one in planned.document()["items"] if one["origin"] == "unknown"]
    given = [word for one in unknown for word in ("--begin-at", f"{one['topic']}:{one['partition']}=700")]
    below = [word.replace("orders7:0=700", "orders7:0=3") for word in given]
    too_low = restored(tieredctl, sets, tmp_path / "node", *below)
    done = restored(tieredctl, sets, tmp_path / "given", *given)

    assert planned.exit_code == ExitCode.INCOMPLETE, planned.err
    assert {one["topic"] for one in unknown} == gone
    assert (refused.exit_code, (tmp_path / "node").exists()) == (ExitCode.USAGE, False)
    assert (too_low.exit_code, "--begin-at orders7:0=3" in too_low.err) == (ExitCode.USAGE, True), too_low.err
    assert len(done.document()["summary"]["findings"]) >= len(unknown), done.err
    assert (tmp_path / "given" / META).exists()


def test_first_segments_that_are_gone_are_lost_and_leave_the_log_start_where_it_was(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    first = min(sets.store.rglob("*orders7-0*/*.log"), key=lambda path: path.name)
    start = int(first.name[:20])
    for part in first.parent.glob(f"{start:020}-*"):
        part.unlink()

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")

    (log,) = [one for one in planned.document()["items"] if (one["topic"], one["partition"]) == ("orders7", 0)]
    (found,) = planned.document()["summary"]["findings"]
    assert (start, log["logStartOffset"]) == (0, 0), planned.err
    assert (found["code"], found["evidence"]["offsets"]) == ("offset-gap", log["lost"][0])


def test_a_segment_that_comes_back_without_an_index_is_named(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    whole = tieredctl("restore", "plan", *sets.words("1"), "-o", "json").document()
    index = min(sets.store.rglob("*orders7-0*/*.timeindex"), key=lambda path: path.name)
    index.unlink()

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")

    there = planned.document()
    (found,) = [one for one in there["summary"]["findings"] if one not in whole["summary"]["findings"]]
    assert (found["code"], found["evidence"]["parts"]) == ("object-missing", ["time-index"])
    assert found["evidence"]["segmentId"] in index.name
    assert (planned.exit_code, there["items"]) == (ExitCode.CORRUPTION, whole["items"])


def test_a_set_without_any_event_still_finds_what_the_bucket_has(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    sets = CapturedSets.of(captures, tmp_path)
    expected = tieredctl("restore", "plan", *sets.words("1"), "-o", "json").document()["items"]
    sets.data = shutil.copytree(sets.data, tmp_path / "data")
    for file in sets.data.glob("__remote_log_metadata-*/*"):
        if file.suffix in (".log", ".index", ".timeindex"):
            file.write_bytes(b"")
    sets.add(full=True)

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")

    items = planned.document()["items"]
    assert [one["recovered"] for one in items] == [one["segments"] for one in items]
    assert sum(one["recovered"] for one in items) >= sum(one["segments"] for one in expected)


def test_a_log_whose_last_checkpoint_is_damaged_goes_on_by_the_epochs_of_its_segments(
    sets: CapturedSets, tieredctl: Tieredctl
) -> None:
    before = tieredctl("restore", "plan", *sets.words("1"), "-o", "json").document()["items"]
    for folder in sets.store.glob("orders7-*"):
        max(folder.glob("*.leader_epoch_checkpoint"), key=lambda path: path.name).write_text("0\n2\n0 0\n")

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")

    items = planned.document()["items"]
    assert items == before, planned.err
    assert [one["leaderEpochs"] for one in items if (one["topic"], one["partition"]) == ("orders7", 0)] == [
        [[0, 0], [2, 60]]
    ]


def test_a_tail_that_is_gone_is_lost_though_the_set_does_not_say_where_the_log_ended(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    sets = CapturedSets.of(captures, tmp_path, denied=("orders7",))
    last = max(sets.store.rglob("*orders7-0*/*.log"), key=lambda path: path.name)
    for part in last.parent.glob(f"{last.name[:20]}-*"):
        part.unlink()

    planned = tieredctl("restore", "plan", *sets.words("1"), "--topic", "orders7", "-o", "json")

    (log,) = [one for one in planned.document()["items"] if one["partition"] == 0]
    assert log["lost"][-1][0] == log["nextOffset"] == int(last.name[:20])


def test_what_the_bucket_has_of_topics_that_were_made_after_the_set_is_named_and_left(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    before = contents(sets.store)
    (folder,) = sets.store.glob("orders7-0-*")
    shutil.copytree(folder, sets.store / "later7-0-AAAAAAAAAAAAAAAAAAAAAQ")

    done = restored(tieredctl, sets, tmp_path / "node")

    codes = {one["code"] for one in done.document()["summary"]["findings"]}
    assert (done.exit_code, codes) == (WRITTEN, {"topic-not-in-cluster"}), done.err
    assert "later7" not in {one["topic"] for one in events(tieredctl, tmp_path / "node")}
    assert contents(sets.store).items() > before.items()


def test_of_encrypted_segments_no_key_is_needed_and_a_copy_that_nobody_recorded_as_finished_comes_back(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    capture = captures / "aiven-zstd-encrypted-4.3.1"
    (tmp_path / "sets").mkdir()
    sets = CapturedSets(tmp_path / "sets", capture / "bucket/tiered", capture / "data")
    sets.add()

    done = restored(tieredctl, sets, tmp_path / "node", "--layout", "aiven")

    items = done.document()["items"]
    known = tieredctl("metadata", "segments", "--log-dir", sets.data, "-o", "jsonl").lines()
    ends = {(one["topic"], one["partition"]): 0 for one in known}
    for one in known:
        ends[one["topic"], one["partition"]] = max(ends[one["topic"], one["partition"]], one["endOffset"] + 1)
    assert done.exit_code == ExitCode.FINDINGS, done.err
    assert {(one["topic"], one["partition"]): one["nextOffset"] for one in items if one["segments"]} == ends
    assert sum(one["recovered"] for one in items) == 2


def test_killed_at_any_moment_nothing_starts_and_another_run_gives_the_same(sets: CapturedSets, tmp_path: Path) -> None:
    node = tmp_path / "killed" / "node"
    words = ["restore", "apply", *sets.words(f"1={node}"), *sets.confirmed]

    def begin() -> None:
        shutil.rmtree(node, ignore_errors=True)
        node.mkdir(parents=True)

    for moment in killed_runs(words, node, begin, lambda: contents(node), [sets.folder, sets.store]):
        assert not (node / META).exists(), moment
    assert (node / META).exists()


def test_on_a_full_disk_and_after_an_interruption_nothing_is_left(sets: CapturedSets, tmp_path: Path) -> None:
    stops: list[tuple[int, Stop, int]] = [(1, FULL_DISK, 1), (20, FULL_DISK, 1), (20, INT, 130)]
    for case, (number, stop, code) in enumerate(stops):
        node = tmp_path / str(case) / "node"
        node.mkdir(parents=True)

        stopped = stopped_at(number, stop, sets, node)

        assert (stopped.exit_code, [*node.iterdir()]) == (code, []), stopped.err


def test_a_failure_after_a_kill_amid_the_last_step_leaves_a_folder_that_another_run_finishes(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    whole, node = tmp_path / "whole" / "node", tmp_path / "killed" / "node"
    restored(tieredctl, sets, whole)
    node.mkdir(parents=True)
    stopped_at(len(contents(whole)) + len([*whole.iterdir()]), KILL, sets, node)
    moved = len([*node.iterdir()])

    stopped = stopped_at(1, FULL_DISK, sets, node)
    again = restored(tieredctl, sets, node)

    assert (moved > 1, stopped.exit_code) == (True, ExitCode.FAILURE), stopped.err
    assert (again.exit_code, contents(node)) == (WRITTEN, contents(whole)), again.err


def stopped_at(number: int, stop: Stop, sets: CapturedSets, node: Path) -> Outcome:
    words = ("restore", "apply", *sets.words(f"1={node}"), *sets.confirmed)
    return run_until(Moment("", number), stop, node, words)


def test_a_second_run_leaves_a_restored_node_and_one_that_was_started_is_refused(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"
    restored(tieredctl, sets, node)
    before = contents(node)

    assert restored(tieredctl, sets, node).exit_code == WRITTEN
    assert contents(node) == before
    (node / ".lock").touch()
    assert restored(tieredctl, sets, node).exit_code == ExitCode.FAILURE
    assert contents(node).items() >= before.items()


def test_of_two_restores_into_one_folder_the_second_is_refused(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"
    with new_nodes([LogDirectory(1, node, "AAAAAAAAAAAAAAAAAAAAAQ", True, True)], "another") as writers:
        for writer in writers.values():
            writer.identity(sets.cluster_id, None)
        refused = restored(tieredctl, sets, node)
        left = [*node.iterdir()]

    assert refused.exit_code == ExitCode.LOCKED, refused.err
    assert len(left) == 1


def test_a_folder_with_anything_in_it_is_refused_before_any_node_is_written(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / META).write_text("version=1")

    refused = tieredctl(
        *("restore", "apply", *sets.words(f"1={tmp_path}/first", f"2={tmp_path}/second"), *sets.confirmed)
    )

    assert refused.exit_code == ExitCode.FAILURE
    assert not (tmp_path / "first").exists()


def test_a_log_of_which_nothing_is_known_is_never_begun_at_0(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    sets = CapturedSets.of(captures, tmp_path, denied=("events7",))
    for folder in sets.store.glob("events7-*"):
        shutil.rmtree(folder)
    node = tmp_path / "node"

    planned = tieredctl("restore", "plan", *sets.words(f"1={node}"), "-o", "json")
    refused = restored(tieredctl, sets, node)
    unknown = [one for one in planned.document()["items"] if one["origin"] == "unknown"]
    given = [word for one in unknown for word in ("--begin-at", f"{one['topic']}:{one['partition']}=700")]
    done = restored(tieredctl, sets, node, *given)

    assert planned.exit_code == ExitCode.INCOMPLETE
    assert {one["topic"] for one in unknown} == {"events7"}
    assert all(one["nextOffset"] is None for one in unknown)
    assert (refused.exit_code, "--begin-at events7" in refused.err) == (ExitCode.USAGE, True)
    assert (node / "events7-0" / f"{700:020}.log").exists(), done.err


def test_only_kafkas_own_topics_begin_at_0_whatever_tools_call_theirs() -> None:
    assert [name for name in ("__consumer_offsets", "__debezium-heartbeat", "_schemas") if is_internal(name)] == [
        "__consumer_offsets"
    ]


def test_events_and_groups_offsets_without_a_topic_of_theirs_are_not_dropped_in_silence(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets.has_groups = True
    sets.add()
    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")
    monkeypatch.setattr(LogDirectories, "metadata_topic_id", "AAAAAAAAAAAAAAAAAAAAAQ")
    sets.add()

    refused = restored(tieredctl, sets, tmp_path / "node")

    (found,) = planned.document()["summary"]["findings"]
    assert (found["code"], found["evidence"]["groupOffsets"]) == ("backup-incomplete", 4)
    assert (refused.exit_code, [*(tmp_path / "node").iterdir()]) == (ExitCode.CORRUPTION, []), refused.err


def test_selected_topics_come_back_alone(sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    node = tmp_path / "node"

    done = restored(tieredctl, sets, node, "--topic", "orders7")

    assert {one["topic"] for one in done.document()["items"]} == {"orders7"}
    assert {one["topic"] for one in events(tieredctl, node)} == {"orders7"}
    assert not [*node.glob("payments7-*")]
    assert restored(tieredctl, sets, tmp_path / "x", "--topic", "nothing").exit_code == ExitCode.USAGE
    for folder in sets.store.glob("orders7-*"):
        shutil.rmtree(folder)
    assert tieredctl("restore", "plan", *sets.words("1"), "--topic", "orders7").exit_code == ExitCode.INCOMPLETE


def test_replicas_of_nodes_that_are_no_more_are_placed_on_others_and_all_machines_write_the_same(
    sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    together = sets.words(f"7={tmp_path}/a7", f"8={tmp_path}/a8")
    first, second = sets.words(f"7={tmp_path}/b7", "8"), sets.words("7", f"8={tmp_path}/b8")

    for words in (together, first, second):
        assert tieredctl("restore", "apply", *words, *sets.confirmed).exit_code == WRITTEN

    assert contents(tmp_path / "a7") == contents(tmp_path / "b7")
    assert contents(tmp_path / "a8") == contents(tmp_path / "b8")
    logs = {path.parent.name for node in ("a7", "a8") for path in (tmp_path / node).glob("*7-*/*.log")}
    assert len(logs) > 6
    assert contents(tmp_path / "a7").keys() != contents(tmp_path / "a8").keys()


def test_usage_errors_name_the_option(sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    elsewhere = tieredctl("restore", "apply", *sets.words("1"), *sets.confirmed)
    assert (elsewhere.exit_code, "--node ID=DIR" in elsewhere.err) == (ExitCode.USAGE, True)
    wrong = {
        "--node": ("--node", "one=x"),
        "given twice": ("--node", f"1={tmp_path}/other"),
        "--begin-at": ("--begin-at", "orders7=3"),
        "no partition": ("--begin-at", "orders7:99=3"),
    }
    for expected, more in wrong.items():
        refused = tieredctl("restore", "plan", *sets.words(f"1={tmp_path}/node"), *more)
        assert (refused.exit_code, expected in refused.err) == (ExitCode.USAGE, True), (more, refused.err)
