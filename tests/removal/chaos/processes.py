"""The same with the real command: `python -m tieredctl` in a process that waits before it touches a file, so that the
broker can act, and the process be killed, there, or somewhere after it; and before each request to a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.removal.chaos.invariants import (
    demand_all_back,
    demand_ended_well,
    demand_finished,
    demand_nothing_lost,
    got_owners,
    may_go_on,
    removed_so_far,
)
from tests.removal.chaos.model_cluster import METADATA_PARTITIONS
from tests.removal.chaos.seeds import TrialOf, finish, only_unrecorded_copies_failed, undo
from tests.removal.chaos.trial import CLUSTER_ID, Setting, Told, Trial, now_ms
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import RESERVED_FOLDER

STARTUP = Path(__file__).parent / "startup"
_SKEWS_S = (48 * 3_600, -48 * 3_600)
MOST_TOUCHES = 250
"""About how many files and requests a run touches, one after another."""


@dataclass
class Supervised:
    """One run of the command, and the broker next to it."""

    trial: Trial
    chance: Random
    broker_activity: float
    kill_at: int | None = None
    """At which touch."""
    skew_s: int = 0
    """How far its clock is ahead."""
    kill_behind: bool = False
    """Whether it is let go on before, so that it is killed no one knows where."""
    last_read: list[int] = field(default_factory=lambda: [0] * METADATA_PARTITIONS)

    def run(self, *words: str) -> subprocess.CompletedProcess[str] | None:
        """What it said; None where it was killed."""
        told, tell = os.pipe()
        waits, go_on = os.pipe()
        environment = os.environ | {
            "PYTHONPATH": str(STARTUP),
            "TIEREDCTL_CHAOS": f"{self.trial.folder}:{tell}:{waits}",
            "TIEREDCTL_CHAOS_SKEW": str(self.skew_s),
        }
        command = [sys.executable, "-m", "tieredctl", "orphans", *words]
        out, error = self.trial.folder / "out", self.trial.folder / "error"
        with out.open("w") as stdout, error.open("w") as stderr:
            process = subprocess.Popen(
                command, env=environment, pass_fds=(tell, waits), stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL
            )
        os.close(tell)
        os.close(waits)
        with os.fdopen(told) as touches:
            was_killed = self._supervise(process, touches, go_on)
        os.close(go_on)
        code = process.wait()
        return None if was_killed else subprocess.CompletedProcess(command, code, out.read_text(), error.read_text())

    def _supervise(self, process: subprocess.Popen[bytes], touches: Any, go_on: int) -> bool:
        for number, touch in enumerate(touches, 1):
            while self.chance.random() < self.broker_activity and not self.trial.cluster.is_at_rest:
                self.trial.cluster.act(now_ms())
            self._note_reading(touch.rstrip("\n"))
            if number != self.kill_at:
                os.write(go_on, b".")
                continue
            if self.kill_behind:
                os.write(go_on, b"." * 20)
            process.kill()
            return True
        return False

    def _note_reading(self, touch: str) -> None:
        """The sizes of a metadata partition's files are taken when its folder is listed."""
        for number in range(METADATA_PARTITIONS):
            if touch == f"os.scandir {self.trial.cluster.log_dir}/__remote_log_metadata-{number}":
                self.last_read[number] = self.trial.cluster.read_up_to()[number]


def try_processes(seed: int, folder: Path, trial_of: TrialOf = Trial) -> None:
    """Kills the command once or twice, and lets it end the work, or undo it, at times without a process of its own,
    which is sooner done. Raises AssertionError as `try_seed`."""
    chance = Random(seed)
    trial = trial_of(folder, Setting(seed, receipts_in_store=chance.random() < 0.3))
    activity = chance.choice([0.0, 0.01, 0.05])
    (folder / "live-topic-ids").write_text("\n".join(trial.cluster.history.live_topic_ids) + "\n")
    if skew_s := chance.choice([0, 0, 0, *_SKEWS_S]):
        _refused_for_its_clock(trial, chance, skew_s)
    for _ in range(chance.choice([1, 1, 1, 2])):
        _killed(trial, chance, activity, apply_words(trial))
    ending = chance.choice([_finish, _undo, finish, finish, finish, undo, undo])
    ending(trial, chance, activity)


