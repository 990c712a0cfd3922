"""Whatever of its inputs is removed, emptied, cut or unreadable: no command ends with 0, or calls anything orphaned."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.cli.command_tree import command_at, commands
from tests.moved_log_starts import moved_node, plan, written
from tests.shares import divided
from tieredctl.cli.command_tree import NOUNS
from tieredctl.errors import ExitCode
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE

SEGMENT, TOPIC_ID = "Cq7X8SbzSeWvjxrQIzv1hQ", "Ex-aw3fEQIi3do0H9Y7cKQ"
"""Of the capture: of `orders7-0`, whose events are in metadata partition 3."""
LOG, STORE = ("--log-dir", "{data}"), ("--store", "file:{store}", "--layout", "local")
IMAGE = ("--kraft-snapshot", "{data}/__cluster_metadata-0")

OF_METADATA = {
    "status": LOG,
    "metadata format": LOG,
    "metadata segments": LOG,
    "metadata history": (SEGMENT, *LOG),
    "metadata lookup": ("orders7:0", "--offset", "5", *LOG),
    "metadata epochs": ("orders7:0", *LOG),
    "metadata stuck": LOG,
    "metadata partition-of": ("orders7:0", *LOG),
    "metadata stats": LOG,
    "metadata export": ("{folder}/events.jsonl", "--force", *LOG),
    "store check": ("{data}",),
    "store compare": ("--to", "file:{data}", "--by", "size", *LOG, *STORE),
    "store copy": ("--to", "file:{data}", *LOG, *STORE),
    "remote read": (SEGMENT, "--to", "{folder}/segment", "--force", *LOG, *STORE),
    "remote records": ("orders7:0", "-o", "jsonl", *LOG, *STORE),
    "verify": ("--level", "listing", *LOG, *STORE),
    "orphans scan": ("--min-age", "0s", "-o", "jsonl", *LOG, *STORE),
    "orphans plan": ("--to", "{folder}/plan", "--force", *LOG, *STORE),
    "partition remove": (TOPIC_ID, "--even-if-live", *LOG, *STORE, *IMAGE),
    "heal": ("--segment-id", SEGMENT, *LOG, *STORE),
    "recover indexes": (SEGMENT, *LOG, *STORE),
    "recover metadata": (*LOG, *STORE),
    "topic list": (*LOG, *IMAGE),
    "topic status": ("orders7", *LOG, *IMAGE),
    "explain": ("orders7:0@5", *LOG),
    "doctor": (*LOG, *IMAGE),
    "estimate metadata": LOG,
    "estimate cost": (*LOG, *STORE),
    "support-bundle": ("--to", "{folder}/bundle.tar.gz", "--force", *LOG),
}
"""What reads metadata in log directories, and what it is given."""
OF_STORES = {
    "remote ls": STORE,
    "remote du": STORE,
    "remote multipart": STORE,
    "orphans quarantine ls": STORE[:2],
    "orphans purge": ("--older-than", "1d", *STORE, *LOG, "--offline-metadata"),
    "wal inspect": STORE[:2],
    "wal verify": STORE[:2],
    "wal explain": ("orders7:0@5", *STORE[:2]),
    "wal clean": (*LOG, *STORE[:2]),
    "wal purge": ("--older-than", "14d", *LOG, *STORE[:2]),
    "wal restore": ("--to", "{folder}/restored", *STORE[:2]),
    "wal upload": (*LOG, *STORE[:2]),
}
"""What reads a store, and no metadata."""
_PRODUCERS = "data/__remote_log_metadata-0/00000000000000000208.snapshot"
_SNAPSHOT = "data/__cluster_metadata-0/00000000000000000107-0000000002.checkpoint"
_EARLIER = "data/__cluster_metadata-0/00000000000000000085-0000000001.checkpoint"
OF_FILES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "store inspect": (_PRODUCERS, ("{folder}/" + _PRODUCERS,)),
    "snapshot inspect": (_SNAPSHOT, ("{folder}/" + _SNAPSHOT,)),
    "snapshot verify": (_SNAPSHOT, ("{folder}/" + _SNAPSHOT,)),
    "snapshot compare": (_SNAPSHOT, ("{folder}/" + _EARLIER, "{folder}/" + _SNAPSHOT)),
    "snapshot clean": ("data/__cluster_metadata-0", ("{folder}/data",)),
    "recover log-starts": ("moved.json", ("{folder}/moved.json", "--log-dir", "{folder}/node")),
    "doctor config": ("server.properties", ("{folder}/server.properties",)),
    "metadata segments": ("export", ("--export", "{folder}/export")),
}
"""What reads one file or folder: which is damaged, and what the command is given."""
ELSEWHERE = {"orphans show", "orphans apply", "orphans restore", "snapshot ls", "pipeline run", "pipeline status"} | {
    *("backup status", "backup verify", "backup prune", "restore plan", "restore apply"),
}
"""`test_altered_inputs.py`, `test_forged_plans.py`, `test_restore_refusals.py`, `test_snapshot_verify_and_ls.py`; of
what starts Spark, `spark/pipeline`; of backup sets, `backup/test_sets.py` and `backup/test_pruning.py`."""
BY_METADATA_ALONE = "estimate cost"
"""Takes the store for its price."""
LIVE_ONLY = {
    "doctor connect",
    "doctor store",
    "exporter",
    "offsets",
    "topic enable",
    "topic disable",
    "snapshot fetch",
    "backup run",
    "orphans unlock",
} | {
    "estimate follower-bootstrap",
    "estimate retention",
}
"""What asks servers: `documentation/test_security_page.py`, and tests with a broker that does not answer."""
WITHOUT_INPUT = {"explain-code", "demo", "completions", "doctor upgrade", "doctor downgrade", "estimate wal-cost"} | {
    f"context {verb}" for verb in ("list", "show", "use", "add", "remove")
}
Damage = Callable[[Path], None]


def logs(data: Path) -> list[Path]:
    return sorted(data.glob("__remote_log_metadata-*/*.log"))


def without_checkpoints(data: Path) -> None:
    for file in data.glob("re*-offset-checkpoint"):
        file.unlink()


def folders_removed(data: Path) -> None:
    for log in logs(data):
        shutil.rmtree(log.parent)


def log_and_checkpoints_removed(data: Path) -> None:
    logs(data)[3].unlink()
    without_checkpoints(data)


def log_emptied_and_checkpoints_removed(data: Path) -> None:
    os.truncate(logs(data)[3], 0)
    without_checkpoints(data)


def log_cut_and_checkpoints_removed(data: Path) -> None:
    os.truncate(logs(data)[3], logs(data)[3].stat().st_size // 2)
    without_checkpoints(data)


def log_unreadable(data: Path) -> None:
    log = logs(data)[3]
    log.unlink()
    log.mkdir()


def logs_as_of_new_partitions(data: Path) -> None:
    """Nothing but the logs of other partitions tells that there were events."""
    for log in logs(data):
        log.write_bytes(b"")
        for file in set(log.parent.iterdir()) - {log}:
            file.unlink()
    without_checkpoints(data)


def nothing_left_of_a_log_but_its_name(data: Path) -> None:
    """Neither the broker's files nor the log's own say that there was anything."""
    log = logs(data)[3]
    log.write_bytes(b"")
    for file in set(log.parent.iterdir()) - {log, log.parent / PARTITION_METADATA_FILE}:
        file.unlink()
    for file in data.glob("*-offset-checkpoint"):
        file.unlink()


LOSSES: tuple[Damage, ...] = (
    folders_removed,
    log_and_checkpoints_removed,
    log_emptied_and_checkpoints_removed,
    log_cut_and_checkpoints_removed,
    logs_as_of_new_partitions,
    nothing_left_of_a_log_but_its_name,
    log_unreadable,
)
TRIED_ON_ALL = (log_cut_and_checkpoints_removed, nothing_left_of_a_log_but_its_name)
REFUSED = (ExitCode.FAILURE, ExitCode.USAGE, ExitCode.CORRUPTION, ExitCode.INCOMPLETE)
OTHERWISE: Mapping[tuple[str, Damage], ExitCode] = {
    ("remote read", log_cut_and_checkpoints_removed): ExitCode.CLEAN,
    ("recover metadata", logs_as_of_new_partitions): ExitCode.FINDINGS,
    ("recover metadata", nothing_left_of_a_log_but_its_name): ExitCode.FINDINGS,
    ("metadata partition-of", log_cut_and_checkpoints_removed): ExitCode.CLEAN,
}
"""Recovery is for a topic that lost its events; the others find all they need among the events that are left."""


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("prices:\n- {store: 'file:', perGiBMonth: 0.5, currency: USD}\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))


def copied(captures: Path, folder: Path) -> Mapping[str, str]:
    """A cluster that is stopped, to damage: what its places are called in the tables."""
    shutil.rmtree(folder, ignore_errors=True)
    capture = captures / "kafka-4.3.1"
    shutil.copytree(capture / "data", folder / "data")
    shutil.copytree(capture / "remote/kafka-tiered-storage", folder / "store")
    shutil.copy(capture / "server.properties", folder)
    (folder / "export").write_bytes(_exported(capture / "data"))
    moved_node(folder / "node")
    written(folder / "moved.json", plan())
    return {"data": str(folder / "data"), "store": str(folder / "store"), "folder": str(folder)}


@cache
def _exported(data: Path) -> bytes:
    """The capture's metadata, as a file has it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "export.parquet"
        assert this_process("metadata", "export", file, "--log-dir", data).exit_code == ExitCode.CLEAN
        return file.read_bytes()


