"""Each command that a command prints runs as it is printed, in a shell, and does not end as the run that printed it.

From a few roots on what captured clusters left, the printed commands are followed, and theirs, until no new one comes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID
from tieredctl.cli.typed_words import typed
from tieredctl.errors import ExitCode

_PRINTED = re.compile(r"(?:^|[:.;,] | {2,})(tieredctl [a-z].*)$", re.MULTILINE)
_CONTINUED = " \\\n"
_BLANK = re.compile(r"(?<![\w=/.-])(?:HOST:PORT|URL|DIR|FILE|PLAN|ID)\b")
"""What a run does not know is left to its reader, in capitals."""
_WORDS = """tieredctl() { printf '%s\\0' "$@"; }; """
_CONFIRMED = {"orphans apply": ("--yes", "--cluster-id", CLUSTER_ID)}
"""What is asked for on a terminal, by the command that asks."""


def printed_commands(outcome: Outcome) -> list[str]:
    """The commands that a run tells to type, each once."""
    text = f"{outcome.out}\n{outcome.err}".replace(_CONTINUED, " ")
    found = (re.sub(" +", " ", one).rstrip(" .") for one in _PRINTED.findall(text))
    return [one for one in dict.fromkeys(found) if not _BLANK.search(one)]


def words_in_a_shell(command: str) -> list[str]:
    """The words that bash would give to tieredctl."""
    done = subprocess.run(["bash", "-c", _WORDS + command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), command
    return done.stdout.split("\0")[:-1]


@dataclass
class Follower:
    """Runs what is printed in this folder, and what that prints; of commands that differ in values alone, the first."""

    tieredctl: Tieredctl
    seen: set[tuple[str, frozenset[str]]] = field(default_factory=set)
    """Command and options."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """What was run, and what is wrong with it."""

    def follow(self, words: Sequence[str], printed_by: Outcome | None = None) -> None:
        named = typed(words)
        shape = (named.command, frozenset(name for name, _ in named.options))
        if shape in self.seen:
            return
        self.seen.add(shape)
        outcome = self.tieredctl(*words, *_CONFIRMED.get(named.command, ()))
        self.faults += [(" ".join(words), fault) for fault in _faults(outcome, printed_by)]
        for command in printed_commands(outcome):
            self.follow(words_in_a_shell(command), outcome)


def _faults(outcome: Outcome, printed_by: Outcome | None) -> Iterator[str]:
    if printed_by is not None and outcome.exit_code in (ExitCode.FAILURE, ExitCode.USAGE):
        yield outcome.err
    if outcome == printed_by:
        yield "it ends as what printed it"
    yield from (f"an ellipsis in {one}" for one in printed_commands(outcome) if "…" in one)


@dataclass(frozen=True)
class Left:
    """What a captured cluster left, and what was done to it since."""

    capture: str
    store: str
    done: str = ""


CRASHED = Left(CAPTURE, "file:bucket")
DAMAGED = {
    "crashed": CRASHED,
    "metadata lost in part": Left(
        *("kafka-4.3.1", "file:remote/kafka-tiered-storage"),
        "rm -r data/__remote_log_metadata-2; find remote -name '*.timeindex' -delete",
    ),
    "objects altered and lost": Left(
        *("kafka-4.3.1", "file:remote/kafka-tiered-storage"),
        "set -- $(find remote -name '*.log' | sort); printf XXXX | dd of=$1 bs=1 seek=100 conv=notrunc; rm $2; "
        "set -- $(find remote -name '*.index' | sort); rm $3",
    ),
}


@pytest.mark.parametrize("left", DAMAGED.values(), ids=DAMAGED)
def test_what_is_printed_runs_in_a_shell_and_does_not_end_as_it_began(
    left: Left, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    shutil.copytree(captures / left.capture, tmp_path / "left")
    monkeypatch.chdir(tmp_path / "left")
    subprocess.run(["bash", "-c", left.done], capture_output=True, check=True)
    metadata, store, kraft = ("--log-dir", "data"), ("--store", left.store), ("--kraft-snapshot", "data")
    roots = (
        *(("status", *metadata), ("status", *metadata, *store)),
        *(("verify", *metadata, *store), ("verify", "--level", "full", *metadata, *store, "-o", "wide")),
        *(("orphans", "scan", *metadata, *store), ("recover", "metadata", *metadata, *store)),
        *(("metadata", "stuck", *metadata, "-o", "wide"), ("metadata", "segments", *metadata)),
        *(("topic", "list", *kraft, *metadata), ("doctor", *kraft, *metadata), ("snapshot", "clean", "data")),
    )
    follower = Follower(tieredctl)

    for root in roots:
        follower.follow(root)

    assert follower.faults == []
    assert len(follower.seen) > len(roots)


def test_a_plan_of_too_large_a_share_is_shown_before_it_is_applied(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    shutil.copytree(captures / CRASHED.capture, tmp_path / "left")
    monkeypatch.chdir(tmp_path / "left")
    follower = Follower(tieredctl)

    follower.follow(("orphans", "scan", "--log-dir", "data", "--store", CRASHED.store))

    commands = {command for command, _ in follower.seen}
    assert follower.faults == []
    assert {"orphans scan", "orphans plan", "orphans show", "orphans apply"} <= commands
