"""--dry-run: what it shows is what is done without it, and nothing is changed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import AGED, ENOUGH, CrashedClusterOnDisk
from tieredctl.cli.confirmation import ApplyChoice
from tieredctl.errors import ExitCode

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
WRITTEN = "contexts:\n  one: {store: 's3://one'}\n  two: {store: 's3://two'}\ncurrentContext: one\n"
EXPORT = ("metadata", "export")
BUNDLE = ("support-bundle", "--to", "bundle.tar.gz")
PLANNING = ("orphans", "plan", *AGED, *ENOUGH, "--layout", "aiven", "--to", "plan")
COMMANDS: dict[str, tuple[str, ...]] = {
    "a Parquet export": (*EXPORT, "events.parquet"),
    "an export in lines": (*EXPORT, "events.jsonl"),
    "an export with an unknown name": (*EXPORT, "events.csv"),
    "an export into no folder": (*EXPORT, "nowhere/events.jsonl"),
    "an export to where something is": (*EXPORT, "there.jsonl"),
    "an export instead of what is there": (*EXPORT, "there.jsonl", "--force"),
    "a segment": ("remote", "read", SEGMENT_ID, "--to", "segment.log"),
    "a segment to where something is": ("remote", "read", SEGMENT_ID, "--to", "there.jsonl"),
    "an unknown segment": ("remote", "read", "AAAAAAAAAAAAAAAAAAAAAA", "--to", "segment.log"),
    "a bundle": BUNDLE,
    "a plan": PLANNING,
    "a plan of nothing": (*PLANNING, "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"),
    "a plan of too much": (*PLANNING, "--max-percent", "1"),
    "a context more": ("context", "add", "three", "--store", "s3://three"),
    "a context that is there": ("context", "add", "two", "--store", "s3://three"),
    "another context instead": ("context", "add", "two", "--store", "s3://three", "--force"),
    "a context with a secret": ("context", "add", "three", "--store", "s3://three", "--store-option", "secret-key=a"),
    "another current context": ("context", "use", "two"),
    "no current context": ("context", "use", "--none"),
    "an unknown current context": ("context", "use", "three"),
    "a context less": ("context", "remove", "one"),
    "an unknown context less": ("context", "remove", "three"),
}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def figures(document: dict[str, Any]) -> dict[str, Any]:
    """What a run reports of itself, without what differs between any two runs, and between a run and its rehearsal."""
    summary = {name: value for name, value in document["summary"].items() if name not in ("planId", "dryRun")}
    items = [{name: value for name, value in one.items() if name != "sha256"} for one in document["items"]]
    return {"summary": summary, "items": items}


@pytest.fixture
def place(
    cluster: CrashedClusterOnDisk, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """A folder to run commands in, with a configuration of its own; adds to a command where it reads."""
    capture = captures / "kafka-4.3.1"
    of_cluster = ("--log-dir", str(cluster.log_dir), *cluster.store)
    places: dict[str, tuple[str, ...]] = {
        "metadata": ("--log-dir", str(capture / "data")),
        "support-bundle": ("--log-dir", str(capture / "data")),
        "remote": ("--store", f"file:{capture / 'remote/kafka-tiered-storage'}"),
        "orphans": of_cluster,
        "context": (),
    }
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "tieredctl").mkdir()
    (tmp_path / "tieredctl/config.yaml").write_text(WRITTEN)
    (tmp_path / "there.jsonl").write_text("mine")
    monkeypatch.chdir(tmp_path)
    return lambda words: (*words, *places[words[0]], *(() if words[0] == "context" else ("-o", "json")))


def test_a_dry_run_writes_nothing_and_ends_as_the_run(
    place: Callable[[tuple[str, ...]], tuple[str, ...]], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    before = contents(tmp_path)
    for case, words in COMMANDS.items():
        rehearsed = tieredctl(*place(words), "--dry-run")

        assert contents(tmp_path) == before, case
        done = tieredctl(*place(words))
        assert rehearsed.exit_code == done.exit_code, (case, rehearsed.err, done.err)
        if done.exit_code in (ExitCode.USAGE, ExitCode.FAILURE):
            assert rehearsed.err == done.err, case
        elif words[0] == "context":
            assert "ould " in rehearsed.err, case
        else:
            assert rehearsed.document()["summary"]["dryRun"], case
            assert figures(rehearsed.document()) == figures(done.document()), case
        put_back(tmp_path, before)


def put_back(folder: Path, before: dict[Path, bytes]) -> None:
    """Everything as it was before a command was run in a folder."""
    after = contents(folder)
    for path in after.keys() - before.keys():
        path.unlink()
    for path, data in before.items():
        if after.get(path) != data:
            path.write_bytes(data)


def test_a_dry_run_of_a_plan_makes_no_key_and_no_checkpoint_and_one_of_stdout_keeps_it_for_what_it_says(
    place: Callable[[tuple[str, ...]], tuple[str, ...]], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    planned = tieredctl(*place(PLANNING), "--dry-run", "--resume", "listing")
    read = tieredctl(*place(("remote", "read", SEGMENT_ID, "--to", "-")), "--dry-run")

    assert (planned.exit_code, read.exit_code) == (ExitCode.CLEAN, ExitCode.CLEAN)
    assert [name for name in ("tieredctl/plan.key", "listing") if (tmp_path / name).exists()] == []
    assert read.document()["summary"]["bytes"] == 1_109


def test_a_dry_run_of_a_damaged_segment_has_its_damage(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    store = captures / "kafka-4.3.1/remote/kafka-tiered-storage"
    (log,) = store.rglob(f"*-{SEGMENT_ID}.log")
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "damaged" / log.relative_to(store)
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(data)

    where = ("--store", f"file:{tmp_path / 'damaged'}", "--layout", "local")
    read = tieredctl("remote", "read", SEGMENT_ID, "--to", tmp_path / "part", *where, "--dry-run")

    assert (read.exit_code, (tmp_path / "part").exists()) == (ExitCode.CORRUPTION, False)


def test_a_dry_run_wins_over_apply() -> None:
    for apply, dry_run in itertools.product([False, True], repeat=2):
        assert ApplyChoice(apply, dry_run).is_made is (apply and not dry_run)


def test_a_restoration_is_rehearsed(planned: CrashedClusterOnDisk, tieredctl: Tieredctl) -> None:
    assert planned.apply().exit_code == ExitCode.CLEAN
    header = json.loads(planned.receipts_file.read_text().splitlines()[0])
    by_receipts = ("orphans", "restore", planned.receipts_file)
    ways = (("orphans", "restore", header["planId"], *planned.store), by_receipts)
    before = contents(planned.folder)

    rehearsed = [tieredctl(*words, "--dry-run", "-o", "json") for words in ways]

    assert [outcome.exit_code for outcome in rehearsed] == [ExitCode.CLEAN] * 2
    assert contents(planned.folder) == before
    restored = tieredctl(*by_receipts, "-o", "json").document()["summary"]
    for summary in (outcome.document()["summary"] for outcome in rehearsed):
        assert (summary["planned"], summary["bytes"]) == (restored["done"], restored["bytes"])
        assert summary["dryRun"]
    assert restored["done"] > 0
    for words in ways:
        assert tieredctl(*words, "--dry-run", "-o", "json").document()["summary"]["planned"] == 0, words
