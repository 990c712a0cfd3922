"""The log directories of restored nodes (KIP-858): what is in each, and that none is written without the others."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.stopped_process import KILL, Moment, run_until
from tieredctl.errors import DecodeError, ExitCode
from tieredctl.formats.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.model.ids import uuid_text

KILLED = int(os.environ.get("TIEREDCTL_KILLED", "10"))
"""How many runs are killed; `make soak` kills more."""
WRITTEN = ExitCode.INCOMPLETE
"""The captured node's events are not whole, as its set says."""
DISKS = [bytes([number]) * 16 for number in (7, 9)]


@pytest.fixture
def two_disks(sets: CapturedSets) -> CapturedSets:
    """Sets of a broker that had two log directories."""
    sets.log_dirs = DISKS
    sets.add()
    return sets


def restored(tieredctl: Tieredctl, sets: CapturedSets, *words: str | Path) -> Outcome:
    return tieredctl("restore", "apply", *sets.words(), *words, *sets.confirmed, "-o", "json")


def directory_id(folder: Path) -> str | None:
    return read_meta_properties((folder / META_PROPERTIES_FILE).read_bytes()).directory_id


def logs(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/partition.metadata")}


def directories(checkpoint: Path) -> dict[str, bytes]:
    """The directory of each partition's only replica."""
    data, replay = checkpoint.read_bytes(), MetadataReplay()
    replay.load_snapshot(read_kraft_snapshot([data], len(data)), 1)
    partitions = ((topic, *one) for topic in replay.image.topics.values() for one in topic.partitions.items())
    return {f"{topic.name}-{number}": values["Directories"][0] for topic, number, values in partitions}


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def test_each_replica_is_in_the_directory_that_its_record_names(
    two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    in_set = directories(max(two_disks.folder.rglob("cluster.checkpoint")))

    done = restored(tieredctl, two_disks, "--node", f"1={folders[0]},{folders[1]}")

    assert done.exit_code == WRITTEN, done.err
    assert [directory_id(one) for one in folders] == [uuid_text(one) for one in DISKS]
    for folder, disk in zip(folders, DISKS, strict=True):
        assert logs(folder), folder
        assert {in_set[log] for log in logs(folder)} == {disk}, folder
    (checkpoint,) = (folders[0] / CLUSTER_METADATA_FOLDER).iterdir()
    assert directories(checkpoint) == in_set
    assert not (folders[1] / CLUSTER_METADATA_FOLDER).exists()
    assert len({(one / CLEAN_SHUTDOWN_FILE).read_bytes() for one in folders}) == 1


def test_with_fewer_folders_than_the_broker_had_nothing_is_written(
    two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    refused = restored(tieredctl, two_disks, "--node", f"1={tmp_path}/a")

    assert (refused.exit_code, "--node 1=DIR,DIR" in refused.err) == (ExitCode.USAGE, True), refused.err
    assert not (tmp_path / "a").exists()


def test_a_folder_more_begins_empty_and_the_cluster_is_the_same_as_on_other_machines(
    two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    folders = [tmp_path / name for name in "abc"]

    done = restored(tieredctl, two_disks, "--node", f"1={','.join(map(str, folders))}")
    elsewhere = restored(tieredctl, two_disks, "--node", f"1={tmp_path}/x,{tmp_path}/y")

    assert done.document()["summary"]["mark"] == elsewhere.document()["summary"]["mark"]
    assert contents(folders[0]) == contents(tmp_path / "x")
    assert (logs(folders[2]), len({*map(directory_id, folders)})) == (set(), 3)


def test_a_folder_for_the_clusters_metadata_has_nothing_else(
    two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    first, second, own = (tmp_path / name for name in "abc")

    done = restored(tieredctl, two_disks, "--node", f"1={first},{second}", "--metadata-log-dir", f"1={own}")

    assert done.exit_code == WRITTEN, done.err
    assert [directory_id(first), directory_id(second)] == [uuid_text(one) for one in DISKS]
    assert [(one / CLUSTER_METADATA_FOLDER).exists() for one in (first, second, own)] == [False, False, True]
    assert (logs(own), (own / CLEAN_SHUTDOWN_FILE).exists()) == (set(), False)


def test_killed_at_any_moment_no_broker_starts_from_half_of_the_folders(
    two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    whole = [tmp_path / "whole" / name for name in "ab"]
    assert restored(tieredctl, two_disks, "--node", f"1={whole[0]},{whole[1]}").exit_code == WRITTEN
    expected = [contents(one) for one in whole]
    changes = sum(len(one) for one in expected) + sum(len([*one.iterdir()]) for one in whole) + 2
    kills = min(KILLED, changes)
    last = range(changes + 1 - kills // 2, changes + 1)  # those that a broker might start from
    evenly = (1 + (changes - kills) * place // kills for place in range(kills - len(last)))

    for number in (*evenly, *last):
        home = tmp_path / "killed"
        folders = [home / name for name in "ab"]
        for one in folders:
            one.mkdir(parents=True)
        words = ("--node", f"1={folders[0]},{folders[1]}", *two_disks.confirmed)

        stopped = run_until(Moment("", number), KILL, home, ("restore", "apply", *two_disks.words(), *words))

        assert stopped.exit_code == -KILL, (number, stopped.err)
        assert not starts(folders) or [contents(one) for one in folders] == expected, number
        again = restored(tieredctl, two_disks, "--node", f"1={folders[0]},{folders[1]}")
        assert (again.exit_code, [contents(one) for one in folders]) == (WRITTEN, expected), (number, again.err)
        shutil.rmtree(home)


def starts(folders: list[Path]) -> bool:
    """Whether a broker starts: it refuses to where the first file is not sound, and takes folders without for new."""
    try:
        for folder in folders:
            if (folder / META_PROPERTIES_FILE).exists():
                directory_id(folder)
    except DecodeError:
        return False
    return any((one / META_PROPERTIES_FILE).exists() for one in folders)


def test_usage_errors_name_the_option(two_disks: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    wrong: dict[str, tuple[str, ...]] = {
        "is not ID=DIR": ("--node", f"1={a},"),
        "given twice": ("--node", f"1={a},{a}"),
        "within another": ("--node", f"1={a},{a}/b"),
        "--metadata-log-dir '1'": ("--node", f"1={a},{b}", "--metadata-log-dir", "1"),
        "without a folder": ("--node", f"1={a},{b}", "--metadata-log-dir", f"2={tmp_path}/c"),
    }
    for expected, words in wrong.items():
        refused = tieredctl("restore", "plan", *two_disks.words(), *words)
        assert (refused.exit_code, expected in refused.err) == (ExitCode.USAGE, True), (words, refused.err)