def apply_words(trial: Trial) -> Sequence[str]:
    return (
        *("apply", str(trial.plan.path), "--offline-metadata", "--log-dir", str(trial.cluster.log_dir)),
        *("--live-topic-ids", str(trial.folder / "live-topic-ids"), "--cluster-id", CLUSTER_ID, "--yes", "-o", "json"),
        *trial.store_words,
        *("--receipts", "store" if trial.setting.receipts_in_store else str(trial.receipts_file)),
    )


def restore_words(trial: Trial) -> Sequence[str]:
    if not trial.setting.receipts_in_store:
        return ("restore", str(trial.receipts_file), *trial.store_words, "-o", "json")
    store = ("--store", trial.plan.header.store, *trial.store_words)
    return ("restore", trial.plan.header.plan_id, *store, "-o", "json")


def _refused_for_its_clock(trial: Trial, chance: Random, skew_s: int) -> None:
    """Nothing is touched by a host whose clock is days off."""
    before = trial.cluster.stored_keys()
    ended = Supervised(trial, chance, 0.0, skew_s=skew_s).run(*apply_words(trial))
    made = trial.cluster.stored_keys() - before
    assert ended is not None
    assert ended.returncode != ExitCode.CLEAN, ended
    assert all(key.startswith(RESERVED_FOLDER) for key in made)
    assert before <= trial.cluster.stored_keys()


def _killed(trial: Trial, chance: Random, activity: float, words: Sequence[str]) -> None:
    supervised = Supervised(
        *(trial, chance, activity), kill_at=chance.randint(1, MOST_TOUCHES), kill_behind=chance.random() < 0.5
    )
    supervised.run(*words)
    demand_nothing_lost(trial)
    trial.let_the_lease_run_out()


def _finish(trial: Trial, chance: Random, activity: float) -> None:
    removed = removed_so_far(trial)
    supervised = Supervised(trial, chance, activity)
    told = _told(supervised, supervised.run(*apply_words(trial)))
    demand_nothing_lost(trial)
    if told.stopped == "plan-used":
        return
    demand_ended_well(trial, told)
    if told.stopped == "promised-objects-missing":
        assert got_owners(trial, removed), told
        return
    if told.stopped == "world-changed":
        assert not may_go_on(trial), told
        return
    demand_finished(trial, told)
    assert trial.apply(trial.world(chance)).stopped == "plan-used"


def _undo(trial: Trial, chance: Random, activity: float) -> None:
    _killed(trial, chance, activity, restore_words(trial))
    supervised = Supervised(trial, chance, 0.0)
    ended = supervised.run(*restore_words(trial))
    assert ended is not None
    nothing_was_begun = "no quarantined objects of it" in ended.stderr or "There are no receipts" in ended.stderr
    may_fail = ended.returncode == ExitCode.INCOMPLETE and only_unrecorded_copies_failed(trial)
    assert ended.returncode == ExitCode.CLEAN or nothing_was_begun or may_fail, ended
    demand_nothing_lost(trial)
    demand_all_back(trial)


def _told(supervised: Supervised, ended: subprocess.CompletedProcess[str] | None) -> Told:
    assert ended is not None
    read = (supervised.last_read[0], supervised.last_read[1])
    if not ended.stdout:
        used = "a plan can be used only once" in ended.stderr
        assert used, ended
        return Told(0, 0, [], False, "plan-used", read, [])
    summary = json.loads(ended.stdout)["summary"]
    is_complete = summary["stopped"] is None and not summary["failed"] and not summary["lost"]
    assert ended.returncode == (ExitCode.CLEAN if is_complete and not summary["skipped"] else ExitCode.INCOMPLETE)
    return Told(summary["done"], summary["failed"], [], is_complete, summary["stopped"], read, [])