def run(command: str, words: tuple[str, ...], places: Mapping[str, str]) -> Outcome:
    return this_process(*command.split(), *(word.format_map(places) for word in words))


def test_every_command_is_in_a_table() -> None:
    every = {" ".join(words) for words, _ in commands() if words[0] != "diskless"}
    every |= {noun for noun in NOUNS if getattr(command_at((noun,)), "invoke_without_command", None)}

    assert {*OF_METADATA, *OF_STORES, *OF_FILES, *ELSEWHERE, *LIVE_ONLY, *WITHOUT_INPUT} == every


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_what_lost_metadata_said_is_unknown_to_every_command(
    captures: Path, tmp_path: Path, prices: None, loss: Damage
) -> None:
    places = copied(captures, tmp_path / "cluster")
    loss(Path(places["data"]))

    for command in OF_METADATA if loss in TRIED_ON_ALL else divided([*OF_METADATA]):
        outcome = run(command, OF_METADATA[command], places)

        expected = OTHERWISE.get((command, loss))
        is_refused = outcome.exit_code in REFUSED if expected is None else outcome.exit_code == expected
        assert is_refused, f"{command}: {outcome.err}{outcome.out}"
        assert '"status": "orphan"' not in outcome.out, command
        assert not (tmp_path / "cluster" / "plan").exists(), command


