"""What tieredctl did not write stays: by any option of any command that names a file to write."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cleaned_nodes import node_to_clean
from tests.cli.command_line import Tieredctl
from tests.cli.command_tree import commands
from tests.cli.crashed_cluster import AGED, CLUSTER_ID, ENOUGH, CrashedClusterOnDisk, without_own
from tieredctl.cli.command_rows import _kind, _metavar

WRITTEN = {"--metrics-file", "--output-dir", "--report", "--to", "--receipts", "--resume", "--keep", "--tables"}
"""Options that name what is written."""
READ = {
    *(
        "--as-of",
        "--broker-files-from",
        "--command-config",
        "--controller-config",
        "--export",
        "--from",
        "--inventory",
        "--key-list",
    ),
    *(
        "--kraft-snapshot",
        "--from-log-dir",
        "--identity",
        "--live-topic-ids",
        "--log-dir",
        "--price-file",
        "--recipient",
        "--result",
        "--schema",
        "--server-properties",
        "--verified",
    ),
    *("after", "before", "directories", "folder", "key", "paths", "plan", "receipts"),
    *("--node", "--metadata-log-dir"),  # new folders: what else is in one is in backup/test_restored_nodes.py
}
WRITTEN_ARGUMENTS = {("metadata", "export")}
"""Commands whose argument `file` is written; that of others is read."""
NEEDED = {("remote", "read"): ["--to"], ("orphans", "plan"): ["--to"], ("support-bundle",): ["--to"]}
"""The option of a command that names what it is there to write."""
CONFIRMED = ("--yes", "--cluster-id", CLUSTER_ID)
SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
NOT_OURS = b"# not a file of tieredctl's\nnor anything that it may replace\n"


def written_places() -> list[tuple[tuple[str, ...], Any]]:
    """Each command with each of its parameters that names what is written."""
    found = []
    for words, command in commands():
        for one in command.params:
            name = one.opts[0]
            metavar = str(_metavar(one))
            if _kind(one, words) in ("file", "directory") or any(kind in metavar for kind in ("FILE", "DIR", "PATH")):
                is_written = name in WRITTEN or (name == "file" and words in WRITTEN_ARGUMENTS)
                assert is_written or name in READ | {"file"}, f"{words} {name}: is it read or written?"
                if is_written:
                    found.append((words, one))
    return found


def sound_words(cluster: CrashedClusterOnDisk, captures: Path, folder: Path) -> Mapping[tuple[str, ...], list[Any]]:
    """What makes these commands succeed, but for the file that they are to write."""
    capture = captures / "kafka-4.3.1"
    of_cluster = [*cluster.store, "--layout", "aiven", "--log-dir", cluster.log_dir]
    node = folder / "node"
    node_to_clean(node)
    cleaned = ["--metadata-max-retention-ms", "1000", "--apply", "--yes", "--cluster-id", "5lgVbV_vRSmEjoqjPWDZrA"]
    return {
        ("metadata", "export"): ["--log-dir", capture / "data"],
        ("metadata", "stats"): ["--log-dir", capture / "data"],
        ("remote", "du"): ["--store", f"file:{capture / 'remote/kafka-tiered-storage'}"],
        ("support-bundle",): ["--log-dir", capture / "data"],
        ("remote", "read"): [SEGMENT_ID, "--store", f"file:{capture / 'remote/kafka-tiered-storage'}"],
        ("orphans", "scan"): of_cluster,
        ("orphans", "plan"): [*of_cluster, *AGED, *ENOUGH],
        ("orphans", "apply"): [cluster.plan_file, "--offline-metadata", "--log-dir", cluster.log_dir, *CONFIRMED],
        ("snapshot", "clean"): [node, *cleaned],
    }


@pytest.fixture
def not_ours(tmp_path: Path) -> Path:
    """Made as a user's file is, and named as one of tieredctl's."""
    path = tmp_path / "plan.receipts.prom.html"
    path.write_bytes(NOT_OURS)
    return path


def test_nothing_that_others_wrote_is_replaced_or_added_to(
    planned: CrashedClusterOnDisk,
    captures: Path,
    tmp_path: Path,
    not_ours: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sound, before = sound_words(planned, captures, tmp_path), without_own(planned.objects())
    untried = set(sound)

    for number, (words, parameter) in enumerate(written_places()):
        name = parameter.opts[0]
        line = sound.get(words) or ["nothing" for one in _arguments(words) if one.required and one is not parameter]
        named = [not_ours] if name == "file" else [name, not_ours]
        needed = NEEDED.get(words, [])
        others = [] if name in (*needed, "file") else [*needed, *([tmp_path / f"new{number}"] if needed else [])]
        if words in WRITTEN_ARGUMENTS and name != "file":
            others = [tmp_path / "events.jsonl"]
        outcome = tieredctl(*words, *line, *others, *named)

        assert outcome.exit_code not in (0, 3, 4), (words, name, outcome.err)
        assert not_ours.read_bytes() == NOT_OURS, (words, name)
        if words in sound:
            assert not_ours.name in outcome.err, (words, name, outcome.err)
        untried -= {words}

    assert not untried
    assert without_own(planned.objects()) == before


def _arguments(words: tuple[str, ...]) -> list[Any]:
    (command,) = [found for at, found in commands() if at == words]
    return [one for one in command.params if one.param_type_name == "argument"]


def listing(captures: Path) -> tuple[str, ...]:
    return ("remote", "du", "--store", f"file:{captures / 'kafka-4.3.1/remote/kafka-tiered-storage'}")


def test_what_runs_every_night_replaces_what_it_left_the_night_before_and_an_empty_file(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for option in ("--metrics-file", "--report"):
        left = tmp_path / option
        left.touch()
        inodes = {os.stat(left).st_ino}
        for night in range(2):
            assert tieredctl(*listing(captures), option, left).exit_code == 0, (option, night)
            assert left.stat().st_size > 0
            assert os.stat(left).st_ino not in inodes, (option, night)
            inodes = {os.stat(left).st_ino}
