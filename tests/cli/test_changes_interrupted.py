"""Commands that change files, interrupted within a step by a real signal: the step is finished, and what is printed
finishes the work, if anything is left. A second signal stops within the step, and another run finishes the work too."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.crashed_cluster import AT_ONCE, CLUSTER_ID, CrashedClusterOnDisk, planned_keys
from tests.cli.test_recover_indexes import CLUSTER_ID as RECOVERED_ID
from tests.cli.test_recover_indexes import CONFIRMED, SEGMENT_ID, STEM
from tests.moved_log_starts import CONFIRMED as MOVED_BACK
from tests.moved_log_starts import EPOCHS, RIGHT, STARTS, contents, moved_node, plan, written
from tests.rigs.stopped_process import INT, TERM, TWICE, Change, Stop
from tieredctl.ops.guards.own_objects import QUARANTINE

FOLDER = "__cluster_metadata-0"


def in_quarantine(planned: CrashedClusterOnDisk) -> set[str]:
    return {key for key in planned.objects() if QUARANTINE in key}


@pytest.fixture
def restoring(planned: CrashedClusterOnDisk) -> Change:
    keys, before = planned_keys(planned.plan_file), planned.objects()
    assert planned.apply().exit_code == 0

    def recorded() -> set[str]:
        lines = map(json.loads, planned.receipts_file.read_text().splitlines())
        return {line["key"] for line in lines if line.get("step") == "restored"}

    def is_done() -> bool:
        return planned.objects().items() >= {key: before[key] for key in keys}.items()

    words: list[str | Path] = ["orphans", "restore", planned.receipts_file]
    is_whole = lambda: recorded() == keys & {*planned.objects()}  # noqa: E731
    return Change(words, planned.bucket, "rename tiered/", is_whole, is_done, is_last=True)


@pytest.fixture
def purging(planned: CrashedClusterOnDisk) -> Change:
    assert planned.apply().exit_code == 0
    words = ["orphans", "purge", *planned.store, "--layout", "aiven", "--offline-metadata", "--log-dir"]
    words += [str(planned.log_dir), "--yes", "--cluster-id", CLUSTER_ID, *AT_ONCE]
    others = planned.objects().keys() - in_quarantine(planned)
    is_whole = lambda: {key for key in others if not key.startswith(".")} <= planned.objects().keys()  # noqa: E731
    is_done = lambda: not in_quarantine(planned)  # noqa: E731
    return Change(words, planned.bucket, f"remove {QUARANTINE}", is_whole, is_done, is_last=True)


@pytest.fixture
def cleaning(captures: Path, tmp_path: Path) -> Change:
    data, receipts = tmp_path / "data", tmp_path / "receipts"
    shutil.copytree(captures / "kafka-4.3.1/data", data)
    words = ["snapshot", "clean", str(data), "--metadata-max-retention-ms", "1", "--metadata-max-retention-bytes"]
    words += ["-1", "--receipts", str(receipts), "--apply", "--yes", "--cluster-id", RECOVERED_ID]
    before = {path.name for path in (data / FOLDER).iterdir()}

    def is_whole() -> bool:
        lines = [json.loads(line) for line in receipts.read_text().splitlines()]
        gone = before - {path.name for path in (data / FOLDER).iterdir()}
        return {line["file"] for line in lines if line.get("step") == "removed"} == gone

    return Change(
        *(words, data, r"remove .*\.checkpoint$"),
        *(is_whole, lambda: len([*(data / FOLDER).glob("*.checkpoint")]) == 1),
        number=1,
    )


@pytest.fixture
def recovering(captures: Path, tmp_path: Path) -> Change:
    capture, store = captures / "kafka-4.3.1", tmp_path / "store"
    folder = STEM.partition("/")[0]
    shutil.copytree(capture / "remote" / "kafka-tiered-storage" / folder, store / folder)
    missing = [store / f"{STEM}.{part}" for part in ("index", "timeindex", "snapshot")]
    right = {path: path.read_bytes() for path in missing}
    for path in missing:
        path.unlink()
    words: list[str | Path] = ["recover", "indexes", SEGMENT_ID, "--store", f"file:{store}"]
    words += ["--log-dir", capture / "data", *CONFIRMED]
    is_whole = lambda: all(not path.exists() or path.read_bytes() == right[path] for path in missing)  # noqa: E731
    return Change(words, store, f"link .*{STEM}", is_whole, lambda: all(path.exists() for path in missing))


@pytest.fixture
def healing(captures: Path, tmp_path: Path) -> Change:
    capture, store = captures / "kafka-4.3.1", tmp_path / "store"
    whole, folder = capture / "remote" / "kafka-tiered-storage", STEM.partition("/")[0]
    shutil.copytree(whole / folder, store / folder)
    missing = [store / f"{STEM}.{part}" for part in ("log", "index", "leader_epoch_checkpoint")]
    for path in missing:
        path.unlink()
    words: list[str | Path] = ["heal", "--segment-id", SEGMENT_ID, "--store", f"file:{store}"]
    words += ["--from-store", f"file:{whole}", "--log-dir", capture / "data", *CONFIRMED]
    right = {path: (whole / path.relative_to(store)).read_bytes() for path in missing}
    is_whole = lambda: all(not path.exists() or path.read_bytes() == right[path] for path in missing)  # noqa: E731
    return Change(words, store, f"link .*{STEM}", is_whole, lambda: all(path.exists() for path in missing))


@pytest.fixture
def moving(tmp_path: Path) -> Change:
    node = tmp_path / "data"
    moved_node(node)
    before = contents(node)
    plan_file = written(tmp_path / "plan.json", plan())
    words: list[str | Path] = ["recover", "log-starts", plan_file, "--log-dir", node, *MOVED_BACK]

    def is_whole() -> bool:
        return all(contents(node)[name] in (before[name], text) for name, text in RIGHT.items())

    return Change(words, node, f"rename .*{EPOCHS}", is_whole, lambda: contents(node).items() >= RIGHT.items())


LAST: dict[str, dict[str, Any]] = {
    "recovering": {"number": 3, "is_last": True},
    "cleaning": {"number": 2, "is_last": True},
    "moving": {"step": f"rename .*{STARTS}", "number": 1, "is_last": True},
}
"""Changes of several steps, in the last of which nothing is left to do; of the others the only step is the last."""
BEFORE_THE_ONLY_STEP: dict[str, Any] = {"step": "lease", "number": 1, "is_last": False}
EXHAUSTIVE = pytest.mark.exhaustive


@pytest.mark.parametrize("stop", [INT, pytest.param(TERM, marks=EXHAUSTIVE), TWICE])
@pytest.mark.parametrize("name", ["restoring", "purging", "cleaning", "recovering", "healing", "moving"])
def test_what_is_said_finishes_the_work(name: str, stop: Stop, request: pytest.FixtureRequest) -> None:
    change: Change = request.getfixturevalue(name)

    change.demand_finished(stop)


@pytest.mark.parametrize("name", ["restoring", pytest.param("purging", marks=EXHAUSTIVE)])
def test_before_the_only_step_there_is_something_left_to_do(name: str, request: pytest.FixtureRequest) -> None:
    change: Change = request.getfixturevalue(name)

    replace(change, **BEFORE_THE_ONLY_STEP).demand_finished(INT)


@pytest.mark.parametrize("stop", [INT, *(pytest.param(stop, marks=EXHAUSTIVE) for stop in (TERM, TWICE))])
@pytest.mark.parametrize("name", LAST)
def test_in_the_last_of_several_steps_nothing_is_left(name: str, stop: Stop, request: pytest.FixtureRequest) -> None:
    change: Change = request.getfixturevalue(name)

    replace(change, **LAST[name]).demand_finished(stop)