def test_a_store_that_is_gone_or_empty_proves_nothing_of_what_the_metadata_promises(
    captures: Path, tmp_path: Path, prices: None
) -> None:
    places = copied(captures, tmp_path / "cluster")
    judging = {name: words for name, words in OF_METADATA.items() if "--store" in words}
    shutil.rmtree(places["store"])

    for command, words in {**judging, **OF_STORES}.items():
        outcome = run(command, words, places)
        assert outcome.exit_code in REFUSED, f"{command}: {outcome.err}{outcome.out}"
    Path(places["store"]).mkdir()
    for command, words in judging.items():
        outcome = run(command, words, places)
        expected = REFUSED if command != BY_METADATA_ALONE else (ExitCode.CLEAN,)
        assert outcome.exit_code in expected, f"{command}: {outcome.err}{outcome.out}"


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def emptied(path: Path) -> None:
    for file in [path] if path.is_file() else path.iterdir():
        file.write_bytes(b"")


def cut(path: Path) -> None:
    for file in [path] if path.is_file() else path.iterdir():
        os.truncate(file, file.stat().st_size * 2 // 3)


def a_folder(path: Path) -> None:
    removed(path)
    (path / "another").mkdir(parents=True)


@pytest.mark.parametrize("loss", [removed, emptied, cut, a_folder], ids=lambda loss: loss.__name__)
def test_a_file_that_is_not_whole_is_not_sound(captures: Path, tmp_path: Path, loss: Damage) -> None:
    for command, (place, words) in OF_FILES.items():
        places = copied(captures, tmp_path / "cluster")
        loss(Path(places["folder"]) / place)

        outcome = run(command, words, places)

        assert outcome.exit_code != ExitCode.CLEAN, f"{command}: {outcome.err}{outcome.out}"
